package asrpt

import (
	"fmt"
	"math"
)

// stage is a stage of a pipeline: equal replicas, each on a GPU of its own.
type stage struct {
	replicas int
	compute  float64 // seconds for which a replica computes in an iteration, all micro-batches together
	params   float64 // GB of gradients, which the replicas all-reduce once an iteration
	// GB of activations that all replicas together send to the next stage; as much comes back as gradients
	out float64
}

// micros is the number of micro-batches of an iteration. The first one fills the pipeline.
const micros = 8

// graph is the work of one iteration: the replicas of all stages, joined by edges that carry GB.
type graph struct {
	name   string
	stages []stage
	gpus   int
	// weight[s][t] is what an edge between a replica of s and another of t carries in an iteration.
	weight [][]float64
	// compute is the part of an iteration that no network influences, in seconds.
	compute float64
}

// newGraph returns the graph of stages.
func newGraph(name string, stages ...stage) *graph {
	g := &graph{name: name, stages: stages, weight: make([][]float64, len(stages))}
	slowest := 0.0
	for s := range stages {
		g.gpus += stages[s].replicas
		slowest = max(slowest, stages[s].compute)
		g.weight[s] = make([]float64, len(stages))
	}
	for s, st := range stages {
		if st.replicas > 1 {
			// A ring sends 2(k−1) times the gradients in all. Which replicas are neighbours in the ring is open until they are
			// placed, so all k(k−1)/2 pairs get an equal part.
			g.weight[s][s] = 4 * st.params / float64(st.replicas)
		}
		if s+1 < len(stages) {
			w := 2 * st.out / float64(st.replicas*stages[s+1].replicas)
			g.weight[s][s+1], g.weight[s+1][s] = w, w
		}
	}
	g.compute = slowest * (1 + float64(len(stages)-1)/micros)
	return g
}

// ring returns the GB that each replica of stage s sends in an all-reduce.
func (g *graph) ring(s int) float64 {
	k := float64(g.stages[s].replicas)
	return 2 * (k - 1) / k * g.stages[s].params
}

// network is what joins the GPUs.
type network struct {
	NIC    float64 // GB/s of a server to the others, in each direction
	Link   float64 // GB/s of a GPU inside its server
	Server int     // GPUs of a server
}

// inside returns the seconds for which the busiest GPU sends in an iteration that stays inside one server.
func (n *network) inside(g *graph) float64 {
	most := 0.0
	for s, st := range g.stages {
		sent := g.ring(s) + st.out/float64(st.replicas)
		if s > 0 {
			sent += g.stages[s-1].out / float64(st.replicas)
		}
		most = max(most, sent)
	}
	return most / n.Link
}

// least returns seconds that no placement can make an iteration shorter than.
func (n *network) least(g *graph) float64 { return g.compute + n.inside(g) }

// placement says how many replicas of which stage stand on which servers. Replicas of a stage are equal, so their
// number is all that matters.
type placement struct {
	server []int   // those with at least one replica
	count  [][]int // of server[i], by stage
}

// on returns the number of GPUs that the placement has on server[i].
func (p *placement) on(i int) (n int) {
	for _, c := range p.count[i] {
		n += c
	}
	return n
}

// outside returns the GB that the replicas on server[i] send to other servers in an iteration, which is also what they
// receive. A ring is laid so that it leaves each of its servers once.
func (p *placement) outside(g *graph, i int) float64 {
	sum := 0.0
	for s, st := range g.stages {
		here := p.count[i][s]
		if here > 0 && here < st.replicas {
			sum += g.ring(s)
		}
		if s+1 == len(g.stages) {
			continue
		}
		a, b := float64(here)/float64(st.replicas), float64(p.count[i][s+1])/float64(g.stages[s+1].replicas)
		sum += st.out * (a*(1-b) + b*(1-a)) // activations forth, gradients back
	}
	return sum
}

// iteration returns the seconds of an iteration of g: computing, sending inside servers, and sending between them. A
// job has the share of a server's NIC that it has of the server's GPUs, so neighbours do not change its speed. Nothing
// overlaps.
func (n *network) iteration(g *graph, p *placement) float64 {
	slowest := 0.0
	for i := range p.server {
		share := n.NIC * float64(p.on(i)) / float64(n.Server)
		slowest = max(slowest, p.outside(g, i)/share)
	}
	return n.least(g) + slowest
}

// alone returns the seconds of an iteration with each replica on a server of its own: the worst placement that
// schedulers reckon with.
func (n *network) alone(g *graph) float64 {
	p := &placement{}
	for s, st := range g.stages {
		for range st.replicas {
			p.add(len(p.server), len(g.stages), s, 1)
		}
	}
	return n.iteration(g, p)
}

// add puts k replicas of stage s on the server, the last one added or a new one.
func (p *placement) add(server, stages, s, k int) {
	if last := len(p.server) - 1; last < 0 || p.server[last] != server {
		p.server = append(p.server, server)
		p.count = append(p.count, make([]int, stages))
	}
	p.count[len(p.count)-1][s] += k
}

// reference are rough figures of known models in single precision: seconds of an iteration on one GPU with its batch,
// GB of gradients, GB of activations of such a batch at a cut, and the numbers of stages in which it is trained.
type reference struct {
	name                string
	compute, params, at float64
	stages              []int
}

var references = []reference{
	{"resnet152", .40, .24, .10, []int{1, 2}},
	{"inception-v3", .22, .095, .06, []int{1, 2}},
	{"vgg19", .35, .57, .006, []int{1, 2}},
	{"bert-large", .50, 1.34, .05, []int{1, 2, 4}},
	{"gpt2-xl", 1.2, 6.2, .03, []int{4, 8}},
}

// lopsided is the name of the models whose second stage has few computations and most parameters, and one replica.
const lopsided = "vgg19"

// catalogue returns the graphs of all models with as many GPUs.
func catalogue(gpus int) (all []*graph) {
	for _, r := range references {
		for _, k := range r.stages {
			if gpus%k != 0 || k > gpus {
				continue
			}
			name := fmt.Sprintf("%s/%d×%d", r.name, k, gpus/k)
			if r.name == lopsided && k == 2 {
				n := gpus - 1
				first := r.compute * math.Max(.95*float64(gpus)/float64(n), .05*float64(gpus))
				all = append(all,
					newGraph(name, stage{n, first, .14 * r.params, r.at * float64(gpus)}, stage{1, first, .86 * r.params, 0}))
				continue
			}
			stages := make([]stage, k)
			for s := range stages {
				// A batch grows with the GPUs, so a stage computes as long as the whole model does on one GPU with its batch.
				stages[s] = stage{gpus / k, r.compute, r.params / float64(k), r.at * float64(gpus)}
			}
			stages[k-1].out = 0
			all = append(all, newGraph(name, stages...))
		}
	}
	return all
}
