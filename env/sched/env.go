package sched

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/sim"
	"clustergym/internal/rng"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// Parts holds the parts of an environment. Slots, Encoder, Actions and the rewards belong to that environment alone
// afterwards; Windows may be shared.
type Parts struct {
	ID        string
	Sim       sim.Config
	Cluster   cluster.Spec
	Placement string // of the warm-up and the baselines
	Windows   Windows
	Part      traces.Part // of the workload, for episodes without a Split
	Models    *profile.Mix
	MaxGPUs   int // of the jobs that the agent may start, where the environment follows facts; 0 = any
	Slots     Slots
	Running   int    // R, running jobs that are visible (State.Running)
	Stops     *Stops // which of them actions can stop; nil = none
	Encoder   Encoder
	Actions   Actions
	Reward    Reward
	Baseline  Reward // a second instance of the same reward, for Config.Relative; else nil
}

// Windows returns the jobs of an episode: the counted ones and those before them. *traces.Windows is the usual
// implementation. The slices may be shared and must not be changed.
type Windows interface {
	At(p traces.Part, seed uint64, window int) (warm, counted []traces.Job, first int, err error)
}

// Env is a scheduling environment assembled from Parts. Not safe for concurrent use.
type Env struct {
	cfg   Config
	parts Parts
	spec  env.Spec
	est   sim.Estimates
	sim   *sim.Simulator
	state State
	gangs gangs
	win   Window

	stream  traces.Slice
	warm    heuristic.Policy
	whole   Baseline // plays Simulate's episodes on sim
	account account
	redraw  *Redraw
	carry   float64 // earned before the first decision
	base    *relative

	shell   Shell
	seed    uint64  // of the episode
	done    int     // counted jobs that have finished
	jct     float64 // seconds, summed over finished counted jobs
	wait    float64
	slow    float64
	last    time.Duration // latest counted finish
	dec     sim.Decision
	point   *sim.Point // the current one
	pilot   Pilot      // nil if actions are decisions
	renewer Renewer    // the encoder, if it is a Renewer; else nil
	mask    []bool     // of the current time step
	books   Follower   // the encoder, nil if it keeps no books
	shown   int        // how many events of the current point's decisions it has been shown
	watch   sim.Observer
	seen    func(*sim.Point) // e.warmed, kept here so that episodes do not allocate it
	steer   steering
}

var (
	_ env.Env         = (*Env)(nil)
	_ Decider         = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
)

// The columns of Info. Means are over the counted jobs that have finished; they are NaN before the episode's end.
const (
	InfoDiscount = iota
	InfoJCT
	InfoWait
	InfoSlowdown
	InfoMakespan
	InfoUnfinished
	infoLen
)

func infoFields() []env.Field {
	inf := float32(math.Inf(1))
	return []env.Field{
		{Name: "discount", Low: 0, High: 1, Unit: "fraction", Doc: "gamma^(elapsed/tau): what the value after this step counts for"},
		{Name: "jct_s", High: inf, Unit: "seconds", Doc: "mean job completion time; at the end", Metric: true},
		{Name: "wait_s", High: inf, Unit: "seconds", Doc: "mean time not on GPUs; at the end", Metric: true},
		{Name: "slowdown", High: inf, Unit: "ratio", Doc: "mean JCT / work; at the end", Metric: true},
		{Name: "makespan_s", High: inf, Unit: "seconds", Doc: "last finish − first submit; at the end", Metric: true},
		{Name: "unfinished", High: inf, Unit: "jobs", Doc: "counted jobs that had not finished at the end", Metric: true},
	}
}

// New assembles an environment.
func New(cfg Config, p Parts) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	est := cfg.Estimates
	var err error
	if p.Sim.Predictor, err = Predictor(p.Windows, est, cfg.Forecast); err != nil {
		return nil, err
	}
	s, err := NewSimulator(p.Sim, p.Cluster)
	if err != nil {
		return nil, err
	}
	e := &Env{cfg: cfg, parts: p, est: est, sim: s, gangs: gangs{rows: p.Running, stops: p.Stops}}
	if e.warm, err = fifoSkip(p.Placement); err != nil {
		return nil, err
	}
	e.whole = Baseline{sim: s, warm: e.warm, stops: p.Stops}
	e.renewer, _ = p.Encoder.(Renewer)
	e.account = newAccount(p.Reward, cfg.Gamma, cfg.Tau)
	e.state = State{View: s.View(), Estimates: est, Blind: est.Mode == sim.EstimateNone}
	e.spec = env.Spec{
		ID: p.ID, Obs: p.Encoder.Fields(), Action: p.Actions.Spec(), Info: infoFields(), MaxSteps: cfg.MaxSteps,
		Solved: math.NaN(), NoOp: p.Actions.NoOp(), Tau: cfg.Tau,
	}
	e.shell, e.steer.Facts = NewShell(e.spec), NewFacts(p.ID, s, e.showWatcher)
	e.pilot, _ = p.Actions.(Pilot)
	e.books, _ = p.Encoder.(Follower)
	e.mask = make([]bool, e.spec.MaskLen())
	e.seen = e.warmed
	e.redraw = NewRedraw("sched/redraw", p.Windows)
	if cfg.Relative != "" || cfg.Contested {
		if e.base, err = newRelative(e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Spec implements env.Env.
func (e *Env) Spec() env.Spec { return e.spec }

// State returns what the encoder sees, for rules that act through the action space. It is valid after Reset and until the
// next Step.
func (e *Env) State() *State { return &e.state }

// Config returns the settings that the environment was made with.
func (e *Env) Config() Config { return e.cfg }

// Parts returns the parts that the environment was made of. They belong to it.
func (e *Env) Parts() Parts { return e.parts }

// Stops reports whether actions can stop running jobs.
func (e *Env) Stops() bool { return e.parts.Stops != nil }

// Rows returns how many running jobs are visible at most (Parts.Running).
func (e *Env) Rows() int { return e.parts.Running }

// Window returns what stays the same throughout the current episode.
func (e *Env) Window() *Window { return &e.win }

// Close implements env.Env.
func (e *Env) Close() error { return e.shell.Close() }

// Reset implements env.Env.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	if ep.Task != nil {
		return fmt.Errorf("%w: %s: this environment has no tasks, got one of %d numbers", env.ErrEpisode, e.spec.ID, len(ep.Task))
	}
	part, split, err := SplitPart(e.spec.ID, ep.Split, e.parts.Part)
	if err != nil {
		return err
	}
	decides, err := e.redraw.Find(ep, part, func(ep env.Episode) (bool, error) { return e.begin(ctx, ep, part) })
	switch {
	case err != nil:
		return err
	case !decides && ep.Window < 0:
		return fmt.Errorf("%w: %s: %s", ErrUndecided, e.spec.ID, e.Undecided())
	case !decides:
		return fmt.Errorf("%w: %s: the window starting at job %q ends before its first decision", ErrUndecided, e.spec.ID, e.win.Traced[e.win.First].ID)
	}
	ep.Split = split
	e.shell.Begin(ep)
	e.fill(ts, 0, 0, env.First)
	return nil
}

// Decides implements Decider.
func (e *Env) Decides(ctx context.Context) (bool, error) {
	if err := e.shell.Leave(); err != nil {
		return false, err
	}
	return e.redraw.Some(e.parts.Part, env.Episode{}, func(ep env.Episode) (bool, error) { return e.begin(ctx, ep, e.parts.Part) })
}

// Undecided implements Decider.
func (e *Env) Undecided() string {
	if e.cfg.Horizon > 0 {
		return "every window ends before its first decision; want a longer horizon, or fewer jobs before the window (warm)"
	}
	return "every window ends before its first decision, because jobs run beyond the end of the clock, 146 years; want shorter jobs"
}

// begin runs the episode up to the first decision, and reports whether there is one.
func (e *Env) begin(ctx context.Context, ep env.Episode, part traces.Part) (bool, error) {
	e.seed = ep.Seed
	if err := e.draw(ctx, ep, part); err != nil {
		return false, err
	}
	e.done, e.jct, e.wait, e.slow, e.last = 0, 0, 0, 0, 0
	e.stream.ResetAt(e.win.Traced, e.win.Origin)
	if err := e.sim.Reset(&e.stream); err != nil {
		return false, err
	}
	e.steer.on = false
	e.blank(ep.Seed)
	e.parts.Reward.Reset(&e.win)
	if r, ok := e.watch.(interface{ Reset() }); ok {
		r.Reset()
	}
	p, err := warmUp(ctx, e.sim, e.warm, &e.dec, e.win.First, e.seen)
	if err != nil {
		return false, err
	}
	if e.cfg.Relative != "" {
		if err := e.base.record(ctx, e, p); err != nil {
			return false, err
		}
	}
	e.account.begin(e.win.Begin)
	e.follow(p)
	kind, err := e.run(ctx)
	if err != nil {
		return false, err
	}
	if kind.Last() {
		return false, nil
	}
	e.carry = e.account.sum
	if e.cfg.Relative != "" {
		e.carry -= e.base.line.take(&e.account, e.win.Begin, e.state.View.Now())
	}
	return true, nil
}

// blank is the state before the first event.
func (e *Env) blank(seed uint64) {
	e.state.Waiting, e.state.WaitingGPUs, e.state.WaitingWork, e.state.WaitingSince = 0, 0, 0, 0
	e.state.LastArrival, e.state.LastFinish = 0, 0
	e.state.Slots, e.state.Fits, e.state.Picked = e.state.Slots[:0], e.state.Fits[:0], e.state.Picked[:0]
	e.state.Running, e.state.Stops = e.state.Running[:0], e.state.Stops[:0]
	e.state.Seed = seed
	e.parts.Slots.Reset()
	e.parts.Encoder.Reset(&e.state)
	e.shown = 0
}

// draw chooses the episode's jobs.
func (e *Env) draw(ctx context.Context, ep env.Episode, part traces.Part) error {
	for try := uint64(0); ; try++ {
		if err := e.prepare(ep, part, try); err != nil {
			return err
		}
		// Only training windows that are drawn from the seed are drawn again, at most a hundred times.
		if !e.cfg.Contested || ep.Window >= 0 || part != traces.Training || try == 99 {
			return nil
		}
		contested, err := e.base.contested(ctx, e)
		if contested || err != nil {
			return err
		}
	}
}

// prepare fills e.win with the jobs of draw number try: the window and those before it, with submit times stretched.
func (e *Env) prepare(ep env.Episode, part traces.Part, try uint64) error {
	draw := ep.Seed
	if try > 0 {
		draw = rng.At(ep.Seed, rng.Hash("contested"), try)
	}
	warm, counted, at, err := e.parts.Windows.At(part, draw, ep.Window)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", env.ErrEpisode, e.spec.ID, err)
	}
	f := 1.0
	if e.cfg.Load > 0 {
		f = traces.LoadFactor(counted, e.sim.View().Cluster().GPUs(), e.cfg.Load)
	}
	e.win = Window{At: at, First: len(warm), Jobs: len(counted), GPUs: e.sim.View().Cluster().GPUs(), Tau: e.cfg.Tau, Traced: e.win.Traced[:0]}
	first := counted[0].Submit
	if len(warm) > 0 {
		first = warm[0].Submit
	}
	e.win.Origin = first
	for _, part := range [2][]traces.Job{warm, counted} {
		for i := range part {
			e.win.Traced = append(e.win.Traced, part[i])
			j := &e.win.Traced[len(e.win.Traced)-1]
			j.Submit = stretched(j.Submit-first, f)
		}
	}
	e.win.Begin = e.win.Traced[e.win.First].Submit
	e.est.Seed = ep.Seed
	return nil
}

// warmed updates the state after a point.
func (e *Env) warmed(p *sim.Point) {
	for i := range p.Events {
		e.event(&p.Events[i])
	}
	e.book(p.Events)
	e.shown = 0
}

// book shows the encoder those events that it has not seen. The first are those of decisions at one point.
func (e *Env) book(events []sim.Event) {
	if e.books != nil && len(events) > e.shown {
		e.books.Follow(&e.state, events[e.shown:])
	}
	e.shown = len(events)
}

// follow pays the reward up to p and updates the state.
func (e *Env) follow(p *sim.Point) {
	e.point = p
	e.showWatcher(p)
	e.account.point(e.state.View, p)
	e.warmed(p)
}

// showWatcher shows the watcher a point.
func (e *Env) showWatcher(p *sim.Point) {
	if e.watch != nil {
		_ = e.watch.Observe(e.state.View, p)
	}
}

// event updates the state after one event.
func (e *Env) event(ev *sim.Event) {
	v, s := e.state.View, &e.state
	switch ev.Kind {
	case sim.Submit:
		s.LastArrival = ev.At
		e.learn(ev.Job)
		if s.Known[ev.Job].Counted {
			e.enqueue(ev.Job)
		}
	case sim.Preempt, sim.Fail:
		if s.Known[ev.Job].Counted {
			if e.gangs.stops != nil {
				e.renew(ev.Job)
			}
			e.enqueue(ev.Job)
		}
	case sim.Finish:
		s.LastFinish = ev.At
		if !s.Known[ev.Job].Counted || e.steer.on {
			return
		}
		t := v.Trace(ev.Job)
		jct := ev.At - t.Submit
		e.done++
		e.last = ev.At
		e.jct += jct.Seconds()
		e.wait += (jct - v.Ran(ev.Job)).Seconds()
		e.slow += float64(jct) / float64(t.Work)
	}
}

// learn computes what a policy may know about j.
func (e *Env) learn(j sim.Job) {
	s, t := &e.state, e.state.View.Trace(j)
	for int(j) >= len(s.Known) {
		s.Known = append(s.Known, Known{})
	}
	k := Known{
		Estimate: e.est.Of(s.View, j), GPUs: float64(t.Milli()) / 1000, Submit: t.Submit,
		Counted: s.View.Pos(j) >= e.win.First, Plain: s.View.Request(j).Plain(),
	}
	if e.steer.on && e.parts.MaxGPUs > 0 && t.GPUs > e.parts.MaxGPUs {
		k.Counted = false // a workload would not have it
	}
	k.Rest = k.Estimate
	k.Area = float64(k.Rest) * k.GPUs
	if s.Blind {
		k.Area = k.GPUs
	}
	s.Known[j] = k
	if k.Counted {
		model, batch := e.parts.Models.Draw(e.seed, t.ID)
		s.ModelMB, s.Batch = model.MB, batch
	}
	e.parts.Encoder.Learn(s, j)
}

// renew computes what is left of j, which was stopped.
func (e *Env) renew(j sim.Job) {
	s := &e.state
	k := &s.Known[j]
	switch {
	case s.Blind:
	case s.Estimates.Mode == sim.EstimateExact:
		k.Rest = max(1, time.Duration(s.View.Left(j)))
	default:
		k.Rest = s.Left(j)
	}
	if !s.Blind {
		k.Area = float64(k.Rest) * k.GPUs
	}
	if e.renewer != nil {
		e.renewer.Renew(s, j)
	}
}

func (e *Env) enqueue(j sim.Job) {
	s := &e.state
	k := &s.Known[j]
	s.Waiting++
	s.WaitingGPUs += k.GPUs
	s.WaitingWork += float64(k.Rest) * k.GPUs
	s.WaitingSince += float64(k.Submit) * k.GPUs
	e.parts.Slots.Add(s, j)
}

func (e *Env) dequeue(j sim.Job) {
	s := &e.state
	k := &s.Known[j]
	s.Waiting--
	s.WaitingGPUs -= k.GPUs
	s.WaitingWork -= float64(k.Rest) * k.GPUs
	s.WaitingSince -= float64(k.Submit) * k.GPUs
	if s.Waiting == 0 {
		s.WaitingGPUs, s.WaitingWork, s.WaitingSince = 0, 0, 0 // drop accumulated rounding errors
	}
	e.parts.Slots.Remove(s, j)
}

// look chooses the visible jobs, but for running ones that no action concerns: fill does.
func (e *Env) look() {
	e.parts.Slots.Fill(&e.state)
	if e.gangs.stops != nil {
		e.gangs.fill(&e.state)
	}
}

// asks reports whether the agent has something to decide: a visible job fits, or a job can be stopped while another waits.
func (e *Env) asks() bool {
	return slices.Contains(e.state.Fits, true) || slices.Contains(e.state.Stops, true)
}

// run advances the clock until the agent has something to decide or the episode ends.
func (e *Env) run(ctx context.Context) (env.Kind, error) {
	v := e.state.View
	for {
		e.look()
		if e.done == e.win.Jobs {
			return env.Terminated, nil
		}
		if v.Over() {
			return env.Truncated, nil
		}
		if e.asks() {
			return env.Mid, nil
		}
		if err := e.goOn(ctx); err != nil {
			return 0, err
		}
		if e.overdue() {
			e.look()
			return env.Truncated, nil
		}
	}
}

// overdue reports whether the horizon has passed before the last counted job finished.
func (e *Env) overdue() bool {
	return e.cfg.Horizon > 0 && e.state.View.Now() >= sim.After(e.win.Begin, e.cfg.Horizon) && e.done < e.win.Jobs
}

// runPilot lets the pilot's scheduler decide until its time is up and a visible job fits, or the episode ends.
func (e *Env) runPilot(ctx context.Context) (env.Kind, error) {
	v := e.state.View
	sch, until := e.pilot.Pilot()
	sch.Reset(v)
	for {
		for {
			e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
			if err := sch.Decide(v, e.point, &e.dec); err != nil {
				return 0, err
			}
			if e.dec.Op == sim.Wait {
				break
			}
			if err := e.sim.Apply(&e.dec); err != nil {
				return 0, err
			}
			if e.dec.Op == sim.StartJob {
				e.dequeue(e.dec.Job)
			}
		}
		if err := e.goOn(ctx); err != nil {
			return 0, err
		}
		kind := env.Mid
		switch {
		case e.done == e.win.Jobs:
			kind = env.Terminated
		case v.Over() || e.overdue():
			kind = env.Truncated
		case v.Now() < until:
			continue
		}
		e.look()
		if kind.Last() || slices.Contains(e.state.Fits, true) {
			return kind, nil
		}
	}
}

// goOn advances the clock to the next event or the horizon.
func (e *Env) goOn(ctx context.Context) error {
	d := sim.Decision{Op: sim.Wait}
	if e.cfg.Horizon > 0 {
		d.Until = sim.After(e.win.Begin, e.cfg.Horizon)
	}
	if err := e.sim.Apply(&d); err != nil {
		return err
	}
	p, err := e.sim.Advance(ctx)
	if err != nil {
		return err
	}
	e.follow(p)
	return nil
}

// Step implements env.Env.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := e.shell.Ready(ctx); err != nil {
		return err
	}
	if err := e.shell.Legal(a, e.mask); err != nil {
		return err
	}
	reward, elapsed, kind, err := e.step(context.Background(), a) // a step is atomic, so it is not cancelled
	if err != nil {
		e.shell.Break() // for example because the workload's stream failed
		return err
	}
	e.fill(ts, reward, elapsed, kind)
	return nil
}

func (e *Env) step(ctx context.Context, a env.Action) (reward float64, elapsed time.Duration, kind env.Kind, err error) {
	v := e.state.View
	from := v.Now()
	e.account.begin(from)
	e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
	decided, err := e.parts.Actions.Decode(a, &e.state, &e.dec)
	if err != nil {
		return 0, 0, 0, err
	}
	kind = env.Mid
	if decided {
		switch {
		case e.pilot != nil:
			if kind, err = e.runPilot(ctx); err != nil {
				return 0, 0, 0, err
			}
		case e.dec.Op == sim.Wait:
			if err := e.goOn(ctx); err != nil {
				return 0, 0, 0, err
			}
		default:
			if err := e.sim.Apply(&e.dec); err != nil {
				return 0, 0, 0, err
			}
			if e.dec.Op == sim.StartJob {
				e.dequeue(e.dec.Job)
			}
		}
		if e.pilot != nil {
			// runPilot has already run to the next decision.
		} else if e.overdue() {
			kind = env.Truncated
			e.look()
		} else if kind, err = e.run(ctx); err != nil {
			return 0, 0, 0, err
		}
	}
	kind = e.shell.Took(a, kind)
	now := v.Now()
	reward = e.account.sum
	if e.cfg.Relative != "" {
		reward -= e.base.line.take(&e.account, from, now)
		if kind == env.Terminated {
			reward -= e.base.line.rest(&e.account, now)
		}
	}
	reward += e.carry
	e.carry = 0
	return reward, now - from, kind, nil
}

// show fills what the agent sees.
func (e *Env) show(ts *env.TimeStep) {
	e.book(e.state.View.DecisionEvents())
	if e.gangs.stops == nil {
		e.gangs.fill(&e.state)
	}
	e.parts.Encoder.Encode(ts.Obs, &e.state)
	e.parts.Actions.Mask(e.mask, &e.state)
	copy(ts.Mask, e.mask)
}

// fill fills the time step.
func (e *Env) fill(ts *env.TimeStep, reward float64, elapsed time.Duration, kind env.Kind) {
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, elapsed
	e.show(ts)
	nan := math.NaN()
	ts.Info[InfoDiscount] = e.spec.Discount(e.cfg.Gamma, elapsed)
	for i := InfoDiscount + 1; i < infoLen; i++ {
		ts.Info[i] = nan
	}
	if !kind.Last() {
		return
	}
	if n := float64(e.done); n > 0 {
		ts.Info[InfoJCT], ts.Info[InfoWait], ts.Info[InfoSlowdown] = e.jct/n, e.wait/n, e.slow/n
		ts.Info[InfoMakespan] = (e.last - e.win.Begin).Seconds()
	}
	ts.Info[InfoUnfinished] = float64(e.win.Jobs - e.done)
}
