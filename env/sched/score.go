package sched

import (
	"context"
	"math"
	"time"

	"clustergym/env"
	"clustergym/simulator/sim"
)

// Score says what steps pay and what infos tell. Where Parts have none, the score is the Reward, integrated over
// simulated time (timed). None of the methods but Begin allocates in steady state.
type Score interface {
	// Fields returns the columns of Info after the first, which is the discount.
	Fields() []env.Field
	// Begin begins episode ep of e, at p: the first point at which a counted job has arrived.
	Begin(ctx context.Context, e *Env, ep env.Episode, p *sim.Point) error
	// Point takes in a point of the episode. The state is that before it, but for what e.View shows.
	Point(p *sim.Point)
	// Decided takes in a decision that has been carried out.
	Decided(d *sim.Decision)
	// Start begins a step.
	Start()
	// Pay returns the reward of the step that ends now. kind is Mid, or says how the episode has ended.
	Pay(kind env.Kind) float64
	// Infos fills the columns of Info after the first, which are NaN.
	Infos(dst []float64, kind env.Kind)
}

// The columns of Info of environments that are paid a Reward. Means are over the counted jobs that have finished; they
// are NaN before the episode's end.
const (
	InfoDiscount = iota
	InfoJCT
	InfoWait
	InfoSlowdown
	InfoMakespan
	InfoUnfinished
	infoLen
)

// discounted returns the column of Info that every environment has.
func discounted(perStep bool) env.Field {
	f := env.Field{Name: "discount", High: 1, Unit: "fraction",
		Doc: "gamma^(elapsed/tau): what the value after this step counts for"}
	if perStep {
		f.Doc = "gamma: what the value after this step counts for"
	}
	return f
}

// timed is the score of a Reward: its integral over simulated time, less what a baseline earns at the same time.
type timed struct {
	account
	e     *Env
	base  *relative // nil = nothing is subtracted
	fresh bool      // no step has begun: what has been earned is paid with the first
	carry float64   // earned before the first decision
	// Of Ongoing episodes.
	tally   tally
	entered bool // the account has begun with what was there
	event   sim.Event
}

// Fields implements Score.
func (x *timed) Fields() []env.Field {
	inf := float32(math.Inf(1))
	if x.e.cfg.Mode == Ongoing {
		return ongoingFields()
	}
	return []env.Field{
		{Name: "jct_s", High: inf, Unit: "seconds", Doc: "mean job completion time; at the end", Metric: true},
		{Name: "wait_s", High: inf, Unit: "seconds", Doc: "mean time not on GPUs; at the end", Metric: true},
		{Name: "slowdown", High: inf, Unit: "ratio", Doc: "mean JCT / work; at the end", Metric: true},
		{Name: "makespan_s", High: inf, Unit: "seconds", Doc: "last finish − first submit; at the end", Metric: true},
		{Name: "unfinished", High: inf, Unit: "jobs", Doc: "counted jobs that had not finished at the end", Metric: true},
	}
}

// ongoingFields are the columns of Ongoing episodes. Sums over consecutive stretches are those of the whole run.
func ongoingFields() []env.Field {
	inf := float32(math.Inf(1))
	return []env.Field{
		{Name: "jct_s", High: inf, Unit: "seconds", Metric: true,
			Doc: "job-seconds in the system / W, by Little's law the mean job completion time; at the end"},
		{Name: "wait_s", High: inf, Unit: "seconds", Metric: true,
			Doc: "job-seconds not on GPUs / W; at the end"},
		{Name: "slowdown", High: inf, Unit: "ratio", Metric: true,
			Doc: "time in the system, each job's in units of its work, / W; at the end"},
		{Name: "makespan_s", High: inf, Unit: "seconds", Doc: "length of the episode; at the end", Metric: true},
		{Name: "unfinished", High: inf, Unit: "jobs", Doc: "jobs in the system at the end", Metric: true},
	}
}

// Begin implements Score.
func (x *timed) Begin(ctx context.Context, e *Env, _ env.Episode, p *sim.Point) error {
	x.reward.Reset(&e.win)
	if x.base != nil {
		if err := x.base.record(ctx, e, p); err != nil {
			return err
		}
	}
	x.account.begin(e.win.Begin)
	x.fresh = true
	if x.entered = e.win.Mode == Ongoing; x.entered {
		enter(x.reward, e.state.View, &x.event)
		x.tally.begin(e.state.View)
	}
	return nil
}

// Point implements Score.
func (x *timed) Point(p *sim.Point) {
	if x.entered { // the first point, whose events belong to the stretch of time before
		x.entered = false
		return
	}
	x.point(x.e.state.View, p)
	if x.e.win.Mode == Ongoing {
		x.tally.point(x.e.state.View, p)
	}
}

// Decided implements Score: a reward sees decisions as events of the next point.
func (x *timed) Decided(*sim.Decision) {}

// Start implements Score.
func (x *timed) Start() {
	now := x.e.state.View.Now()
	if x.carry = 0; x.fresh {
		x.carry, x.fresh = x.earned(x.e.win.Begin, now), false
	}
	x.account.begin(now)
}

// Pay implements Score.
func (x *timed) Pay(kind env.Kind) float64 {
	now := x.e.state.View.Now()
	pay := x.earned(x.from, now)
	if x.base != nil && kind == env.Terminated {
		pay -= x.base.line.rest(&x.account, now)
	}
	return pay + x.carry
}

// earned returns what has been earned from a time to now, less what the baseline has.
func (x *timed) earned(from, now time.Duration) float64 {
	if x.base == nil {
		return x.sum
	}
	return x.sum - x.base.line.take(&x.account, from, now)
}

// Infos implements Score.
func (x *timed) Infos(dst []float64, kind env.Kind) {
	if !kind.Last() {
		return
	}
	e := x.e
	if e.win.Mode == Ongoing {
		n := float64(e.win.Jobs)
		dst[InfoJCT-1], dst[InfoWait-1], dst[InfoSlowdown-1] = x.tally.jobs/n, x.tally.wait/n, x.tally.stretch/n
		dst[InfoMakespan-1], dst[InfoUnfinished-1] = (x.tally.now - e.win.Begin).Seconds(), float64(x.tally.system)
		return
	}
	if n := float64(e.done); n > 0 {
		dst[InfoJCT-1], dst[InfoWait-1], dst[InfoSlowdown-1] = e.jct/n, e.wait/n, e.slow/n
		dst[InfoMakespan-1] = (e.last - e.win.Begin).Seconds()
	}
	dst[InfoUnfinished-1] = float64(e.win.Jobs - e.done)
	if e.win.Mode == Streamed {
		dst[InfoUnfinished-1] = float64(e.state.View.Arrived() - e.state.View.Ended())
	}
}
