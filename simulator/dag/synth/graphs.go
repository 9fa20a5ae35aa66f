package synth

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/dag"
)

// Config describes a graph.
type Config struct {
	Kind     string  `yaml:"kind"`
	Tasks    int     `yaml:"tasks"`     // approximate for training
	Degree   float64 `yaml:"degree"`    // parents of a task on average: erdos, layered, instances
	MeanWork float64 `yaml:"mean_work"` // of a task; work is log-normal with this mean
	Sigma    float64 `yaml:"sigma"`     // standard deviation of the logarithm of work
	CCR      float64 `yaml:"ccr"`       // mean transfer time over mean run time; 0 = edges carry nothing
	Stages   int     `yaml:"stages"`    // training: pipeline stages
	Replicas int     `yaml:"replicas"`  // training: data parallel replicas of each stage
}

// kinds are the graphs that Problem can make.
var kinds = []string{"layered", "fork-join", "erdos", "training", "instances"}

// Kinds returns the names of graphs.
func Kinds() []string { return slices.Clone(kinds) }

// DefaultConfig returns a random graph of 100 tasks with 3 parents each on average.
func DefaultConfig() Config {
	return Config{Kind: "erdos", Tasks: 100, Degree: 3, MeanWork: 10, Sigma: 0.5, CCR: 0.5, Stages: 8, Replicas: 2}
}

// Validate reports every fault.
func (c Config) Validate() error {
	var l fault.List
	l.Add(slices.Contains(kinds, c.Kind), "kind", c.Kind, nearest.OneOf(c.Kind, kinds))
	l.Add(c.Tasks >= 1 && c.Tasks <= 1_000_000, "tasks", c.Tasks, "1 to 1000000")
	l.Add(c.Degree >= 0 && c.Degree <= 1e6, "degree", c.Degree, "0 to 1000000")
	l.Add(c.MeanWork > 0 && c.MeanWork <= 1e9, "mean_work", c.MeanWork, "a number above 0, up to 1e9")
	l.Add(c.Sigma >= 0 && c.Sigma <= 5, "sigma", c.Sigma, "0 to 5")
	l.Add(c.CCR >= 0 && c.CCR <= 1e6, "ccr", c.CCR, "0 to 1e6")
	l.Add(c.Stages >= 1 && c.Stages <= 10_000, "stages", c.Stages, "1 to 10000")
	l.Add(c.Replicas >= 1 && c.Replicas <= 10_000, "replicas", c.Replicas, "1 to 10000")
	return l.Err()
}

// maker builds a graph.
type maker struct {
	c     Config
	ctx   context.Context // ends the drawing of edges
	src   *rand.Rand
	works []float64
	edges []dag.Edge // bytes of mean 1, scaled later
}

// Problem draws a graph and places it on p. The bytes of edges are exponential, or follow from the training pattern,
// and are scaled so that the mean transfer between two processors takes CCR times the mean run time.
func Problem(c Config, p *dag.Platform, name string, src *rand.Rand) (*dag.Problem, error) {
	return ProblemContext(context.Background(), c, p, name, src)
}

// ProblemContext is Problem with a context, whose end it returns as an error.
func ProblemContext(ctx context.Context, c Config, p *dag.Platform, name string, src *rand.Rand) (*dag.Problem, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := &maker{c: c, src: src, ctx: ctx}
	switch c.Kind {
	case "layered":
		m.layered()
	case "fork-join":
		m.forkJoin()
	case "erdos":
		m.draw(c.Tasks)
		m.erdos()
	case "training":
		m.training()
	case "instances":
		m.instances()
		m.erdos()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tasks := make([]dag.Task, len(m.works))
	for i, w := range m.works {
		tasks[i] = dag.Task{ID: strconv.Itoa(i), Work: w}
	}
	m.scale(p)
	g, err := dag.NewGraph(name, tasks, m.edges)
	if err != nil {
		return nil, fmt.Errorf("synth: %s: %w", c.Kind, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return dag.NewProblem(g, p)
}

// scale sets the bytes of edges for platform p.
func (m *maker) scale(p *dag.Platform) {
	work, inverse, bytes := 0.0, 0.0, 0.0
	for _, w := range m.works {
		work += w / float64(len(m.works))
	}
	for g := range p.Len() {
		inverse += 1 / p.Processor(g).Speed / float64(p.Len())
	}
	for _, e := range m.edges {
		bytes += e.Bytes / float64(len(m.edges))
	}
	second := p.MeanCost(dag.Pairs).Of(1) // seconds of one byte
	factor := 0.0
	if bytes > 0 && second > 0 {
		factor = m.c.CCR * work * inverse / (bytes * second)
	}
	for k := range m.edges {
		m.edges[k].Bytes *= factor
	}
}

// draw adds n tasks with log-normal work.
func (m *maker) draw(n int) {
	for range n {
		m.works = append(m.works, m.c.MeanWork*math.Exp(m.c.Sigma*m.src.NormFloat64()-m.c.Sigma*m.c.Sigma/2))
	}
}

// stopped reports, at every 4096th edge, whether the context has ended.
func (m *maker) stopped() bool { return len(m.edges)&0xfff == 0xfff && m.ctx.Err() != nil }

func (m *maker) edge(from, to int) {
	m.edges = append(m.edges, dag.Edge{From: int32(from), To: int32(to), Bytes: m.src.ExpFloat64()})
}

// erdos draws edges among the existing tasks.
func (m *maker) erdos() {
	n := len(m.works)
	if n < 2 {
		return
	}
	p := min(1, 2*m.c.Degree/float64(n-1))
	if p == 1 {
		for j := range n {
			for i := range j {
				if m.stopped() {
					return
				}
				m.edge(i, j)
			}
		}
		return
	}
	if p == 0 {
		return
	}
	// The distance from one edge to the next is geometric, so the loop takes time only for edges.
	skip := math.Log1p(-p)
	for j, i := 1, -1; j < n; {
		i += 1 + int(min(math.Log(1-m.src.Float64())/skip, 1e15))
		for i >= j && j < n {
			i -= j
			j++
		}
		if j < n {
			if m.stopped() {
				return
			}
			m.edge(i, j)
		}
	}
}

func (m *maker) layered() {
	n := m.c.Tasks
	m.draw(n)
	layers := max(1, int(math.Round(math.Sqrt(float64(n)))))
	first := make([]int, layers+1)
	for k := range first {
		first[k] = k * n / layers
	}
	for k := 1; k < layers; k++ {
		before := first[k] - first[k-1]
		for j := first[k]; j < first[k+1]; j++ {
			// At least one parent, otherwise layers would have no meaning, and enough more for the right mean.
			want := 1 + poisson(max(0, m.c.Degree-1), m.src)
			for i, left := first[k-1], min(want, before); i < first[k] && left > 0; i++ {
				if m.stopped() {
					return
				}
				if m.src.IntN(first[k]-i) < left {
					m.edge(i, j)
					left--
				}
			}
			if k > 1 && m.src.IntN(10) == 0 {
				m.edge(m.src.IntN(first[k-1]), j)
			}
		}
	}
}

// poisson draws with small means (Knuth, The Art of Computer Programming, volume 2, 3.4.1).
func poisson(mean float64, src *rand.Rand) int {
	n := 0
	for mean > 500 { // exp(-mean) would be 0
		n += poisson(500, src)
		mean -= 500
	}
	for p, stop := src.Float64(), math.Exp(-mean); p > stop; n++ {
		p *= src.Float64()
	}
	return n
}

func (m *maker) forkJoin() {
	m.draw(m.c.Tasks)
	width := max(2, int(math.Sqrt(float64(m.c.Tasks))/2))
	at := 0
	for at < m.c.Tasks-1 {
		w := min(1+m.src.IntN(2*width), m.c.Tasks-1-at)
		join := at + w + 1
		for k := at + 1; k <= at+w; k++ {
			m.edge(at, k)
			if join < m.c.Tasks {
				m.edge(k, join)
			}
		}
		at = join
	}
}

// training adds steps until the number of tasks is about the one asked for. In a step every replica sends its
// micro-batches (four times as many as stages, at most eight) forward through all stages and back. A stage's
// reduction waits for the backward tasks of all replicas, and the stage's first forward task in the next step waits
// for the reduction. A forward pass sends activations, the backward pass gradients of the same size. A reduction
// takes the gradients of the weights, which are larger for wide layers. Later stages have wider layers and smaller
// activations, as in convolutional networks.
func (m *maker) training() {
	s, r := m.c.Stages, m.c.Replicas
	batches := min(4*s, 8)
	step := s * (2*r*batches + 1)
	steps := max(1, int(math.Round(float64(m.c.Tasks)/float64(step))))
	noise := func() float64 { return math.Exp(m.c.Sigma / 4 * m.src.NormFloat64()) }
	depth := make([]float64, s) // relative work of a stage
	for k := range depth {
		depth[k] = math.Exp(m.c.Sigma * m.src.NormFloat64())
	}
	link := func(from, to int, bytes float64) {
		m.edges = append(m.edges, dag.Edge{From: int32(from), To: int32(to), Bytes: bytes})
	}
	task := func(work float64) int {
		m.works = append(m.works, work*m.c.MeanWork)
		return len(m.works) - 1
	}
	reduced := make([]int, s)
	for k := range reduced {
		reduced[k] = -1
	}
	for range steps {
		back := make([][]int, s)
		for range r {
			for range batches {
				forward := make([]int, s)
				for k := range s {
					act := 2 / (1 + float64(k)/float64(s))
					forward[k] = task(depth[k] * noise())
					if k > 0 {
						link(forward[k-1], forward[k], act)
					}
					if reduced[k] >= 0 {
						link(reduced[k], forward[k], 1+float64(k)/float64(s))
					}
				}
				for k := s - 1; k >= 0; k-- {
					b := task(2 * depth[k] * noise())
					act := 2 / (1 + float64(k)/float64(s))
					link(forward[k], b, act)
					if k < s-1 {
						link(back[k+1][len(back[k+1])-1], b, act)
					}
					back[k] = append(back[k], b)
				}
			}
		}
		for k := range s {
			reduced[k] = task(0.2 * depth[k])
			for _, b := range back[k] {
				link(b, reduced[k], (1+float64(k)/float64(s))/float64(batches))
			}
		}
	}
}
