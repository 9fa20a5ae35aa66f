package delayoffer

import (
	"context"
	"math"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/sim"
)

// The columns of Info. Means are over the jobs that have finished.
const (
	InfoDiscount = iota
	InfoJCT
	InfoWait
	InfoCommunication
	InfoMakespan
	InfoUnfinished
)

// inTime is the score: the time that jobs spend in the system, less what they spend there by the timers.
type inTime struct {
	cfg  *Config
	view *sim.View
	jobs int       // of the episode
	base *baseline // nil without Config.Relative

	system          int // jobs that have arrived and not ended
	done            int
	jct, wait, comm float64 // seconds, summed over finished jobs
	end             time.Duration
	fresh           bool // no step has begun: what has been earned is paid with the first
	from, cursor    time.Duration
	earned          float64
}

var _ sched.Score = (*inTime)(nil)

// Fields implements sched.Score.
func (*inTime) Fields() []env.Field {
	inf := float32(math.Inf(1))
	return []env.Field{
		{Name: "jct_s", High: inf, Unit: "seconds", Doc: "mean job completion time; at the end", Metric: true},
		{Name: "wait_s", High: inf, Unit: "seconds", Doc: "mean time not on GPUs; at the end", Metric: true},
		{Name: "communication_s", High: inf, Unit: "seconds",
			Doc: "sum of the time on GPUs beyond the run time at full rate; at the end", Metric: true},
		{Name: "makespan_s", High: inf, Unit: "seconds", Doc: "last finish − first submit; at the end", Metric: true},
		{Name: "unfinished", High: inf, Unit: "jobs", Doc: "jobs that had not finished at the end", Metric: true},
	}
}

// Begin implements sched.Score.
func (x *inTime) Begin(ctx context.Context, e *sched.Env, _ env.Episode, _ *sim.Point) error {
	*x = inTime{cfg: x.cfg, view: e.View(), jobs: e.Window().Jobs, base: x.base, fresh: true}
	if x.base == nil {
		return nil
	}
	return x.base.play(ctx, e.Window().Play())
}

// Start implements sched.Score.
func (x *inTime) Start() {
	if x.from, x.cursor = x.view.Now(), x.view.Now(); !x.fresh {
		x.earned = 0
	}
	x.fresh = false
}

// pay returns the cost of a number of jobs in the system over [from, to).
func (x *inTime) pay(jobs int, from, to time.Duration) float64 {
	return float64(jobs) / (float64(x.jobs) * x.cfg.Tau.Seconds()) * x.integral(from, to)
}

// relate subtracts what the timers earn from the cursor to now, and moves the cursor to now.
func (x *inTime) relate(now time.Duration) {
	x.base.until(x.cursor, now, func(jobs int, from, to time.Duration) { x.earned += x.pay(jobs, from, to) })
	x.cursor = now
}

// Point implements sched.Score: it pays for the time until p.
func (x *inTime) Point(p *sim.Point) {
	if p.Now > x.cursor {
		x.earned -= x.pay(x.system, x.cursor, p.Now)
		if x.base != nil {
			x.relate(p.Now)
		}
		x.cursor = p.Now
	}
	x.system = x.view.Arrived() - x.view.Ended()
	for i := range p.Events {
		ev := &p.Events[i]
		if ev.Kind != sim.Finish {
			continue
		}
		t := x.view.Trace(ev.Job)
		ran := x.view.Ran(ev.Job)
		x.done++
		x.end = ev.At
		x.jct += (ev.At - t.Submit).Seconds()
		x.wait += (ev.At - t.Submit - ran).Seconds()
		x.comm += (ran - t.Work).Seconds()
	}
}

// integral returns the integral over [from, to), in seconds, of the discount since the last decision.
func (x *inTime) integral(from, to time.Duration) float64 {
	if x.cfg.Gamma == 1 {
		return (to - from).Seconds()
	}
	per := math.Log(x.cfg.Gamma) / x.cfg.Tau.Seconds()
	return math.Exp(per*(from-x.from).Seconds()) * math.Expm1(per*(to-from).Seconds()) / per
}

// Decided implements sched.Score.
func (*inTime) Decided(*sim.Decision) {}

// Pay implements sched.Score. At the end the rest of the baseline's play counts too.
func (x *inTime) Pay(kind env.Kind) float64 {
	if kind.Last() && x.base != nil {
		x.relate(max(x.cursor, x.base.end()))
	}
	return x.earned
}

// Infos implements sched.Score.
func (x *inTime) Infos(dst []float64, kind env.Kind) {
	if !kind.Last() {
		return
	}
	if n := float64(x.done); n > 0 {
		dst[InfoJCT-1], dst[InfoWait-1], dst[InfoCommunication-1] = x.jct/n, x.wait/n, x.comm
		dst[InfoMakespan-1] = x.end.Seconds()
	}
	dst[InfoUnfinished-1] = float64(x.jobs - x.done)
}
