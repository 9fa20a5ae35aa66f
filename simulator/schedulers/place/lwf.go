package place

import (
	"cmp"
	"slices"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// lwf is least workload first, LWF-κ (Wang, Shi, Wang, Chu: "Communication contention aware scheduling of multiple deep
// learning training jobs", 2020). The load of a GPU is the work left of the jobs on it, at rate 1, by the estimates. A
// gang of up to κ GPUs takes those with the least load, on any nodes. A larger one goes node by node, in order of the
// mean load of all the node's GPUs, and takes what each has room for, least loaded first; so does one that says how many
// GPUs it takes on each node. Ties go to the lowest number.
//
// The authors' simulator knows run times, keeps its own account of loads, which includes an estimate of communication,
// and sorts its list of nodes in place, so that ties depend on earlier placements. Here the load is that of the run.
type lwf struct {
	k     int
	est   sim.Estimates
	cpu   cluster.Placement // for jobs without GPUs
	load  []int64           // nanoseconds, by GPU
	gpus  []loaded[int64]
	nodes []loaded[float64]
	took  []int32 // by node
}

// loaded is a GPU or node and its load.
type loaded[T cmp.Ordered] struct {
	load T
	at   int32
}

func (a loaded[T]) compare(b loaded[T]) int {
	return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.at, b.at))
}

// LWF begins the names of these placements.
const LWF = "lwf-"

func newLWF(k int, est sim.Estimates) *lwf {
	p := &lwf{k: k, est: est}
	p.cpu, _ = cluster.NewPlacement("first-fit")
	return p
}

func (*lwf) Reset() {}

// Reseed changes the seed of noisy estimates.
func (p *lwf) Reseed(seed uint64) { p.est.Seed = seed }

func (p *lwf) Place(v *sim.View, _ sim.Job, r *cluster.Request, c *cluster.Cluster,
	dst []cluster.GPU) ([]cluster.GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.Pool() {
		return dst, true
	}
	if r.GPUs == 0 {
		return p.cpu.Place(c, r, dst)
	}
	p.weigh(v, c)
	if r.GPUs <= p.k && r.Each == 0 {
		return p.least(c, r, dst), true
	}
	return p.byNode(c, r, dst), true
}

// weigh computes the load of every GPU. A GPU that is wholly free on c, as can happen on a planning copy, has none.
func (p *lwf) weigh(v *sim.View, c *cluster.Cluster) {
	if len(p.load) != c.GPUs() || len(p.took) != c.Nodes() {
		p.load, p.took = make([]int64, c.GPUs()), make([]int32, c.Nodes())
	}
	clear(p.load)
	for _, j := range v.Running() {
		left := int64(min(queue.Remaining(p.est, v, j), queue.MaxLasts))
		for _, g := range v.GPUs(j) {
			if g >= 0 && c.GPUFree(g) < 1000 { // neither of two summands exceeds maxLasts
				p.load[g] = min(p.load[g]+left, queue.MaxLasts)
			}
		}
	}
}

// usable appends to p.gpus the GPUs of node that have room for one share of r.
func (p *lwf) usable(c *cluster.Cluster, node int, r *cluster.Request) {
	from, to := c.NodeGPUs(node)
	for g := from; g < to; g++ {
		if c.GPUFree(g) >= r.Milli {
			p.gpus = append(p.gpus, loaded[int64]{p.load[g], int32(g)})
		}
	}
}

func (p *lwf) least(c *cluster.Cluster, r *cluster.Request, dst []cluster.GPU) []cluster.GPU {
	p.gpus = p.gpus[:0]
	for n := range p.took {
		if p.took[n] = int32(c.Room(n, r)); p.took[n] > 0 {
			p.usable(c, n, r)
		}
	}
	slices.SortFunc(p.gpus, loaded[int64].compare)
	for _, g := range p.gpus {
		n := c.NodeOf(cluster.GPU(g.at))
		if p.took[n] == 0 {
			continue // no cores or memory left for another
		}
		p.took[n]--
		if dst = append(dst, cluster.GPU(g.at)); len(dst) == r.GPUs {
			break
		}
	}
	return dst
}

func (p *lwf) byNode(c *cluster.Cluster, r *cluster.Request, dst []cluster.GPU) []cluster.GPU {
	p.nodes = p.nodes[:0]
	for n := range p.took {
		if p.took[n] = int32(c.Room(n, r)); p.took[n] == 0 {
			continue
		}
		from, to := c.NodeGPUs(n)
		sum := 0.0
		for g := from; g < to; g++ {
			sum += float64(p.load[g])
		}
		p.nodes = append(p.nodes, loaded[float64]{sum / float64(to-from), int32(n)})
	}
	slices.SortFunc(p.nodes, loaded[float64].compare)
	for _, n := range p.nodes {
		p.gpus = p.gpus[:0]
		p.usable(c, int(n.at), r)
		slices.SortFunc(p.gpus, loaded[int64].compare)
		for _, g := range p.gpus[:p.took[n.at]] { // of a gang in chunks, one chunk
			if dst = append(dst, cluster.GPU(g.at)); len(dst) == r.GPUs {
				return dst
			}
		}
	}
	return dst
}
