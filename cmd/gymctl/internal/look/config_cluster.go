package look

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/plain"
	"clustergym/simulator/cluster"
)

// showCluster prints a cluster as a tree, with equal racks and nodes grouped, and its types and virtual clusters
// below; or as JSON.
func showCluster(a *cli.App, c *cobra.Command, spec cluster.Spec) error {
	built, err := cluster.New(spec)
	if err != nil {
		return err
	}
	d := documentOf(built)
	if cli.AsJSON(c) {
		return a.JSON(d)
	}
	if d.Pool {
		a.Printf("%s: a plain counter of %s\n", d.Name, plain.Count(d.GPUs, "GPU or processor", "GPUs or processors"))
	} else {
		parts := []string{plain.Count(d.Racks, "rack", "racks"), plain.Count(d.Nodes, "node", "nodes"),
			plain.Count(d.GPUs, "GPU", "GPUs")}
		if d.CPUs > 0 {
			parts = append(parts, fmt.Sprintf("%g cores", d.CPUs))
		}
		if d.MemGB > 0 {
			parts = append(parts, fmt.Sprintf("%g GiB", d.MemGB))
		}
		a.Printf("%s: %s\n", d.Name, strings.Join(parts, ", "))
		for _, line := range tree(spec.Racks) {
			a.Printf("%s\n", line)
		}
	}
	if err := showTypes(a, d.ByType); err != nil {
		return err
	}
	return showVCs(a, &d)
}

// showTypes prints the GPU types if there are several, or one whose speed differs from the reference.
func showTypes(a *cli.App, types []gpuDocument) error {
	if len(types) == 0 || len(types) == 1 && types[0].Speed == 1 {
		return nil
	}
	var rows [][]string
	for _, t := range types {
		rows = append(rows, []string{cmp.Or(t.GPUType, "(not stated)"), fmt.Sprint(t.Nodes), fmt.Sprint(t.GPUs),
			fmt.Sprint(t.Speed)})
	}
	a.Printf("\n")
	return a.Table(1, []string{"GPU type", "nodes", "GPUs", "speed"}, rows)
}

// showVCs prints the virtual clusters, and the nodes shared by those without nodes of their own.
func showVCs(a *cli.App, d *ClusterDocument) error {
	if len(d.VCs) == 0 {
		return nil
	}
	limit := func(quota int) string {
		if quota == 0 {
			return "-"
		}
		return fmt.Sprint(quota)
	}
	var rows [][]string
	header := []string{"virtual cluster", "nodes", "which", "GPUs", "quota"}
	shared, named := false, false
	for _, v := range d.VCs {
		if v.Hosts != nil {
			rows = append(rows, []string{v.Name, fmt.Sprint(v.Nodes), plain.Clip(strings.Join(v.Hosts, ","), 60),
				fmt.Sprint(v.GPUs), limit(v.Quota)})
			named = true
			continue
		}
		if v.Nodes == 0 {
			shared = true
			rows = append(rows, []string{v.Name, "-", "shared", "-", limit(v.Quota)})
			continue
		}
		rows = append(rows,
			[]string{v.Name, fmt.Sprint(v.Nodes), numbers(v.First, v.First+v.Nodes-1), fmt.Sprint(v.GPUs), limit(v.Quota)})
	}
	if d.Pool {
		header = []string{"virtual cluster", "quota"}
		for i, row := range rows {
			rows[i] = []string{row[0], row[4]}
		}
	} else if s := d.Shared; s.Nodes > 0 && (shared || !named) {
		name := "(shared)"
		if !shared {
			name = "(nobody's)"
		}
		rows = append(rows, []string{name, fmt.Sprint(s.Nodes), numbers(s.First, s.First+s.Nodes-1), fmt.Sprint(s.GPUs), "-"})
	}
	a.Printf("\n")
	if !slices.ContainsFunc(d.VCs, func(v vcDocument) bool { return v.Quota > 0 }) {
		header = header[:len(header)-1]
		for i := range rows {
			rows[i] = rows[i][:len(header)]
		}
	}
	return a.Table(1, header, rows)
}

// numbers returns a range of numbers, or one number if both are the same.
func numbers(first, last int) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d–%d", first, last)
}

// sameRacks is racks that differ only in their numbers: count[i] of them from first[i] on, for each i.
type sameRacks struct {
	spec         cluster.RackSpec
	first, count []int
	total        int
}

// tree draws racks and their nodes. Equal racks are drawn once, even if they are not adjacent.
func tree(racks []cluster.RackSpec) []string {
	var same []sameRacks
	next := 0
	for _, r := range racks {
		n := r.Count.N()
		r.Count, r.Nodes = 1, sameNodes(r.Nodes)
		i := slices.IndexFunc(same, func(s sameRacks) bool {
			return slices.EqualFunc(s.spec.Nodes, r.Nodes, equalNodes) && s.spec.Uplink == r.Uplink
		})
		if i < 0 {
			i = len(same)
			same = append(same, sameRacks{spec: r})
		}
		s := &same[i]
		if k := len(s.first) - 1; k >= 0 && s.first[k]+s.count[k] == next {
			s.count[k] += n
		} else {
			s.first, s.count = append(s.first, next), append(s.count, n)
		}
		s.total += n
		next += n
	}
	var columns [4]int // widths of the cells
	for _, r := range same {
		for _, n := range r.spec.Nodes {
			for i, cell := range nodeCells(n) {
				columns[i] = max(columns[i], utf8.RuneCountInString(cell))
			}
		}
	}
	var lines []string
	for i, s := range same {
		branch, bar := "├─ ", "│  "
		if i == len(same)-1 {
			branch, bar = "└─ ", "   "
		}
		lines = append(lines, branch+s.text())
		for k, n := range s.spec.Nodes {
			twig, under := "├─ ", "│  "
			if k == len(s.spec.Nodes)-1 {
				twig, under = "└─ ", "   "
			}
			lines = append(lines, bar+twig+strings.TrimRight(aligned(nodeCells(n), columns), " "))
			if links := linkTexts(n); links != "" {
				lines = append(lines, bar+under+strings.Repeat(" ", columns[0]+2)+links)
			}
		}
	}
	return lines
}

// equalNodes reports whether nodes differ in nothing but their names.
func equalNodes(a, b cluster.NodeSpec) bool { return a.Count == b.Count && a.Same(b) }

// sameNodes groups equal nodes, in the order of the first of each kind.
func sameNodes(nodes []cluster.NodeSpec) []cluster.NodeSpec {
	var same []cluster.NodeSpec
	for _, n := range nodes {
		count := cluster.Count(n.Count.N())
		i := slices.IndexFunc(same, n.Same)
		if i < 0 {
			n.Count = count
			same = append(same, n)
			continue
		}
		same[i].Count += count
	}
	return same
}

// text names the racks and describes their content.
func (s *sameRacks) text() string {
	var which []string
	for i := range s.first {
		if i == 6 {
			which = append(which, "…")
			break
		}
		which = append(which, numbers(s.first[i], s.first[i]+s.count[i]-1))
	}
	nodes, gpus := 0, 0
	var types []string
	for _, n := range s.spec.Nodes {
		nodes += n.Count.N()
		gpus += n.Count.N() * n.GPUs
		if n.GPUs > 0 && !slices.Contains(types, n.GPUType) {
			types = append(types, n.GPUType)
		}
	}
	what := plain.Count(gpus, "GPU", "GPUs")
	switch {
	case gpus == 0:
		what = "no GPUs"
	case len(types) > 1:
		what += fmt.Sprintf(" of %d types", len(types))
	case types[0] != "":
		what += " " + types[0]
	}
	name, each := "rack ", ""
	if s.total > 1 {
		name, each = "racks ", " each"
		which[len(which)-1] += fmt.Sprintf(" (%d equal)", s.total)
	}
	line := fmt.Sprintf("%s%s: %s, %s%s", name, strings.Join(which, ", "), plain.Count(nodes, "node", "nodes"), what, each)
	if l := linkText(s.spec.Uplink); l != "" {
		line += ", uplink " + l
	}
	return line
}

// aligned aligns cells in columns of these widths, 0 = left out: numbers to the right, GPUs to the left.
func aligned(cells [4]string, widths [4]int) string {
	var row []string
	for i, c := range cells {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		switch {
		case widths[i] == 0:
		case i == 1:
			row = append(row, c+pad)
		default:
			row = append(row, pad+c)
		}
	}
	return strings.Join(row, "  ")
}

// nodeCells describes equal nodes: their number, the GPUs of each, cores, memory.
func nodeCells(n cluster.NodeSpec) (cells [4]string) {
	cells[0] = plain.Count(n.Count.N(), "node ", "nodes")
	switch {
	case n.GPUs == 0:
		cells[1] = "no GPUs"
	case n.GPUType == "":
		cells[1] = plain.Count(n.GPUs, "GPU", "GPUs")
	default:
		cells[1] = fmt.Sprintf("%d × %s", n.GPUs, n.GPUType)
	}
	if n.GPUMemGB > 0 {
		cells[1] += fmt.Sprintf(" of %g GiB", n.GPUMemGB)
	}
	if n.CPUs > 0 {
		cells[2] = fmt.Sprintf("%g cores", n.CPUs)
	}
	if n.MemGB > 0 {
		cells[3] = fmt.Sprintf("%g GiB", n.MemGB)
	}
	return cells
}

// linkTexts describes the stated links of a node, "" if there are none.
func linkTexts(n cluster.NodeSpec) string {
	var parts []string
	if l := linkText(n.Link); l != "" {
		parts = append(parts, "between GPUs "+l)
	}
	if l := linkText(n.NIC); l != "" {
		parts = append(parts, "to the rack "+l)
	}
	return strings.Join(parts, "; ")
}

// linkText describes what is stated of a link, "" if nothing is.
func linkText(l cluster.Link) string {
	var parts []string
	if l.Class != "" {
		parts = append(parts, l.Class)
	}
	if l.Gbps > 0 {
		parts = append(parts, fmt.Sprintf("%g Gbit/s", l.Gbps))
	}
	if l.Latency > 0 {
		parts = append(parts, l.Latency.String())
	}
	return strings.Join(parts, " ")
}
