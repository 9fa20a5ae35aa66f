package dagplace

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/synth"
	"clustergym/traces"
)

// The columns of Info, in seconds.
const (
	InfoMakespan = iota // of the tasks placed so far
	InfoLeader          // HEFT's
	InfoCurrent         // of the plan that is to be improved
)

// Env is DAGPlace-v1. It implements env.Env and env.Snapshotter.
type Env struct {
	cfg   Config
	spec  env.Spec
	work  *Workload   // nil = graphs and platforms are drawn
	part  traces.Part // of work, for episodes that name none
	pcg   rand.PCG
	src   *rand.Rand
	shell sched.Shell

	ep   *episode // nil before the first Reset
	obs  []float32
	mask []bool
}

// episode is the state of one. All that is drawn is drawn at its beginning, so seed and actions say everything.
type episode struct {
	b       *Builder
	enc     *Encoder
	hope    []float64
	unit    float64 // F
	leader  float64
	current float64 // makespan of the plan that is to be improved
	reward  float64 // of the last step
}

var (
	_ env.Env         = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
)

// New returns the environment. Errors name every fault of cfg.
func New(cfg Config) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	k := cfg.actions()
	e := &Env{cfg: cfg, spec: env.Spec{
		ID: ID, Obs: fields(k, cfg.Scale == "local"), Action: env.ActionSpec{Sizes: []int{k}}, MaxSteps: cfg.MaxSteps,
		Info: []env.Field{
			{Name: "makespan_s", Unit: "seconds", Doc: "latest end of the tasks placed so far", Metric: true},
			{Name: "leader_s", Unit: "seconds", Doc: "makespan of the leader, HEFT's", Metric: true},
			{Name: "current_s", Unit: "seconds", Doc: "makespan of the plan that is to be improved"},
		},
		Solved: math.NaN(), NoOp: -1,
	}}
	e.src, e.shell = rand.New(&e.pcg), sched.NewShell(e.spec)
	e.obs, e.mask = make([]float32, e.spec.ObsLen()), make([]bool, e.spec.MaskLen())
	return e, nil
}

// Spec implements env.Env.
func (e *Env) Spec() env.Spec { return e.spec }

// Close makes every later call env.ErrClosed.
func (e *Env) Close() error { return e.shell.Close() }

// Reset begins an episode. It follows from ep.Seed alone or, of a workload of graphs, from ep.Seed, ep.Window and
// ep.Split.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ep, err := e.named(ep)
	if err != nil {
		return err
	}
	e.ep = nil // its matrices can be large, and need not exist beside those of the next episode
	p, err := e.begin(ctx, ep)
	if err != nil {
		return err
	}
	e.ep = p
	e.shell.Begin(ep)
	e.show(ts, env.First)
	return nil
}

// Step places the next task.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := e.shell.Ready(ctx); err != nil {
		return err
	}
	if err := e.shell.Legal(a, e.mask); err != nil {
		return err
	}
	kind := e.ep.step(&e.cfg, a.Disc[0])
	e.show(ts, e.shell.Took(a, kind))
	return nil
}

// show encodes the state.
func (e *Env) show(ts *env.TimeStep, kind env.Kind) {
	p := e.ep
	p.encode(e.obs, e.mask)
	ts.Kind, ts.Reward, ts.Elapsed = kind, p.reward, 0
	copy(ts.Obs, e.obs)
	copy(ts.Mask, e.mask)
	ts.Info[InfoMakespan], ts.Info[InfoLeader], ts.Info[InfoCurrent] = p.b.Makespan(), p.leader, p.current
}

// named checks episode ep and returns it with the part of the workload named, if there is one.
func (e *Env) named(ep env.Episode) (env.Episode, error) {
	if e.work == nil || e.work.graphs == nil {
		if len(ep.Task) > 0 || ep.Split != "" {
			return ep, fmt.Errorf("%w: %s: a task of %d numbers and split %q, want none", env.ErrEpisode, ID, len(ep.Task),
				ep.Split)
		}
		return ep, nil
	}
	if len(ep.Task) > 0 {
		return ep, fmt.Errorf("%w: %s: a task of %d numbers, want none", env.ErrEpisode, ID, len(ep.Task))
	}
	_, split, err := sched.SplitPart(ID, ep.Split, e.part)
	ep.Split = split
	return ep, err
}

// problem returns the problem of episode ep and leaves e.src behind what it has drawn.
func (e *Env) problem(ctx context.Context, ep env.Episode) (*dag.Problem, error) {
	rng.Seed(&e.pcg, ep.Seed, ID)
	if e.work != nil {
		return e.recorded(ctx, ep, e.src)
	}
	graph, platform := e.cfg.draw(e.src)
	p, err := synth.Platform(platform, e.src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ID, err)
	}
	q, err := synth.ProblemContext(ctx, graph, p, ID, e.src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ID, err)
	}
	return q, nil
}

// leader returns HEFT's plan of q: earliest ends by falling rank, into gaps.
func leader(ctx context.Context, q *dag.Problem, byRank []int32) (*Builder, error) {
	lead := NewBuilder(q, byRank, true)
	for lead.Task() >= 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lead.Place(lead.Earliest())
	}
	return lead, nil
}

// begin draws an episode. The plans of a large graph take long, so every task looks at ctx.
func (e *Env) begin(ctx context.Context, ep env.Episode) (*episode, error) {
	q, err := e.problem(ctx, ep)
	if err != nil {
		return nil, err
	}
	src := e.src
	rank := q.UpwardRanks(dag.Pairs, nil)
	byRank := dag.SortedOrder(q.Graph, rank, nil)
	order := byRank
	if e.cfg.Order == "index" {
		order = q.Graph.Order()
	}
	n, m := q.Tasks(), q.Procs()
	p := &episode{hope: make([]float64, n)}

	lead, err := leader(ctx, q, byRank)
	if err != nil {
		return nil, err
	}
	p.leader = lead.Makespan()
	if p.unit = p.leader; p.unit == 0 {
		p.unit = 1
	}
	// The plan to be improved is random, and so is the one that the hopes may be drawn towards. Those of a search put only
	// some tasks at random.
	p.b = NewBuilder(q, order, e.cfg.Insert)
	random := func() ([]int32, error) {
		proc, share := make([]int32, n), 1.0
		if e.cfg.Hopes == "search" {
			share = 0.3 * math.Pow(0.02, src.Float64())
		}
		p.b.Reset()
		for p.b.Task() >= 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			g := int(p.b.Earliest())
			if share == 1 || src.Float64() < share {
				for g = src.IntN(m); math.IsInf(p.b.finish[g], 1); {
					g = src.IntN(m)
				}
			}
			proc[p.b.Task()] = int32(g)
			p.b.Place(int32(g))
		}
		return proc, nil
	}
	other, err := random()
	if err != nil {
		return nil, err
	}
	current, err := random()
	if err != nil {
		return nil, err
	}
	p.current = p.b.Makespan()
	position := func(proc []int32) []float64 {
		loads := make([]float64, n)
		PrefixLoads(q, order, proc, loads, make([]float64, m))
		return loads
	}
	target := position(lead.Plan().Proc)
	pull := NewPull(src.Float64(), src)
	if pull.Random {
		target = position(other)
	}
	pull.Hopes(p.hope, target, position(current), 1, src)
	p.b.Reset()
	slots := e.cfg.Slots
	if e.work != nil {
		slots = e.cfg.actions() // a graph may have fewer processors than there are actions
	}
	p.enc = NewEncoder(q, rank, p.unit, slots, e.cfg.Scale == "local")
	return p, nil
}

// draw is the graph and the platform of an episode.
func (c *Config) draw(src *rand.Rand) (synth.Config, synth.PlatformConfig) {
	g, p := synth.DefaultConfig(), synth.DefaultPlatformConfig()
	g.Kind, g.Tasks, g.Degree, g.CCR = c.Graph, c.Tasks, c.Degree, c.CCR
	p.GPUs, p.Speeds, p.Links = c.GPUs, c.Speeds, c.Links
	if !c.Vary {
		return g, p
	}
	between := func(low, high float64) float64 { return low * math.Pow(high/low, src.Float64()) }
	of := func(names ...string) string { return names[src.IntN(len(names))] }
	g.Kind = of("layered", "fork-join", "erdos", "erdos", "training")
	g.Tasks = max(1, int(between(min(10, float64(c.Tasks)), float64(c.Tasks))))
	g.Degree = between(0.5, 2*max(c.Degree, 0.5))
	g.CCR = between(0.05, 5)
	g.Stages, g.Replicas = 1+src.IntN(8), 1+src.IntN(3)
	p.Speeds = of("spread", "busy", "idle", "equal")
	p.Links = of("equal", "racks", "random")
	if c.Slots > 0 {
		p.GPUs = int(between(2, max(2, float64(c.GPUs))))
	}
	return g, p
}

// step carries out a legal action and returns whether that ends the episode.
func (p *episode) step(c *Config, a int32) env.Kind {
	i, g := p.b.Task(), p.enc.Slots()[a]
	before := p.b.Makespan()
	if c.Reward == "hope" {
		p.reward = -math.Abs(p.hope[i]-(p.b.load[g]+p.b.q.Exec(i, g))) / p.unit
	}
	p.b.Place(g)
	if c.Reward == "makespan" {
		p.reward = -(p.b.Makespan() - before) / p.unit
	}
	if p.b.Task() >= 0 {
		return env.Mid
	}
	if c.Reward == "hope" {
		p.reward += (p.current - p.b.Makespan()) / p.unit
	}
	return env.Terminated
}

// encode shows the state.
func (p *episode) encode(obs []float32, mask []bool) {
	hope := 0.0
	if i := p.b.Task(); i >= 0 {
		hope = p.hope[i]
	}
	p.enc.Encode(obs, mask, p.b, hope)
}
