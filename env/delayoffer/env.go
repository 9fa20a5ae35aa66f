package delayoffer

import (
	"context"
	"fmt"
	"math"
	"time"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/encode"
	"clustergym/env/heuristic"
	"clustergym/env/sched"
	"clustergym/env/sim"
	"clustergym/traces"
)

// The actions.
const (
	Decline = iota
	Accept
)

// The columns of Info. Means are over the jobs that have finished.
const (
	InfoDiscount = iota
	InfoJCT
	InfoWait
	InfoCommunication
	InfoMakespan
	InfoUnfinished
	infoLen
)

// Env is the environment. Not safe for concurrent use.
type Env struct {
	cfg     Config
	spec    env.Spec
	est     sim.Estimates
	sim     *sim.Simulator
	view    *sim.View
	rule    *heuristic.Delay
	shell   sched.Shell
	part    traces.Part
	session *sched.Session
	redraw  *sched.Redraw

	point *sim.Point
	offer *heuristic.Offer // nil at the end
	dec   sim.Decision
	shown encoder
	base  *baseline // nil without Config.Relative

	done            int
	jct, wait, comm float64 // seconds, summed over finished jobs
	end             time.Duration
	carry           float64 // earned before the first decision
	from, cursor    time.Duration
	earned          float64
	steer           steering
}

var (
	_ sched.Arena     = (*Env)(nil)
	_ sched.Decider   = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
)

// New returns an environment over the windows w. Episodes without a Split are of part.
func New(cfg Config, spec cluster.Spec, w sched.Windows, part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var err error
	est := cfg.Estimates
	simulated := cfg.Simulator()
	if simulated.Predictor, err = sched.Predictor(w, est, cfg.Forecast); err != nil {
		return nil, err
	}
	s, err := sched.NewSimulator(simulated, spec)
	if err != nil {
		return nil, err
	}
	c := s.View().Cluster()
	if c.Pool() {
		return nil, fmt.Errorf("%s: on a counter of %d GPUs nothing lies near or far; want a cluster of nodes", ID, c.GPUs())
	}
	rule, err := heuristic.NewDelay(cfg.Heuristic())
	if err != nil {
		return nil, err
	}
	e := &Env{
		cfg: cfg, est: est, sim: s, view: s.View(), rule: rule, part: part, redraw: sched.NewRedraw("delayoffer/redraw", w),
		session: sched.NewSession(ID, s, w, part, cfg.Load),
	}
	e.shown = newEncoder(c, cfg.Comm)
	if cfg.Forecast.Shown(est) {
		e.shown.seen = encode.NewForecasts(est, c.GPUs())
	}
	if cfg.Relative {
		if e.base, err = newBaseline(&cfg, spec); err != nil {
			return nil, err
		}
	}
	inf := float32(math.Inf(1))
	e.spec = env.Spec{
		ID: ID, Obs: e.shown.fields(), Action: env.ActionSpec{Sizes: []int{2}}, MaxSteps: cfg.MaxSteps, Solved: math.NaN(), NoOp: -1, Tau: cfg.Tau,
		Info: []env.Field{
			{Name: "discount", High: 1, Unit: "fraction", Doc: "gamma^(elapsed/tau): what the value after this step counts for"},
			{Name: "jct_s", High: inf, Unit: "seconds", Doc: "mean job completion time; at the end", Metric: true},
			{Name: "wait_s", High: inf, Unit: "seconds", Doc: "mean time not on GPUs; at the end", Metric: true},
			{Name: "communication_s", High: inf, Unit: "seconds", Doc: "sum of the time on GPUs beyond the run time at full rate; at the end", Metric: true},
			{Name: "makespan_s", High: inf, Unit: "seconds", Doc: "last finish − first submit; at the end", Metric: true},
			{Name: "unfinished", High: inf, Unit: "jobs", Doc: "jobs that had not finished at the end", Metric: true},
		},
	}
	e.shell, e.steer.Facts = sched.NewShell(e.spec), sched.NewFacts(ID, s, e.session.Show)
	return e, nil
}

// Spec implements env.Env.
func (e *Env) Spec() env.Spec { return e.spec }

// View implements sched.Arena.
func (e *Env) View() *sim.View { return e.view }

// Offer returns the offer that the agent is asked about, nil before the first and after the last. It belongs to the
// environment.
func (e *Env) Offer() *heuristic.Offer { return e.offer }

// Timely returns the policy dally's answer to the offer.
func (e *Env) Timely() int32 {
	if e.rule.Timely(e.view, e.offer) {
		return Accept
	}
	return Decline
}

// Watch implements sched.Arena.
func (e *Env) Watch(o sim.Observer) { e.session.Watch(o) }

// Simulate implements sched.Arena. Note that the agent's gangs run under leases: when a lease ends, the gang takes part in
// the offers again. sch plays without leases unless it has its own, as the policy dally does.
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

// Reset implements env.Env. If the agent has nothing to decide in a window that the seed chooses, Reset draws another, and
// after a hundred takes the first window of the part, by number, that has a decision. A window with a number is played to
// its end if there is none in it, and Reset returns sched.ErrUndecided.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	part, split, err := sched.SplitPart(ID, ep.Split, e.part)
	if err != nil {
		return err
	}
	decides, err := e.redraw.Find(ep, part, func(ep env.Episode) (bool, error) { return e.begin(ctx, ep) })
	switch {
	case err != nil:
		return err
	case !decides && ep.Window < 0:
		return fmt.Errorf("%w: %s: %s", sched.ErrUndecided, ID, e.Undecided())
	case !decides:
		return fmt.Errorf("%w: %s: no job of the window starting at job %d is ever offered more than a node", sched.ErrUndecided, ID, e.session.At())
	}
	ep.Split = split
	e.carry = e.earned
	e.shell.Begin(ep)
	e.fill(ts, 0, 0, env.First)
	return nil
}

// Decides implements sched.Decider.
func (e *Env) Decides(ctx context.Context) (bool, error) {
	if err := e.shell.Leave(); err != nil {
		return false, err
	}
	return e.redraw.Some(e.part, env.Episode{}, func(ep env.Episode) (bool, error) { return e.begin(ctx, ep) })
}

// Undecided implements sched.Decider.
func (e *Env) Undecided() string {
	return "no job of any window is ever offered more than a node; want larger jobs, longer windows, a higher load, or a smaller cluster of several nodes"
}

// begin runs the window of ep until there is an offer to answer, or until all jobs have finished: then e.offer is nil. It
// reports whether there is one.
func (e *Env) begin(ctx context.Context, ep env.Episode) (bool, error) {
	if _, err := e.session.Draw(ep); err != nil {
		return false, err
	}
	e.est.Seed = ep.Seed
	if err := e.session.Start(); err != nil {
		return false, err
	}
	if r := e.sim.Refused(); r.Count > 0 {
		return false, fmt.Errorf("%w: %s: %d jobs of the window do not fit the cluster", env.ErrEpisode, ID, r.Count)
	}
	if e.base != nil {
		if err := e.base.play(ctx, e.session.Episode()); err != nil {
			return false, err
		}
	}
	e.rule.Reset(e.view)
	if e.shown.seen != nil {
		e.shown.seen.Reset()
	}
	e.done, e.jct, e.wait, e.comm, e.end = 0, 0, 0, 0, 0
	e.from, e.cursor, e.earned, e.offer = 0, 0, 0, nil
	if err := e.advance(ctx); err != nil {
		return false, err
	}
	err := e.run(ctx)
	return e.offer != nil, err
}

// run runs until there is an offer to answer, all jobs have finished, or the clock has run out.
func (e *Env) run(ctx context.Context) error {
	for e.done < e.session.Len() && !e.view.Over() {
		e.rule.Open(e.view, e.point)
		if e.offer = e.rule.Next(e.view); e.offer != nil {
			return nil
		}
		if err := sim.Decide(e.sim, e.rule, e.point, &e.dec, nil); err != nil {
			return err
		}
		if err := e.advance(ctx); err != nil {
			return err
		}
	}
	e.offer = nil
	if e.base != nil { // the rest of the baseline's play counts too
		e.relate(max(e.cursor, e.base.end()))
	}
	return nil
}

// pay returns the cost of a number of jobs in the system over [from, to).
func (e *Env) pay(jobs int, from, to time.Duration) float64 {
	return float64(jobs) / (float64(e.session.Len()) * e.cfg.Tau.Seconds()) * e.integral(from, to)
}

// relate subtracts what the timers earn from the cursor to now, and moves the cursor to now.
func (e *Env) relate(now time.Duration) {
	e.base.until(e.cursor, now, func(jobs int, from, to time.Duration) { e.earned += e.pay(jobs, from, to) })
	e.cursor = now
}

// advance advances to the next point and pays for the time until then.
func (e *Env) advance(ctx context.Context) error {
	system := e.view.Arrived() - e.view.Ended()
	p, err := e.session.Advance(ctx)
	if err != nil {
		return err
	}
	e.point = p
	if p.Now > e.cursor {
		e.earned -= e.pay(system, e.cursor, p.Now)
		if e.base != nil {
			e.relate(p.Now)
		}
		e.cursor = p.Now
	}
	for i := range p.Events {
		ev := &p.Events[i]
		if ev.Kind == sim.Submit && e.shown.seen != nil {
			e.shown.seen.Learn(e.view, ev.Job, e.est.Of(e.view, ev.Job))
		}
		if ev.Kind != sim.Finish {
			continue
		}
		t := e.view.Trace(ev.Job)
		ran := e.view.Ran(ev.Job)
		e.done++
		e.end = ev.At
		e.jct += (ev.At - t.Submit).Seconds()
		e.wait += (ev.At - t.Submit - ran).Seconds()
		e.comm += (ran - t.Work).Seconds()
	}
	return nil
}

// integral returns the integral over [from, to), in seconds, of the discount since the last decision.
func (e *Env) integral(from, to time.Duration) float64 {
	if e.cfg.Gamma == 1 {
		return (to - from).Seconds()
	}
	per := math.Log(e.cfg.Gamma) / e.cfg.Tau.Seconds()
	return math.Exp(per*(from-e.from).Seconds()) * math.Expm1(per*(to-from).Seconds()) / per
}

// Step implements env.Env.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := e.shell.Ready(ctx); err != nil {
		return err
	}
	if err := e.legal(a); err != nil {
		return err
	}
	e.from, e.cursor, e.earned = e.view.Now(), e.view.Now(), e.carry
	e.carry = 0
	e.rule.Answer(e.view, a.Disc[0] == Accept)
	if err := e.run(context.Background()); err != nil { // a step is atomic, so it is not cancelled
		e.shell.Break()
		return err
	}
	kind := env.Mid
	switch {
	case e.offer != nil:
	case e.done == e.session.Len():
		kind = env.Terminated
	default:
		kind = env.Truncated // the clock has run out
	}
	e.fill(ts, e.earned, e.view.Now()-e.from, e.shell.Took(a, kind))
	return nil
}

// legal returns the error for an action that is none, or that the mask forbids.
func (e *Env) legal(a env.Action) error {
	if err := e.shell.Shape(a); err != nil {
		return err
	}
	switch x := a.Disc[0]; {
	case x != Decline && x != Accept:
		return fmt.Errorf("%w: %d, want 0 or 1", env.ErrIllegalAction, x)
	case x == Decline && e.rule.Forced(e.view):
		return e.shell.Masked(x)
	}
	return nil
}

// show fills what the agent sees.
func (e *Env) show(ts *env.TimeStep) {
	clear(ts.Obs)
	if e.offer != nil {
		e.shown.encode(ts.Obs, e)
	}
	ts.Mask[Accept] = true
	ts.Mask[Decline] = e.offer == nil || !e.rule.Forced(e.view)
}

// fill fills the time step.
func (e *Env) fill(ts *env.TimeStep, reward float64, elapsed time.Duration, kind env.Kind) {
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, elapsed
	e.show(ts)
	nan := math.NaN()
	for i := range ts.Info {
		ts.Info[i] = nan
	}
	ts.Info[InfoDiscount] = e.spec.Discount(e.cfg.Gamma, elapsed)
	if !kind.Last() {
		return
	}
	if n := float64(e.done); n > 0 {
		ts.Info[InfoJCT], ts.Info[InfoWait], ts.Info[InfoCommunication] = e.jct/n, e.wait/n, e.comm
		ts.Info[InfoMakespan] = e.end.Seconds()
	}
	ts.Info[InfoUnfinished] = float64(e.session.Len() - e.done)
}

// AppendSnapshot implements env.Snapshotter.
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) { return e.shell.AppendSnapshot(dst) }

// RestoreSnapshot implements env.Snapshotter.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	return e.shell.RestoreSnapshot(e, src, ts)
}
