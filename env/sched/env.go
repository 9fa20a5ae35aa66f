package sched

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// Parts holds the parts of an environment. Slots, Encoder, Actions and the rewards belong to that environment alone
// afterwards; Windows may be shared.
type Parts struct {
	ID      string
	Sim     sim.Config
	Cluster cluster.Spec
	Windows Windows
	Part    traces.Part // of the workload, for episodes without a Split
	Models  *profile.Mix
	MaxGPUs int // of the jobs that the agent may start, where the environment follows facts; 0 = any
	Slots   Slots
	Running int    // R, running jobs that are visible (State.Running)
	Stops   *Stops // which of them actions can stop; nil = none
	Encoder Encoder
	Actions Actions

	// How the warm-up and the baselines start jobs: by this placement, admission ("" = skip) and back-filling ("" = none).
	Placement, Admission, Backfill string

	Reward   Reward
	Baseline Reward // a second instance of the same reward, for Config.Relative; else nil
	Score    Score  // in place of the two, where what is paid is no integral over time; nil = the reward is
	// Of environments with a rule of their own: Warm plays warm-ups in place of an order, and Rival, another instance, is
	// what Config.Relative asks for, whatever order it names, and plays its own warm-up. nil = orders do.
	Warm, Rival schedulers.Policy

	Cold    bool                          // episodes begin on an empty cluster: the jobs before the window are left out
	PerStep bool                          // the discount applies once a step, not once per Tau
	Starts  bool                          // episodes end when the last counted job has started, not when it has finished
	Suits   func(jobs []traces.Job) error // why the environment cannot play jobs; nil = it can play all
	Filter  Filter                        // of training windows
	Redraw  string                        // the stream of seeds of further windows; "" = sched/redraw
	// why %s, a window, may leave nothing to decide, and what would be right; "" = see Undecided
	Undecided string
}

// Filter says which training windows that are drawn from the seed are drawn again, at most a hundred times.
type Filter struct {
	Stream string // of the further draws
	// whether the window that has been drawn for an episode is taken; nil = every one is
	Keeps func(ctx context.Context, e *Env, seed uint64) (bool, error)
}

// Windows returns the jobs of an episode: the counted ones and those around them. *traces.Windows is the usual
// implementation. The slices may be shared and must not be changed.
type Windows interface {
	At(p traces.Part, seed uint64, window int) (traces.Window, error)
}

// Offering are Windows that know the load of the whole workload, by which Ongoing and Streamed episodes are stretched.
type Offering interface {
	// Offered returns the GPU time that the workload asks for over that of the cluster in the time over which it arrives.
	Offered() float64
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
	warm   schedulers.Policy // nil without a warm-up
	whole  Baseline          // plays Simulate's episodes on sim
	score  Score
	redraw *Redraw
	base   *relative // nil if no baseline plays

	shell   Shell
	offered float64 // GPU time that the workload's jobs ask for, of the cluster's, before they are stretched
	seed    uint64  // of the episode
	log     bool    // a stream is played, and no episode
	started int     // jobs that have started since the episode began
	done    int     // the agent's jobs that have finished
	counted int     // those of them that count
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
	// e.warmed and e.left, kept here so that episodes do not allocate them
	seen  func(*sim.Point)
	begun func(*sim.Decision)
	steer steering
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
	if cfg.Mode != Drained && cfg.Load > 0 {
		o, ok := p.Windows.(Offering)
		if !ok || !(o.Offered() > 0) {
			return nil, fmt.Errorf("%s: the load that these jobs offer (%T) is not known; want load 0", p.ID, p.Windows)
		}
		e.offered = o.Offered()
	}
	e.begun = e.left
	if !p.Cold || cfg.Mode == Ongoing {
		if e.warm = p.Warm; e.warm == nil {
			if e.warm, err = p.order(cmp.Or(cfg.order(cfg.Ahead), "fifo"), cfg.Estimates); err != nil {
				return nil, err
			}
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
		ID: p.ID, Obs: p.Encoder.Fields(), Action: p.Actions.Spec(), Info: append([]env.Field{discounted(p.PerStep)},
			e.score.Fields()...),
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

// State returns what the encoder sees, for rules that act through the action space. It is valid after Reset and until
// the next Step.
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
		return fmt.Errorf("%w: %s: this environment has no tasks, got one of %d numbers", env.ErrEpisode, e.spec.ID,
			len(ep.Task))
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
	return e.redraw.Some(e.parts.Part, env.Episode{},
		func(ep env.Episode) (bool, error) { return e.begin(ctx, ep, e.parts.Part) })
}

// Undecided implements Decider.
func (e *Env) Undecided() string {
	if e.parts.Undecided != "" {
		return fmt.Sprintf(e.parts.Undecided, "any window")
	}
	if e.cfg.Horizon > 0 {
		return "every window ends before its first decision; want a longer horizon, or fewer jobs before the window (warm)"
	}
	return "every window ends before its first decision, because jobs run beyond the end of the clock, 146 years; want " +
		"shorter jobs"
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
	if e.win.Mode == Ongoing {
		e.done = 0 // what ended in the warm-up is no news
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
	if e.warm == nil || e.win.First == 0 {
		return e.sim.Advance(ctx)
	}
	w := warmUp{first: e.win.First, seen: e.seen}
	if e.win.Mode == Ongoing {
		w.keep, w.started = true, e.begun
	}
	return w.run(ctx, e.sim, e.warm, &e.dec)
}

// left takes a job out of the queue that the rule of the warm-up has started.
func (e *Env) left(d *sim.Decision) {
	if d.Op == sim.StartJob {
		e.dequeue(d.Job)
	}
}

// open resets the simulator to the beginning of jobs.
func (e *Env) open(jobs traces.Stream, seed uint64) error {
	e.log, e.steer.on, e.state.Facts = false, false, false
	e.started, e.done, e.counted, e.jct, e.wait, e.slow, e.last = 0, 0, 0, 0, 0, 0, 0
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

// reseed gives the rules of the warm-up the noise of the episode's estimates. A random placement keeps its seed.
func (e *Env) reseed(seed uint64) {
	if !schedulers.Estimating(cmp.Or(e.cfg.order(e.cfg.Ahead), "fifo")) {
		return
	}
	if e.warm != nil {
		e.warm.Reseed(seed)
	}
	if e.base != nil {
		e.base.plays.warm.Reseed(seed)
	}
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

// prepare fills e.win with the jobs that the seed draw draws: the window and those around it, with submit times
// stretched.
func (e *Env) prepare(ep env.Episode, part traces.Part, draw uint64) error {
	w, err := e.parts.Windows.At(part, draw, ep.Window)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", env.ErrEpisode, e.spec.ID, err)
	}
	gpus, mode := e.sim.View().Cluster().GPUs(), e.cfg.Mode
	if mode == Drained {
		w.Jobs = w.Jobs[:w.Warm+w.Counted]
		if e.parts.Cold {
			w.Jobs, w.Warm = w.Counting(), 0
		}
	}
	f := 1.0
	switch {
	case e.cfg.Load > 0 && mode == Drained:
		f = traces.LoadFactor(w.Counting(), gpus, e.cfg.Load)
	case e.cfg.Load > 0:
		f = e.offered / e.cfg.Load
	}
	e.win = Window{Mode: mode, At: w.First, First: w.Warm, Warm: w.Warm, Counted: w.Counted, Jobs: w.Counted, GPUs: gpus,
		Tau: e.cfg.Tau, Origin: w.Jobs[0].Submit, Traced: append(e.win.Traced[:0], w.Jobs...)}
	for i := range e.win.Traced {
		j := &e.win.Traced[i]
		j.Submit = stretched(j.Submit-e.win.Origin, f)
	}
	switch mode {
	case Ongoing:
		if len(w.Jobs) <= w.Warm+w.Counted {
			return fmt.Errorf("%w: %s: no job arrives after the window, so its time has no end", env.ErrEpisode, e.spec.ID)
		}
		e.win.End = e.win.Traced[w.Warm+w.Counted].Submit
	case Streamed:
		e.win.First, e.win.Jobs = 0, e.cfg.Window
	}
	e.win.Begin = e.win.Traced[e.win.First].Submit
	e.est.Seed = ep.Seed
	e.reseed(ep.Seed)
	if e.parts.Suits != nil {
		return e.parts.Suits(e.win.Traced)
	}
	return nil
}
