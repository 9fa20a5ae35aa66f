package gpupick

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// The columns of Info. Means are over the jobs placed so far.
const (
	InfoDiscount = iota
	InfoCloseness
	InfoCost
	InfoJCT
	InfoWait
	InfoMakespan
)

// Env is the environment. An episode of version 1 ends once the last job has started. Not safe for concurrent use.
type Env struct {
	*sched.Env
	game *game
}

// New returns an environment of version 1 over the windows w. Episodes without a Split are of part.
func New(cfg Config, spec cluster.Spec, w sched.Windows, part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	common := cfg.common()
	if !cfg.Idle {
		common.MaxSteps = 0
	}
	return open(cfg, common, sched.Parts{ID: V1, Cluster: spec, Windows: w, Part: part, Cold: true})
}

// NewOngoing returns an environment of version 2 over the windows w. Episodes without a Split are of part.
func NewOngoing(cfg Ongoing, spec cluster.Spec, w sched.Windows, part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	common := cfg.common()
	common.Warm = cfg.Warm
	return open(cfg.Config, common, sched.Parts{
		ID: ID, Cluster: spec, Windows: w, Part: part, Placement: cfg.Placement, Admission: "strict",
	})
}

// common returns the settings that other environments have too.
func (c *Config) common() sched.Config {
	s := sched.DefaultConfig()
	s.Gamma, s.Window, s.Warm, s.Load, s.Estimates, s.Forecast = c.Gamma, c.Window, 0, c.Load, c.Estimates, c.Forecast
	s.MaxSteps, s.Mode = c.MaxSteps, c.Mode
	return s
}

// open returns the environment of parts, which lack what is the same in both versions.
func open(cfg Config, common sched.Config, parts sched.Parts) (*Env, error) {
	est := cfg.Estimates
	c, err := cluster.New(parts.Cluster)
	if err != nil {
		return nil, err
	}
	if err := suits(c); err != nil {
		return nil, err
	}
	g := &game{cfg: cfg}
	g.picks = newPicks(&g.cfg, est, c)
	g.picks.seen = encode.ForecastsOf(cfg.Forecast, est, c.GPUs())
	parts.Sim, parts.MaxGPUs, parts.PerStep, parts.Starts = sim.Config{Comm: cfg.Comm}, cfg.MaxGPUs, true, true
	parts.Slots, parts.Encoder, parts.Actions = g, encoder{g}, g
	parts.Score = &closeness{ongoing: cfg.Mode == sched.Ongoing}
	e, err := sched.New(common, parts)
	return &Env{e, g}, err
}

// game is the jobs in order of submit, and the picks of the next: slots, actions and encoder of the environment.
type game struct {
	cfg    Config
	queue  []sim.Job // waiting jobs in order of submit, from index head on
	head   int
	tail   int // a position that no waiting job is behind
	picks  *Picks
	moment int           // the picks are those of this moment
	last   []cluster.GPU // scratch of Pick
}

var (
	_ sched.Slots   = (*game)(nil)
	_ sched.Actions = (*game)(nil)
	_ sched.Encoder = encoder{}
	_ sched.Teller  = (*game)(nil)
	_ sched.Asker   = (*game)(nil)
)

// Reset implements sched.Slots.
func (g *game) Reset() { g.queue, g.head, g.moment = g.queue[:0], 0, -1 }

// Add implements sched.Slots: a job takes its place in order of submit, which is the end unless it was stopped.
func (g *game) Add(s *sched.State, j sim.Job) {
	if g.head > 64 && g.head > len(g.queue)/2 {
		g.queue = append(g.queue[:0], g.queue[g.head:]...)
		g.head = 0
	}
	i, pos := len(g.queue), s.View.Pos(j)
	if i > g.head && pos < g.tail { // one lookup a job where ten thousand come in order
		for i > g.head && s.View.Pos(g.queue[i-1]) > pos {
			i--
		}
	} else {
		g.tail = pos
	}
	g.queue = slices.Insert(g.queue, i, j)
}

// Remove implements sched.Slots.
func (g *game) Remove(_ *sched.State, j sim.Job) {
	switch i := slices.Index(g.queue[g.head:], j); {
	case i == 0:
		g.head++
	case i > 0:
		g.queue = slices.Delete(g.queue, g.head+i, g.head+i+1)
	}
}

// Fill implements sched.Slots: the job whose turn it is.
func (g *game) Fill(s *sched.State) {
	s.Slots, s.Fits = s.Slots[:0], s.Fits[:0]
	if j := g.next(); j >= 0 {
		s.Slots, s.Fits = append(s.Slots, j), append(s.Fits, s.View.Fits(j))
	}
}

// next returns the job whose turn it is, -1 = nobody waits.
func (g *game) next() sim.Job {
	if g.head < len(g.queue) {
		return g.queue[g.head]
	}
	return -1
}

// turn begins the picks of the next job, unless they have begun at this moment.
func (g *game) turn(s *sched.State) {
	if j := g.next(); g.moment != s.Moment || g.picks.job != j {
		g.picks.Begin(s.View, j)
		g.moment, s.Picked = s.Moment, s.Picked[:0]
	}
}

// Spec implements sched.Actions.
func (g *game) Spec() env.ActionSpec { return env.ActionSpec{Sizes: []int{len(g.picks.taken) + 1}} }

// NoOp implements sched.Actions.
func (g *game) NoOp() int {
	if g.cfg.Idle {
		return len(g.picks.taken)
	}
	return -1
}

// Mask implements sched.Actions.
func (g *game) Mask(dst []bool, s *sched.State) (legal int) {
	g.turn(s)
	g.picks.Mask(dst)
	if g.picks.job >= 0 {
		dst[len(dst)-1] = g.cfg.Idle && len(g.picks.picked) == 0 && s.View.CanWait()
	}
	for _, ok := range dst {
		if ok {
			legal++
		}
	}
	return legal
}

// Decode implements sched.Actions: the last pick starts the job.
func (g *game) Decode(a env.Action, s *sched.State, d *sim.Decision) (bool, error) {
	g.turn(s)
	k := int(a.Disc[0])
	if k == len(g.picks.taken) {
		return true, nil // time passes
	}
	done := g.picks.Pick(cluster.GPU(k))
	if s.Picked = append(s.Picked[:0], g.picks.picked...); done {
		d.Op, d.Job, d.GPUs = sim.StartJob, g.picks.job, append(d.GPUs[:0], g.picks.picked...)
	}
	return done, nil
}

// Tell implements sched.Teller.
func (g *game) Tell() string {
	if g.picks.job < 0 {
		return "No job waits"
	}
	return fmt.Sprintf("Pick %d of %d", len(g.picks.picked)+1, g.picks.n)
}

// Asked implements sched.Asker.
func (g *game) Asked() string { return fmt.Sprintf("pick %d", g.picks.n-len(g.picks.picked)) }

// Fields implements sched.Encoder.
func (g *game) Fields() []env.Field { return g.picks.Fields() }

// Encode implements sched.Encoder.
func (g *game) Encode(dst []float32, s *sched.State) {
	g.turn(s)
	g.picks.Encode(dst)
}

// encoder is game as a sched.Encoder, whose Reset is another one.
type encoder struct{ *game }

// Reset implements sched.Encoder.
func (x encoder) Reset(s *sched.State) {
	x.picks.est.Seed = s.Seed
	x.picks.seen.Reset()
}

// Learn implements sched.Encoder.
func (g *game) Learn(s *sched.State, j sim.Job) {
	g.picks.seen.Learn(s.View, j, s.Known[j].Estimate)
}

// closeness is the score: what the last pick of a job pays, and the sums over the jobs placed.
type closeness struct {
	ongoing                    bool
	view                       *sim.View
	begin                      time.Duration
	paid                       float64
	placed                     int
	closeness, cost, jct, wait float64
	end                        time.Duration
}

var _ sched.Score = (*closeness)(nil)

// Fields implements sched.Score.
func (x *closeness) Fields() []env.Field {
	inf := float32(math.Inf(1))
	span := "last finish − first submit; at the end"
	if x.ongoing {
		span = "length of the episode; at the end"
	}
	return []env.Field{
		{Name: "closeness", High: 1, Unit: "fraction",
			Doc: "mean of 1 − (cost − best)/(worst − best) over the jobs placed, 0 for those of one GPU", Metric: true},
		{Name: "comm_cost", High: inf, Unit: "tree cost", Doc: "mean communication cost of the jobs placed", Metric: true},
		{Name: "jct_s", High: inf, Unit: "seconds", Doc: "mean job completion time; at the end", Metric: true},
		{Name: "wait_s", High: inf, Unit: "seconds", Doc: "mean time not on GPUs; at the end", Metric: true},
		{Name: "makespan_s", High: inf, Unit: "seconds", Doc: span, Metric: true},
	}
}

// Begin implements sched.Score.
func (x *closeness) Begin(_ context.Context, e *sched.Env, _ env.Episode, _ *sim.Point) error {
	*x = closeness{ongoing: x.ongoing, view: e.View(), begin: e.Window().Begin}
	return nil
}

// Point implements sched.Score.
func (*closeness) Point(*sim.Point) {}

// Start implements sched.Score.
func (x *closeness) Start() { x.paid = 0 }

// Decided implements sched.Score. Nothing can stop a job or slow it down, so its end is known when it starts.
func (x *closeness) Decided(d *sim.Decision) {
	c, n := x.view.Cluster(), len(d.GPUs)
	cost, best, worst := c.Cost(d.GPUs), c.BestCost(n), c.WorstCost(n)
	if worst > best {
		x.paid = 1 - (cost-best)/(worst-best)
	}
	t := x.view.Trace(d.Job)
	runs := float64(t.Work) / x.view.Rate(d.Job) / 1e9
	wait := (x.view.Now() - t.Submit).Seconds()
	x.placed++
	x.closeness += x.paid
	x.cost += cost
	x.wait += wait
	x.jct += wait + runs
	x.end = max(x.end, x.view.Now()+time.Duration(runs*1e9))
}

// Pay implements sched.Score.
func (x *closeness) Pay(env.Kind) float64 { return x.paid }

// Infos implements sched.Score.
func (x *closeness) Infos(dst []float64, kind env.Kind) {
	if x.placed == 0 {
		return
	}
	n := float64(x.placed)
	dst[InfoCloseness-1], dst[InfoCost-1] = x.closeness/n, x.cost/n
	if kind.Last() {
		dst[InfoJCT-1], dst[InfoWait-1], dst[InfoMakespan-1] = x.jct/n, x.wait/n, x.end.Seconds()
		if x.ongoing {
			dst[InfoMakespan-1] = (x.view.Now() - x.begin).Seconds()
		}
	}
}
