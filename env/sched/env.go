package sched

import (
	"cmp"
	"context"
	"errors"
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
	Score     Score  // in place of the two, where what is paid is no integral over time; nil = the reward is

	Cold      bool                          // episodes begin on an empty cluster: the jobs before the window are left out
	PerStep   bool                          // the discount applies once a step, not once per Tau
	Starts    bool                          // episodes end when the last counted job has started, not when it has finished
	Suits     func(jobs []traces.Job) error // why the environment cannot play jobs; nil = it can play all
	Filter    Filter                        // of training windows
	Redraw    string                        // the stream of seeds of further windows; "" = sched/redraw
	Undecided string                        // why %s, a window, may leave nothing to decide, and what would be right; "" = see Undecided
}

// Filter says which training windows that are drawn from the seed are drawn again, at most a hundred times.
type Filter struct {
	Stream string                                                       // of the further draws
	Keeps  func(ctx context.Context, e *Env, seed uint64) (bool, error) // whether the window that has been drawn for an episode is taken; nil = every one is
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

	stream traces.Slice
	warm   heuristic.Policy // nil without a warm-up
	whole  Baseline         // plays Simulate's episodes on sim
	score  Score
	redraw *Redraw
	base   *relative // nil if no baseline plays

	shell   Shell
	seed    uint64  // of the episode
	log     bool    // a stream is played, and no episode
	started int     // jobs that have started since the episode began
	done    int     // counted jobs that have finished
	jct     float64 // seconds, summed over finished counted jobs
	wait    float64
	slow    float64
	last    time.Duration // latest counted finish
	dec     sim.Decision
	pilot   Pilot    // nil if actions are decisions
	mind    Mindful  // the actions, nil if they remember nothing
	renewer Renewer  // the encoder, if it is a Renewer; else nil
	mask    []bool   // of the current time step
	books   Follower // the encoder, nil if it keeps no books
	shown   int      // how many events of the current point's decisions it has been shown
	watch   sim.Observer
	seen    func(*sim.Point) // e.warmed, kept here so that episodes do not allocate it
	steer   steering
}

var (
	_ env.Env         = (*Env)(nil)
	_ Decider         = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
)

// New assembles an environment.
func New(cfg Config, p Parts) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	est, err := sim.ParseEstimates(cfg.Estimates)
	if err != nil {
		return nil, err
	}
	if p.Sim.Predictor, err = Predictor(p.Windows, est, cfg.Forecast); err != nil {
		return nil, err
	}
	s, err := NewSimulator(p.Sim, p.Cluster)
	if err != nil {
		return nil, err
	}
	e := &Env{cfg: cfg, parts: p, est: est, sim: s, gangs: gangs{rows: p.Running, stops: p.Stops}}
	if !p.Cold {
		if e.warm, err = fifoSkip(p.Placement); err != nil {
			return nil, err
		}
	}
	e.whole = Baseline{sim: s, warm: e.warm, stops: p.Stops}
	e.renewer, _ = p.Encoder.(Renewer)
	e.state = State{View: s.View(), Estimates: est, Blind: est.Mode == sim.EstimateNone}
	if cfg.Relative != "" || cfg.Contested {
		if e.base, err = newRelative(e); err != nil {
			return nil, err
		}
	}
	if cfg.Contested {
		e.parts.Filter = Filter{"contested", e.base.contested}
	}
	if e.score = p.Score; e.score == nil {
		x := &timed{account: newAccount(p.Reward, cfg.Gamma, cfg.Tau), e: e}
		if cfg.Relative != "" {
			x.base = e.base
		}
		e.score = x
	}
	e.spec = env.Spec{
		ID: p.ID, Obs: p.Encoder.Fields(), Action: p.Actions.Spec(), Info: append([]env.Field{discounted(p.PerStep)}, e.score.Fields()...),
		MaxSteps: cfg.MaxSteps, Solved: math.NaN(), NoOp: p.Actions.NoOp(), Tau: cfg.Tau,
	}
	if p.PerStep {
		e.spec.Tau = 0
	}
	e.shell = NewShell(e.spec)
	e.pilot, _ = p.Actions.(Pilot)
	e.mind, _ = p.Actions.(Mindful)
	e.books, _ = p.Encoder.(Follower)
	e.mask = make([]bool, e.spec.MaskLen())
	e.seen = e.warmed
	e.redraw = NewRedraw(cmp.Or(p.Redraw, "sched/redraw"), p.Windows)
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
		window := fmt.Sprintf("the window starting at job %q", e.win.Traced[e.win.First].ID)
		if e.parts.Undecided != "" {
			return fmt.Errorf("%w: %s: %s", ErrUndecided, e.spec.ID, fmt.Sprintf(e.parts.Undecided, window))
		}
		return fmt.Errorf("%w: %s: %s ends before its first decision", ErrUndecided, e.spec.ID, window)
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
	if e.parts.Undecided != "" {
		return fmt.Sprintf(e.parts.Undecided, "any window")
	}
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
	e.stream.ResetAt(e.win.Traced, e.win.Origin)
	if err := e.open(&e.stream, ep.Seed); err != nil {
		return false, err
	}
	if r := e.sim.Refused(); r.Count > 0 {
		return false, fmt.Errorf("%w: %s: %d jobs of the window do not fit the cluster", env.ErrEpisode, e.spec.ID, r.Count)
	}
	p, err := e.first(ctx)
	if err != nil {
		return false, err
	}
	if err := e.score.Begin(ctx, e, ep, p); err != nil {
		return false, err
	}
	e.follow(p)
	kind, err := e.run(ctx)
	return !kind.Last(), err
}

// first runs to the first point at which a counted job has arrived.
func (e *Env) first(ctx context.Context) (*sim.Point, error) {
	if e.warm == nil {
		return e.sim.Advance(ctx)
	}
	return warmUp(ctx, e.sim, e.warm, &e.dec, e.win.First, e.seen)
}

// open resets the simulator to the beginning of jobs.
func (e *Env) open(jobs traces.Stream, seed uint64) error {
	e.log, e.steer.on, e.state.Facts = false, false, false
	e.started, e.done, e.jct, e.wait, e.slow, e.last = 0, 0, 0, 0, 0, 0
	if err := e.sim.Reset(jobs); err != nil {
		return err
	}
	e.blank(seed)
	if r, ok := e.watch.(interface{ Reset() }); ok {
		r.Reset()
	}
	return nil
}

// blank is the state before the first event.
func (e *Env) blank(seed uint64) {
	e.state.Waiting, e.state.WaitingGPUs, e.state.WaitingWork, e.state.WaitingSince = 0, 0, 0, 0
	e.state.LastArrival, e.state.LastFinish = 0, 0
	e.state.Slots, e.state.Fits, e.state.Picked = e.state.Slots[:0], e.state.Fits[:0], e.state.Picked[:0]
	e.state.Running, e.state.Stops = e.state.Running[:0], e.state.Stops[:0]
	e.state.Seed, e.state.Point = seed, nil
	e.state.Moment++
	e.parts.Slots.Reset()
	e.parts.Encoder.Reset(&e.state)
	e.shown = 0
}

// draw chooses the episode's jobs.
func (e *Env) draw(ctx context.Context, ep env.Episode, part traces.Part) error {
	f := &e.parts.Filter
	for try := uint64(0); ; try++ {
		draw := ep.Seed
		if try > 0 {
			draw = rng.At(ep.Seed, rng.Hash(f.Stream), try)
		}
		if err := e.prepare(ep, part, draw); err != nil {
			return err
		}
		// Only training windows that are drawn from the seed are drawn again; the hundredth is taken as it is.
		if f.Keeps == nil || ep.Window >= 0 || part != traces.Training || try == 99 {
			return nil
		}
		if keeps, err := f.Keeps(ctx, e, ep.Seed); keeps || err != nil {
			return err
		}
	}
}

// prepare fills e.win with the jobs that the seed draw draws: the window and those before it, with submit times stretched.
func (e *Env) prepare(ep env.Episode, part traces.Part, draw uint64) error {
	warm, counted, at, err := e.parts.Windows.At(part, draw, ep.Window)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", env.ErrEpisode, e.spec.ID, err)
	}
	if e.parts.Cold {
		warm = nil
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
	if e.parts.Suits != nil {
		return e.parts.Suits(e.win.Traced)
	}
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
	e.state.Point = p
	e.state.Moment++
	e.showWatcher(p)
	e.score.Point(p)
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
	if e.steer.on && !e.takes(t) {
		k.Counted = false // a workload would not have it
	}
	k.Rest = k.Estimate
	k.Area = float64(k.Rest) * k.GPUs
	if s.Blind {
		k.Area = k.GPUs
	}
	s.Known[j] = k
	if k.Counted && e.parts.Models != nil {
		model, batch := e.parts.Models.Draw(e.seed, t.ID)
		s.ModelMB, s.Batch = model.MB, batch
	}
	e.parts.Encoder.Learn(s, j)
}

// takes reports whether the environment's workload would have a job.
func (e *Env) takes(t *traces.Job) bool {
	return (e.parts.MaxGPUs == 0 || t.GPUs <= e.parts.MaxGPUs) && (e.parts.Suits == nil || e.parts.Suits([]traces.Job{*t}) == nil)
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
	for v, flown := e.state.View, false; ; {
		e.look()
		switch {
		case e.ended():
			return env.Terminated, nil
		case v.Over() || e.overdue():
			return env.Truncated, nil
		case e.asks():
			return env.Mid, nil
		}
		until := time.Duration(0)
		if e.pilot != nil && !flown {
			if sch := e.pilot.Pilot(&e.state); sch != nil {
				var err error
				if until, err = e.fly(sch); err != nil {
					return 0, err
				}
				if flown = true; !e.pilot.Holds() {
					continue
				}
			}
		}
		if err := e.goOn(ctx, until); err != nil {
			return 0, err
		}
		flown = false
	}
}

// ended reports whether nothing is left to decide or to wait for.
func (e *Env) ended() bool {
	switch {
	case e.log:
		return e.state.Waiting == 0 && !e.state.View.Arriving()
	case e.parts.Starts:
		return e.started == e.win.Jobs
	}
	return e.done == e.win.Jobs
}

// overdue reports whether the horizon has passed before the last counted job finished.
func (e *Env) overdue() bool {
	return e.cfg.Horizon > 0 && e.state.View.Now() >= sim.After(e.win.Begin, e.cfg.Horizon) && e.done < e.win.Jobs
}

// fly lets a pilot's scheduler decide until it waits, and returns until when it does; 0 = for the next event.
func (e *Env) fly(sch sim.Scheduler) (until time.Duration, err error) {
	for {
		e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
		if err := sch.Decide(e.state.View, e.state.Point, &e.dec); err != nil || e.dec.Op == sim.Wait {
			return e.dec.Until, err
		}
		if err := e.apply(); err != nil {
			return 0, err
		}
	}
}

// apply carries out e.dec.
func (e *Env) apply() error {
	if err := e.sim.Apply(&e.dec); err != nil {
		return err
	}
	if e.dec.Op == sim.StartJob {
		e.started++
		e.dequeue(e.dec.Job)
	}
	e.score.Decided(&e.dec)
	return nil
}

// goOn advances the clock to the next event, the horizon, or until, which is 0 for none.
func (e *Env) goOn(ctx context.Context, until time.Duration) error {
	d := sim.Decision{Op: sim.Wait, Until: until}
	if e.cfg.Horizon > 0 {
		if end := sim.After(e.win.Begin, e.cfg.Horizon); until == 0 || end < until {
			d.Until = end
		}
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
	from := e.state.View.Now()
	e.score.Start()
	kind, err := e.step(context.Background(), a.Disc) // a step is atomic, so it is not cancelled
	if err != nil {
		e.shell.Break() // for example because the workload's stream failed
		return err
	}
	e.fill(ts, e.score.Pay(kind), e.state.View.Now()-from, e.shell.Took(a, kind))
	if kind == env.Terminated && e.parts.Starts {
		return e.finish(context.Background())
	}
	return nil
}

// step takes an action and runs to the next decision.
func (e *Env) step(ctx context.Context, action []int32) (env.Kind, error) {
	e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
	decided, err := e.parts.Actions.Decode(env.Action{Disc: action}, &e.state, &e.dec)
	if err != nil || !decided {
		return env.Mid, err
	}
	until, waits := time.Duration(0), true
	var sch sim.Scheduler
	if e.pilot != nil {
		sch = e.pilot.Pilot(&e.state)
	}
	switch {
	case sch != nil:
		until, err = e.fly(sch)
		waits = e.pilot.Holds()
	case e.dec.Op != sim.Wait:
		err, waits = e.apply(), false
	}
	if err == nil && waits {
		err = e.goOn(ctx, until)
	}
	if err != nil {
		return 0, err
	}
	return e.run(ctx)
}

// finish runs on to the last finish, or the end of the clock, if there is a watcher.
func (e *Env) finish(ctx context.Context) error {
	v := e.state.View
	for e.watch != nil && v.Ended() < v.Arrived() && !v.Over() {
		if err := e.goOn(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// Play plays episode ep to its end, shows nothing and pays nothing. choose returns the action at each decision; it sees the state, and can
// have an observation filled by Show. The environment needs a Reset afterwards.
func (e *Env) Play(ctx context.Context, ep env.Episode, choose func(s *State) (int32, error)) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	part, _, err := SplitPart(e.spec.ID, ep.Split, e.parts.Part)
	if err != nil {
		return err
	}
	if decides, err := e.begin(ctx, ep, part); !decides || err != nil {
		return err
	}
	return e.play(ctx, choose)
}

// Stream plays a log of any length as Play does, from the empty cluster on, until all jobs have ended, so that a watcher sees every job
// end. Jobs come from the stream while time goes by, and memory holds only those that wait or run. Nothing is left out of the log.
func (e *Env) Stream(ctx context.Context, jobs traces.Stream, choose func(s *State) (int32, error)) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	e.win = Window{GPUs: e.sim.View().Cluster().GPUs(), Tau: e.cfg.Tau, Traced: e.win.Traced[:0]}
	if err := e.open(jobs, e.seed); err != nil {
		return err
	}
	e.log = true
	p, err := e.sim.Advance(ctx)
	if errors.Is(err, sim.ErrDone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.score.Begin(ctx, e, env.Episode{}, p); err != nil {
		return err
	}
	e.follow(p)
	if kind, err := e.run(ctx); err != nil || kind.Last() {
		return err
	}
	if err := e.play(ctx, choose); err != nil {
		return err
	}
	v := e.state.View
	if v.Over() && (e.state.Waiting > 0 || v.Arriving()) {
		return fmt.Errorf("%s: the clock ends after %d jobs", e.spec.ID, e.started)
	}
	for v.Ended() < e.started && !v.Over() {
		if err := e.goOn(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// play takes the actions that choose returns until the end.
func (e *Env) play(ctx context.Context, choose func(s *State) (int32, error)) error {
	var action [1]int32
	for kind := env.Mid; !kind.Last(); {
		a, err := choose(&e.state)
		if err != nil {
			return err
		}
		action[0] = a
		if kind, err = e.step(ctx, action[:]); err != nil {
			return err
		}
	}
	return nil
}

// Show fills ts with what the agent would be shown now, without a reward. It is for those who choose actions for Play and Stream.
func (e *Env) Show(ts *env.TimeStep) {
	noReward(ts)
	e.show(ts)
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
	noReward(ts)
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, elapsed
	e.show(ts)
	ts.Info[InfoDiscount] = e.spec.Discount(e.cfg.Gamma, elapsed)
	e.score.Infos(ts.Info[InfoDiscount+1:], kind)
}

// noReward fills what a time step holds next to an observation where nothing is paid.
func noReward(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = env.Mid, 0, 0
	for i := range ts.Info {
		ts.Info[i] = math.NaN()
	}
}
