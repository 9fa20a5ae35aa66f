package workload

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/hostlist"
	"clustergym/internal/plain"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// mostPlaces bounds the nodes of all jobs together, and so the memory for them.
const mostPlaces = 1 << 24

// GuessCluster returns the cluster on which recorded jobs most likely ran, and a sentence for people that says that it
// was guessed, from what, and what it is. It looks at jobs that started and have GPUs:
//
//   - Where they say on which nodes they ran (traces.Job.Hosts), the cluster has these nodes, and each the most GPUs that
//     its jobs held at once. GPUs that are not shared equally by the nodes of a job count as equal and are rounded down.
//     Nodes whose names differ in their numbers alone are alike: if more than half of them had the same GPUs at their
//     most, all have as many, but none fewer than one job held on it. The type is that which most of the GPU time asked for.
//   - Where they do not, the cluster has the most GPUs that ran at once, on nodes as large as the most GPUs that a job had
//     on each of its nodes, or as the largest job if no job says how many nodes it had, at most 8.
//
// Nodes without GPUs cannot be guessed. Jobs without starts are a *fault.Mistake.
func GuessCluster(jobs []traces.Job) (spec cluster.Spec, says string, err error) {
	g := guess{at: map[string]int{}, lists: map[string][]int32{}}
	for i := range jobs {
		if err := g.add(&jobs[i]); err != nil {
			return spec, "", err
		}
	}
	switch {
	case g.jobs == 0:
		return spec, "", &fault.Mistake{Err: fault.Errorf(
			"the cluster cannot be guessed: no job of the trace has GPUs and a recorded start (AllocTRES and Start of sacct, "+
				"num_gpu and start_time of a CSV file); name it with %s",
			fault.Key("cluster"))}
	case g.placed == 0:
		spec, says = g.counted()
	default:
		spec, says = g.named()
	}
	if err := spec.Validate(); err != nil {
		return spec, "", fault.Mistakef("the cluster that was guessed cannot be: %w", err)
	}
	return spec, says, nil
}

// guess gathers what recorded jobs show of their cluster.
type guess struct {
	at     map[string]int // nodes by name
	nodes  []seenNode
	lists  map[string][]int32 // nodes of each list
	held   []held             // on nodes
	all    []held             // in the whole cluster
	jobs   int                // that ran with GPUs
	placed int                // of which their nodes are known
	places int
	each   int // most GPUs on a node, of jobs that say how many nodes they had
	gang   int // largest job
}

type seenNode struct {
	name  string
	stem  string // the name without its digits
	least int    // GPUs of the largest job
	most  int    // GPUs at once
	types map[string]float64
}

// held are GPUs that are taken, or given back where gpus is negative, on a node.
type held struct {
	at   time.Duration
	gpus int
	node int32
}

// add looks at one job.
func (g *guess) add(j *traces.Job) error {
	if !j.Started || j.GPUs < 1 || j.Work <= 0 || j.Open == traces.StillWaiting {
		return nil
	}
	from := j.Submit + j.Waited
	to := from + j.Work
	if from < 0 || to < from {
		return nil
	}
	g.jobs++
	gpus := (j.GPUs*max(1, j.GPUMilli) + 999) / 1000
	g.gang = max(g.gang, gpus)
	if j.Nodes > 0 && gpus%j.Nodes == 0 {
		g.each = max(g.each, gpus/j.Nodes)
	}
	g.all = append(g.all, held{from, gpus, 0}, held{to, -gpus, 0})
	nodes, err := g.list(j.Hosts)
	if err != nil || len(nodes) == 0 {
		return nil //nolint:nilerr // another trace's way to name nodes, as good as none
	}
	if g.places += len(nodes); g.places > mostPlaces {
		return fault.Mistakef("the cluster cannot be guessed: the jobs ran on more than %d nodes, counted for each job",
			mostPlaces)
	}
	g.placed++
	each := max(1, gpus/len(nodes))
	for _, n := range nodes {
		g.held = append(g.held, held{from, each, n}, held{to, -each, n})
		node := &g.nodes[n]
		if gpus%len(nodes) == 0 {
			node.least = max(node.least, each)
		}
		if len(j.GPUTypes) == 1 {
			if node.types == nil {
				node.types = map[string]float64{}
			}
			node.types[j.GPUTypes[0]] += j.Work.Hours() * float64(each)
		}
	}
	return nil
}

// list returns the nodes of a list.
func (g *guess) list(hosts string) ([]int32, error) {
	if nodes, ok := g.lists[hosts]; ok || hosts == "" {
		return nodes, nil
	}
	names, err := hostlist.Expand(hosts)
	if err != nil {
		return nil, err
	}
	if len(g.nodes)+len(names) > mostPlaces {
		return nil, errors.New("too many nodes")
	}
	var nodes []int32
	for _, name := range names {
		i, seen := g.at[name]
		if !seen {
			i = len(g.nodes)
			g.at[name] = i
			stem := strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return -1
				}
				return r
			}, name)
			g.nodes = append(g.nodes, seenNode{name: name, stem: stem})
		}
		nodes = append(nodes, int32(i))
	}
	g.lists[hosts] = nodes
	return nodes, nil
}

// peaks calls each with what node holds after every change.
func peaks(all []held, nodes int, each func(node int32, gpus int)) {
	slices.SortFunc(all, func(a, b held) int { // what ends at a time goes before what begins
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.gpus, b.gpus), cmp.Compare(a.node, b.node))
	})
	now := make([]int, nodes)
	for _, h := range all {
		now[h.node] += h.gpus
		each(h.node, now[h.node])
	}
}

// counted returns the cluster of jobs that do not say where they ran.
func (g *guess) counted() (cluster.Spec, string) {
	most := 0
	peaks(g.all, 1, func(_ int32, gpus int) { most = max(most, gpus) })
	const usual = 8
	each, why := g.each, "the most that a job had on each of its nodes"
	if each == 0 {
		if each, why = g.gang, "the size of the largest job"; each > usual {
			each, why = usual, "as nodes mostly have"
		}
	}
	each = min(each, 1024)
	nodes := (most + each - 1) / each
	spec := cluster.Spec{Name: "guessed", Racks: []cluster.RackSpec{{Count: 1,
		Nodes: []cluster.NodeSpec{{Count: cluster.Count(nodes), GPUs: each}}}}}
	return spec, fmt.Sprintf("The cluster was guessed from starts and run times, as no column says on which nodes jobs ran: at "+
		"most %s ran at once, so it is taken to be %s of %d (%s).", plain.Count(most, "GPU", "GPUs"),
		plain.Count(nodes, "node", "nodes"), each, why)
}

// named returns the cluster of jobs that say on which nodes they ran.
func (g *guess) named() (cluster.Spec, string) {
	peaks(g.held, len(g.nodes), func(n int32, gpus int) { g.nodes[n].most = max(g.nodes[n].most, gpus) })
	families := map[string][]*seenNode{}
	for i := range g.nodes {
		n := &g.nodes[i]
		families[n.stem] = append(families[n.stem], n)
	}
	raised := 0
	for _, family := range families { // each on its own
		raised += alike(family)
	}
	slices.SortFunc(g.nodes, func(a, b seenNode) int { // g2 before g10
		return cmp.Or(strings.Compare(a.stem, b.stem), len(a.name)-len(b.name), strings.Compare(a.name, b.name))
	})
	var nodes []cluster.NodeSpec
	gpus := 0
	kinds := map[string]int{}
	for i := range g.nodes {
		n := &g.nodes[i]
		spec := cluster.NodeSpec{Count: 1, GPUs: n.most, GPUType: mostly(n.types), Names: []string{n.name}}
		nodes = addNode(nodes, spec)
		gpus += n.most
		kinds[strings.TrimSpace(fmt.Sprintf("%d GPUs %s", n.most, spec.GPUType))]++
	}
	spec := cluster.Spec{Name: "guessed", Racks: []cluster.RackSpec{{Count: 1, Nodes: nodes}}}
	return spec, g.sentence(gpus, raised, kinds)
}

// sentence says what was guessed, and from what.
func (g *guess) sentence(gpus, raised int, kinds map[string]int) string {
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(kinds[b]-kinds[a], strings.Compare(a, b))
	})
	const most = 4
	var parts []string
	for _, k := range names[:min(most, len(names))] {
		parts = append(parts, fmt.Sprintf("%d with %s", kinds[k], plain.Clip(k, 60)))
	}
	if more := len(names) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d other kinds", more))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The cluster was guessed from the nodes on which the jobs ran and the most GPUs that they held on each at "+
		"once: %s, %s (%s).", plain.Count(len(g.nodes), "node", "nodes"), plain.Count(gpus, "GPU", "GPUs"),
		strings.Join(parts, ", "))
	if raised > 0 {
		fmt.Fprintf(&b, " %s taken to be as large as most nodes of the same name.",
			plain.Count(raised, "node is", "nodes are"))
	}
	if less := g.jobs - g.placed; less > 0 {
		fmt.Fprintf(&b, " %s of %d GPU jobs do not say where they ran.", Thousands(less), g.jobs)
	}
	return b.String()
}

// alike gives nodes of one family the GPUs that more than half of them had at their most, and types to nodes without
// one if the others have one. It returns how many nodes it changed the size of.
func alike(family []*seenNode) (changed int) {
	sizes := map[int]int{}
	types := map[string]float64{}
	for _, n := range family {
		sizes[n.most]++
		if t := mostly(n.types); t != "" {
			types[strings.ToLower(t)] += n.types[t]
		}
	}
	usual := 0
	for size, count := range sizes {
		if 2*count > len(family) {
			usual = size
		}
	}
	for _, n := range family {
		if n.types == nil && len(types) == 1 {
			n.types = map[string]float64{mostlyOf(family): 1}
		}
		if size := max(usual, n.least); usual > 0 && size != n.most {
			n.most = size
			changed++
		}
	}
	return changed
}

// mostlyOf returns the type of the family's first node that has one.
func mostlyOf(family []*seenNode) string {
	for _, n := range family {
		if t := mostly(n.types); t != "" {
			return t
		}
	}
	return ""
}

// mostly returns the type with the most GPU time, "" if there is none.
func mostly(types map[string]float64) string {
	best := ""
	for _, t := range slices.Sorted(maps.Keys(types)) {
		if best == "" || types[t] > types[best] {
			best = t
		}
	}
	return best
}
