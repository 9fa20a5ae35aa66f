package dagplace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/synth"
	"clustergym/traces"
)

// Graphs gives the task graphs of episodes, in three parts that have none in common. It does not change, and any number
// of environments may use it at once. *graphs.Set of simulator/dag/graphs is the usual one.
type Graphs interface {
	// Count returns the number of graphs of part p.
	Count(p traces.Part) int
	// At returns graph number window of part p, or for window -1 one that is drawn from seed alone, and the processors
	// that belong to it, nil where it has none of its own.
	At(p traces.Part, seed uint64, window int) (g *dag.Graph, own *dag.Platform, err error)
	// Place says where graph number window of part p was read, for messages.
	Place(p traces.Part, window int) string
	// SHA256 tells workloads apart.
	SHA256() string
}

// Workload is recorded graphs, a platform, or both, in place of what the configuration would draw. It does not change
// after NewWorkload, and any number of environments may use it at once.
//
// A graph runs on its own processors if it has any, else on the platform, else on processors that the configuration
// draws for each episode. What its edges carry depends on that:
//
//   - on its own processors, and on a given platform, the recorded bytes;
//   - on drawn processors, whose bandwidths have no unit that a recorded byte could be compared with, the recorded
//     bytes times a factor: the mean transfer takes ccr times the mean run time, as in generated graphs;
//   - where no edge of a graph without own processors carries anything, as in Alibaba's trace, which does not record
//     it, exponentially distributed bytes of that mean, drawn for each episode. With ccr 0 they carry nothing.
type Workload struct {
	graphs   Graphs        // nil = generated
	platform *dag.Platform // nil = drawn
	sha      string

	tasks, procs int // of the largest graph, and of the largest platform
}

// NewWorkload checks that the environment of cfg can use every graph of every part, and the platform, which may be nil.
// With g nil, graphs are generated on the platform. An error is one sentence that says which graph cannot be used and
// why.
func NewWorkload(cfg Config, platform *dag.Platform, g Graphs) (*Workload, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	w := &Workload{graphs: g, platform: platform, tasks: cfg.Tasks, procs: cfg.GPUs}
	h := sha256.New()
	if platform != nil {
		w.procs = platform.Len()
		if err := fits(&cfg, cfg.Tasks, w.procs); err != nil && g == nil {
			return nil, fmt.Errorf("platform: %w", err)
		}
		h.Write(identity(platform))
	}
	if g != nil {
		fmt.Fprint(h, g.SHA256())
		if err := w.check(&cfg); err != nil {
			return nil, err
		}
	}
	w.sha = hex.EncodeToString(h.Sum(nil))
	return w, nil
}

// identity returns bytes that tell platforms apart.
func identity(p *dag.Platform) []byte {
	var b []byte
	for i := range p.Len() {
		b = fmt.Appendf(b, "%+v ", *p.Processor(i))
		for k := range p.Len() {
			if p.Linked() || k == 1 { // else one bandwidth is all
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.Bandwidth(i, k)))
			}
		}
	}
	return b
}

// check looks at every graph.
func (w *Workload) check(cfg *Config) error {
	if w.graphs.Count(traces.Training) == 0 {
		_, _, err := w.graphs.At(traces.Training, 0, 0) // it says how many graphs would do
		return err
	}
	w.tasks, w.procs = 0, 0
	for part := traces.Training; part <= traces.Test; part++ {
		for k := range w.graphs.Count(part) {
			g, own, err := w.graphs.At(part, 0, k)
			if err != nil {
				return err
			}
			procs, err := w.usable(cfg, g, own)
			if err != nil {
				return fmt.Errorf("%s: %w", w.graphs.Place(part, k), err)
			}
			w.tasks, w.procs = max(w.tasks, g.Len()), max(w.procs, procs)
		}
	}
	return nil
}

// usable says why the environment cannot use graph g, and on how many processors it runs.
func (w *Workload) usable(cfg *Config, g *dag.Graph, own *dag.Platform) (procs int, err error) {
	p := own
	if p == nil {
		p = w.platform
	}
	if p != nil {
		if err := fits(cfg, g.Len(), p.Len()); err != nil {
			return 0, err
		}
		_, err := dag.NewProblem(g, p)
		return p.Len(), err
	}
	if err := fits(cfg, g.Len(), cfg.GPUs); err != nil {
		return 0, err
	}
	for i := range int32(g.Len()) {
		switch t := g.Task(i); {
		case t.Cost != nil:
			return 0,
				fmt.Errorf(
					"task %s has a cost for each of %d processors, but the file has no processors; want both, or work in place of "+
						"costs", t.ID, len(t.Cost))
		case t.Types != nil:
			return 0,
				fmt.Errorf("task %s runs on %s only, and drawn processors have no type; want processors in the file, or a platform",
					t.ID, strings.Join(t.Types, ", "))
		}
	}
	return cfg.GPUs, nil
}

// fits says whether a graph of n tasks on m processors is within the environment's bounds.
func fits(cfg *Config, n, m int) error {
	switch {
	case n > maxTasks:
		return fmt.Errorf("it has %d tasks, want at most %d", n, maxTasks)
	case m > maxGPUs:
		return fmt.Errorf("it has %d processors, want at most %d", m, maxGPUs)
	case cfg.Slots == 0 && m > cfg.GPUs:
		return fmt.Errorf(
			"it has %d processors, want at most gpus = %d; or slots, the number of processors offered for a task", m, cfg.GPUs)
	case float64(n)*float64(m) > maxPairs:
		return fmt.Errorf("it has %d tasks on %d processors, want at most %d pairs of a task and a processor", n, m, maxPairs)
	}
	return nil
}

// Largest returns the number of tasks of the largest graph and of processors of the largest platform.
func (w *Workload) Largest() (tasks, procs int) { return w.tasks, w.procs }

// SHA256 returns the digest, in hexadecimal digits, of the graphs and the platform.
func (w *Workload) SHA256() string { return w.sha }

// Count returns how many episodes part p of the workload names by Window: its graphs, 0 where they are generated.
func (w *Workload) Count(p traces.Part) int {
	if w.graphs == nil {
		return 0
	}
	return w.graphs.Count(p)
}

// NewRecorded returns the environment over workload w, for which NewWorkload was called with the same cfg; w nil is
// New. part is the one from which episodes come that name none (env.Episode.Split). Episode.Window is the number of a
// graph of the part, -1 = drawn from the seed.
func NewRecorded(cfg Config, w *Workload, part traces.Part) (*Env, error) {
	e, err := New(cfg)
	if err != nil {
		return nil, err
	}
	e.work, e.part = w, part
	return e, nil
}

// recorded returns the problem of episode ep of a workload, and ep with its part named. src belongs to the episode.
func (e *Env) recorded(ctx context.Context, ep env.Episode, src *rand.Rand) (*dag.Problem, error) {
	w := e.work
	var g *dag.Graph
	var own *dag.Platform
	if w.graphs != nil {
		part, _, err := sched.SplitPart(ID, ep.Split, e.part)
		if err != nil {
			return nil, err
		}
		if g, own, err = w.graphs.At(part, ep.Seed, ep.Window); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", env.ErrEpisode, ID, err)
		}
	}
	gc, pc := e.cfg.draw(src)
	p := own
	if p == nil {
		p = w.platform
	}
	if p == nil {
		var err error
		if p, err = synth.Platform(pc, src); err != nil {
			return nil, fmt.Errorf("%s: %w", ID, err)
		}
	}
	if g == nil {
		q, err := synth.ProblemContext(ctx, gc, p, ID, src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ID, err)
		}
		return q, nil
	}
	if own == nil && (w.platform == nil || g.Bytes() == 0) {
		g = carry(g, p, gc.CCR, src)
	}
	q, err := dag.NewProblem(g, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ID, err)
	}
	return q, nil
}

// carry scales what the edges of g carry so that the mean transfer between two processors of p takes ccr times the mean
// run time. Where they carry nothing, it draws that first.
func carry(g *dag.Graph, p *dag.Platform, ccr float64, src *rand.Rand) *dag.Graph {
	second := p.MeanCost(dag.Pairs).Of(1) // of one byte
	if g.Edges() == 0 || second == 0 {
		return g
	}
	work, inverse := 0.0, 0.0
	for i := range int32(g.Len()) {
		work += g.Task(i).Work / float64(g.Len())
	}
	for k := range p.Len() {
		inverse += 1 / p.Processor(k).Speed / float64(p.Len())
	}
	if g.Bytes() == 0 {
		g = g.WithBytes(func(_, _ int32, _ float64) float64 { return src.ExpFloat64() })
	}
	factor := ccr * work * inverse / (g.Bytes() / float64(g.Edges()) * second)
	return g.WithBytes(func(_, _ int32, old float64) float64 { return old * factor })
}

// planned is the stream of planners that draw.
func planned(seed uint64) *rand.Rand { return rng.Stream(seed, ID+"/plan") }
