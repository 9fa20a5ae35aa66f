package main

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/env/cluster"
)

// clusterDocument is a cluster in totals, in JSON.
type clusterDocument struct {
	Name   string        `json:"name"`
	Pool   bool          `json:"pool"` // a plain counter, whose GPUs have no identity
	Racks  int           `json:"racks"`
	Nodes  int           `json:"nodes"`
	GPUs   int           `json:"gpus"`
	ByType []gpuDocument `json:"by_type"`
}

type gpuDocument struct {
	GPUType string  `json:"gpu_type"` // "" = not stated
	Nodes   int     `json:"nodes"`
	GPUs    int     `json:"gpus"`
	Speed   float64 `json:"speed"` // 1 = the reference GPU
}

// showCluster prints a cluster as a tree, equal racks and nodes together, or as JSON.
func (a *app) showCluster(spec cluster.Spec, asJSON bool) error {
	d, err := totals(spec)
	if err != nil {
		return err
	}
	if asJSON {
		return a.json(d)
	}
	if d.Pool {
		a.printf("%s: a plain counter of %s\n", d.Name, several(d.GPUs, "GPU or processor", "GPUs or processors"))
		return nil
	}
	a.printf("%s: %s, %s, %s\n", d.Name, several(d.Racks, "rack", "racks"), several(d.Nodes, "node", "nodes"), several(d.GPUs, "GPU", "GPUs"))
	first := 0
	for i, r := range spec.Racks {
		n := r.Count.N()
		branch, bar := "├─ ", "│  "
		if i == len(spec.Racks)-1 {
			branch, bar = "└─ ", "   "
		}
		nodes, gpus := 0, 0
		for _, k := range r.Nodes {
			nodes += k.Count.N()
			gpus += k.Count.N() * k.GPUs
		}
		name, each := fmt.Sprintf("rack %d", first), ""
		if n > 1 {
			name, each = fmt.Sprintf("racks %d to %d", first, first+n-1), ", each"
		}
		first += n
		a.printf("%s%s%s: %s, %s%s\n", branch, name, each, several(nodes, "node", "nodes"), several(gpus, "GPU", "GPUs"), linkText(", uplink ", r.Uplink))
		for k, nd := range r.Nodes {
			twig := "├─ "
			if k == len(r.Nodes)-1 {
				twig = "└─ "
			}
			a.printf("%s%s%s\n", bar, twig, nodeText(nd))
		}
	}
	if len(d.ByType) < 2 && (len(d.ByType) == 0 || d.ByType[0].Speed == 1) {
		return nil
	}
	var rows [][]string
	for _, t := range d.ByType {
		name := t.GPUType
		if name == "" {
			name = "(not stated)"
		}
		rows = append(rows, []string{name, fmt.Sprint(t.Nodes), fmt.Sprint(t.GPUs), fmt.Sprint(t.Speed)})
	}
	a.printf("\n")
	return a.table(1, []string{"GPU type", "nodes", "GPUs", "speed"}, rows)
}

func totals(spec cluster.Spec) (clusterDocument, error) {
	c, err := cluster.New(spec)
	if err != nil {
		return clusterDocument{}, err
	}
	d := clusterDocument{Name: spec.Name, Pool: c.Pool(), Racks: c.Racks(), Nodes: c.Nodes(), GPUs: c.GPUs(), ByType: []gpuDocument{}}
	for _, r := range spec.Racks {
		for _, n := range r.Nodes {
			count := r.Count.N() * n.Count.N()
			if n.GPUs == 0 {
				continue
			}
			i := slices.IndexFunc(d.ByType, func(t gpuDocument) bool { return t.GPUType == n.GPUType })
			if i < 0 {
				speed, ok := spec.Speeds[n.GPUType]
				if !ok {
					speed = 1
				}
				i = len(d.ByType)
				d.ByType = append(d.ByType, gpuDocument{GPUType: n.GPUType, Speed: speed})
			}
			d.ByType[i].Nodes += count
			d.ByType[i].GPUs += count * n.GPUs
		}
	}
	return d, nil
}

func nodeText(n cluster.NodeSpec) string {
	var b strings.Builder
	b.WriteString(several(n.Count.N(), "node", "nodes"))
	if n.Count > 1 {
		b.WriteString(", each")
	}
	if n.GPUs == 0 {
		b.WriteString(" without GPUs")
	} else {
		fmt.Fprintf(&b, " with %s", several(n.GPUs, "GPU", "GPUs"))
		if n.GPUType != "" {
			fmt.Fprintf(&b, " %s", n.GPUType)
		}
		if n.GPUMemGB > 0 {
			fmt.Fprintf(&b, " of %g GiB", n.GPUMemGB)
		}
	}
	if n.CPUs > 0 {
		fmt.Fprintf(&b, ", %g cores", n.CPUs)
	}
	if n.MemGB > 0 {
		fmt.Fprintf(&b, ", %g GiB", n.MemGB)
	}
	b.WriteString(linkText(", between GPUs ", n.Link))
	b.WriteString(linkText(", to the rack ", n.NIC))
	return b.String()
}

// linkText describes what is stated of a link, "" where nothing is.
func linkText(before string, l cluster.Link) string {
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
	if len(parts) == 0 {
		return ""
	}
	return before + strings.Join(parts, " ")
}

func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
