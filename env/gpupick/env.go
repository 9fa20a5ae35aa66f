package gpupick

import (
	"context"
	"math"
	"time"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/encode"
	"clustergym/env/sched"
	"clustergym/env/sim"
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
	infoLen
)

// Env is the environment. Not safe for concurrent use.
type Env struct {
	cfg     Config
	spec    env.Spec
	est     sim.Estimates
	sim     *sim.Simulator
	view    *sim.View
	shell   sched.Shell
	session *sched.Session

	queue  []sim.Job // waiting jobs in order of submit, from index head on
	head   int
	picks  *Picks // of the job at head
	placed int
	dec    sim.Decision
	last   []cluster.GPU     // scratch of Pick
	seen   *encode.Forecasts // nil = they are not shown

	closeness, cost, jct, wait float64 // sums over placed jobs
	end                        time.Duration
	steer                      steering
}

var (
	_ sched.Arena     = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
)

// New returns an environment over the windows w. Episodes without a Split are of part.
func New(cfg Config, spec cluster.Spec, w sched.Windows, part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	est := cfg.Estimates
	maker, err := sched.Predictor(w, est, cfg.Forecast)
	if err != nil {
		return nil, err
	}
	s, err := sched.NewSimulator(sim.Config{Comm: cfg.Comm, Predictor: maker}, spec)
	if err != nil {
		return nil, err
	}
	c := s.View().Cluster()
	if err := suits(c); err != nil {
		return nil, err
	}
	e := &Env{cfg: cfg, est: est, sim: s, view: s.View(), session: sched.NewSession(ID, s, w, part, cfg.Load)}
	if cfg.Forecast.Shown(est) {
		e.seen = encode.NewForecasts(est, c.GPUs())
	}
	e.picks = newPicks(&e.cfg, est, c)
	e.picks.seen = e.seen
	e.spec = e.describe(c.GPUs())
	e.shell, e.steer.Facts = sched.NewShell(e.spec), sched.NewFacts(ID, s, e.session.Show)
	return e, nil
}

func (e *Env) describe(gpus int) env.Spec {
	inf := float32(math.Inf(1))
	s := env.Spec{
		ID:     ID,
		Obs:    e.picks.Fields(),
		Action: env.ActionSpec{Sizes: []int{gpus + 1}},
		Info: []env.Field{
			{Name: "discount", High: 1, Unit: "fraction", Doc: "gamma: what the value after this step counts for"},
			{Name: "closeness", High: 1, Unit: "fraction", Doc: "mean of 1 − (cost − best)/(worst − best) over the jobs placed, 0 for those of one GPU", Metric: true},
			{Name: "comm_cost", High: inf, Unit: "tree cost", Doc: "mean communication cost of the jobs placed", Metric: true},
			{Name: "jct_s", High: inf, Unit: "seconds", Doc: "mean job completion time; at the end", Metric: true},
			{Name: "wait_s", High: inf, Unit: "seconds", Doc: "mean time not on GPUs; at the end", Metric: true},
			{Name: "makespan_s", High: inf, Unit: "seconds", Doc: "last finish − first submit; at the end", Metric: true},
		},
		Solved: math.NaN(), NoOp: -1,
	}
	if e.cfg.Idle {
		s.NoOp, s.MaxSteps = gpus, e.cfg.MaxSteps
	}
	return s
}

// Spec implements env.Env.
func (e *Env) Spec() env.Spec { return e.spec }

// View implements sched.Arena.
func (e *Env) View() *sim.View { return e.view }

// Watch implements sched.Arena. The episode ends once the last job has started. If there is a watcher, the simulator then
// runs on to the last finish, and View shows that state.
func (e *Env) Watch(o sim.Observer) { e.session.Watch(o) }

// Simulate implements sched.Arena.
func (e *Env) Simulate(ctx context.Context, ep env.Episode, sch sim.Scheduler, o sim.Observer) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	if _, err := e.session.Draw(ep); err != nil {
		return err
	}
	return e.session.Play(ctx, sch, o)
}

// First implements sched.Arena. It returns 0, because episodes begin on an empty cluster and all jobs count.
func (e *Env) First() int { return 0 }

// Close implements env.Env.
func (e *Env) Close() error { return e.shell.Close() }

// Reset implements env.Env.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	named, err := e.session.Draw(ep)
	if err != nil {
		return err
	}
	e.est.Seed, e.picks.est.Seed = ep.Seed, ep.Seed
	if err := e.session.Start(); err != nil {
		return err
	}
	e.clear()
	p, err := e.session.Advance(ctx)
	if err != nil {
		return err
	}
	e.arrive(p)
	if err := e.run(ctx); err != nil {
		return err
	}
	e.turn()
	e.shell.Begin(named)
	e.fill(ts, 0, 0, env.First)
	return nil
}

// clear forgets the jobs of the last episode.
func (e *Env) clear() {
	e.queue, e.head, e.placed = e.queue[:0], 0, 0
	if e.seen != nil {
		e.seen.Reset()
	}
	e.closeness, e.cost, e.jct, e.wait, e.end = 0, 0, 0, 0, 0
}

// run advances the clock until the next job fits, all jobs are placed, or it has run out.
func (e *Env) run(ctx context.Context) error {
	for e.placed < e.session.Len() && !e.view.Over() && (e.head == len(e.queue) || !e.view.Fits(e.queue[e.head])) {
		if err := e.goOn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// goOn advances the clock to the next event.
func (e *Env) goOn(ctx context.Context) error {
	p, err := e.session.Wait(ctx)
	if err != nil {
		return err
	}
	e.arrive(p)
	return nil
}

// arrive puts the jobs that arrive at p in the queue.
func (e *Env) arrive(p *sim.Point) {
	for i := range p.Events {
		if ev := &p.Events[i]; ev.Kind == sim.Submit {
			e.shift()
			e.queue = append(e.queue, ev.Job)
			if e.seen != nil {
				e.seen.Learn(e.view, ev.Job, e.est.Of(e.view, ev.Job))
			}
		}
	}
}

// shift drops the jobs before the head where they are many.
func (e *Env) shift() {
	if e.head > 64 && e.head > len(e.queue)/2 {
		e.queue = append(e.queue[:0], e.queue[e.head:]...)
		e.head = 0
	}
}

// turn begins the picks of the next job.
func (e *Env) turn() {
	j := sim.Job(-1)
	if e.head < len(e.queue) {
		j = e.queue[e.head]
	}
	e.picks.Begin(e.view, j)
}

// mask marks the legal actions.
func (e *Env) mask(dst []bool) {
	e.picks.Mask(dst)
	if e.head < len(e.queue) {
		dst[len(dst)-1] = e.mayIdle()
	}
}

func (e *Env) mayIdle() bool { return e.cfg.Idle && len(e.picks.picked) == 0 && e.view.CanWait() }

// Step implements env.Env.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := e.shell.Ready(ctx); err != nil {
		return err
	}
	k, err := e.shell.Index(a)
	if err != nil {
		return err
	}
	g := int(k)
	if err := e.allows(g); err != nil {
		return err
	}
	from := e.view.Now()
	reward, err := e.step(context.Background(), g) // a step is atomic, so it is not cancelled
	if err != nil {
		e.shell.Break()
		return err
	}
	kind := env.Mid
	switch {
	case e.placed == e.session.Len():
		kind = env.Terminated
	case e.view.Over():
		kind = env.Truncated // the clock has run out
	}
	e.fill(ts, reward, e.view.Now()-from, e.shell.Took(a, kind))
	if kind == env.Terminated {
		return e.session.Finish(context.Background())
	}
	return nil
}

// allows returns the error for an action that the mask forbids.
func (e *Env) allows(g int) error {
	if idle := len(e.picks.taken); g == idle && !e.mayIdle() || g < idle && (e.picks.job < 0 || !e.picks.Legal(cluster.GPU(g))) {
		return e.shell.Masked(int32(g))
	}
	return nil
}

// step picks GPU g, or idles if g is the number of GPUs.
func (e *Env) step(ctx context.Context, g int) (reward float64, err error) {
	if g == len(e.picks.taken) {
		if err := e.goOn(ctx); err != nil {
			return 0, err
		}
		err := e.run(ctx)
		e.turn()
		return 0, err
	}
	if !e.picks.Pick(cluster.GPU(g)) {
		return 0, nil
	}
	j := e.queue[e.head]
	c, picked := e.view.Cluster(), e.picks.GPUs()
	n := len(picked)
	cost, best, worst := c.Cost(picked), c.BestCost(n), c.WorstCost(n)
	if worst > best {
		reward = 1 - (cost-best)/(worst-best)
	}
	e.dec.Op, e.dec.Job, e.dec.Until = sim.StartJob, j, 0
	e.dec.GPUs = append(e.dec.GPUs[:0], picked...)
	if err := e.sim.Apply(&e.dec); err != nil {
		return 0, err
	}
	e.head++
	e.placed++
	// Nothing can stop it or slow it down, so its end is known.
	t := e.view.Trace(j)
	runs := float64(t.Work) / e.view.Rate(j) / 1e9
	wait := (e.view.Now() - t.Submit).Seconds()
	e.closeness += reward
	e.cost += cost
	e.wait += wait
	e.jct += wait + runs
	e.end = max(e.end, e.view.Now()+time.Duration(runs*1e9))
	err = e.run(ctx)
	e.turn()
	return reward, err
}

// fill fills the time step.
func (e *Env) fill(ts *env.TimeStep, reward float64, elapsed time.Duration, kind env.Kind) {
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, elapsed
	e.picks.Encode(ts.Obs)
	e.mask(ts.Mask)
	nan := math.NaN()
	for i := range ts.Info {
		ts.Info[i] = nan
	}
	ts.Info[InfoDiscount] = e.cfg.Gamma
	if e.placed > 0 {
		n := float64(e.placed)
		ts.Info[InfoCloseness], ts.Info[InfoCost] = e.closeness/n, e.cost/n
		if kind.Last() {
			ts.Info[InfoJCT], ts.Info[InfoWait], ts.Info[InfoMakespan] = e.jct/n, e.wait/n, e.end.Seconds()
		}
	}
}

// AppendSnapshot implements env.Snapshotter.
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) { return e.shell.AppendSnapshot(dst) }

// RestoreSnapshot implements env.Snapshotter.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	return e.shell.RestoreSnapshot(e, src, ts)
}
