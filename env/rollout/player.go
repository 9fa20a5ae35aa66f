package rollout

import (
	"context"
	"errors"
	"slices"
	"time"

	"clustergym/simulator/sim"
)

// player plays rollouts, one at a time.
type player struct {
	fork   *sim.Simulator
	base   Base
	opener Opener // the base, if it is an Opener; else nil
	dec    sim.Decision
	point  sim.Point // one without events
	queue  []sim.Job // scratch
	runs   []sim.Job
	part   sim.View
}

// shortest is the run time below which bounded slowdowns count no shorter ones, in seconds.
const shortest = 10

// play plays one candidate in one future and returns its cost.
func (p *player) play(v *sim.View, d *sim.Decision, f *slot, cfg *Config) (cost float64, err error) {
	p.fork.CopyFrom(v, &f.future)
	t, tv, ctx := p.fork, p.fork.View(), context.Background()
	fresh := true // the base has yet to be reset
	switch {
	case p.opener != nil:
		fresh, err = false, p.opener.Open(t, d)
	case d.Op == sim.Wait:
		err = t.Apply(d)
	default:
		if err = t.Apply(d); err == nil {
			fresh, err = p.begin(tv)
		}
	}
	if err != nil {
		return 0, err
	}
	for started := 0; ; {
		at, err := t.Advance(ctx)
		if errors.Is(err, sim.ErrDone) {
			break
		}
		if err != nil {
			return 0, err
		}
		for i := range at.Events {
			switch e := &at.Events[i]; e.Kind {
			case sim.Start:
				started++
			case sim.Finish:
				cost += f.cost(v, tv, e.Job, e.At, cfg)
			}
		}
		if tv.Over() || started > cfg.Depth {
			break
		}
		if fresh {
			fresh, err = p.begin(tv)
		} else {
			err = sim.Decide(t, p.base, at, &p.dec, nil)
		}
		if err != nil {
			return 0, err
		}
	}
	return cost + p.rest(v, f, cfg), nil
}

// begin lets the base take over at the open point, of whose events it has seen none. It returns true if the base must
// begin anew at the next point, because it was not shown jobs that have been stopped at this one and cannot start
// before the next.
func (p *player) begin(tv *sim.View) (again bool, err error) {
	p.point.Now, p.point.Events = tv.Now(), p.point.Events[:0]
	p.queue = p.queue[:0]
	for _, j := range tv.Waiting() {
		if !tv.Decided(j) {
			p.queue = append(p.queue, j)
		}
	}
	if len(p.queue) == len(tv.Waiting()) {
		p.base.Reset(tv)
		return false, sim.Decide(p.fork, p.base, &p.point, &p.dec, nil)
	}
	p.runs = append(p.runs[:0], tv.Running()...)
	p.part = tv.Within(tv.Cluster(), &p.queue, &p.runs)
	p.base.Reset(&p.part)
	for {
		d := &p.dec
		d.Op, d.GPUs, d.Until = sim.Wait, d.GPUs[:0], 0
		if err := p.base.Decide(&p.part, &p.point, d); err != nil {
			return true, err
		}
		if err := p.fork.Apply(d); err != nil {
			return true, err
		}
		if d.Op == sim.Wait {
			return true, nil
		}
		if i := slices.Index(p.queue, d.Job); i >= 0 {
			p.queue = slices.Delete(p.queue, i, i+1)
			p.runs = append(p.runs, d.Job)
		}
	}
}

// cost returns what j costs if it ends at end. v is the view at the decision, tv that of the fork.
func (f *slot) cost(v, tv *sim.View, j sim.Job, end time.Duration, cfg *Config) float64 {
	t := tv.Trace(j)
	jct := (end - t.Submit).Seconds()
	if cfg.Objective != Slowdown {
		return jct
	}
	work := t.Work.Seconds()
	if tv.Pos(j) < v.Arrived() {
		work = f.work[j]
	}
	return max(1, jct/max(work, shortest))
}

// rest charges the jobs that have not finished, because the rollout was cut off or nothing more would happen: as if the
// work that is left flowed through the whole cluster in order of arrival, but no job faster than alone. All candidates
// of a future are so charged for the same jobs, wherever each of them is cut off.
func (p *player) rest(v *sim.View, f *slot, cfg *Config) (cost float64) {
	tv := p.fork.View()
	coming := f.future.Jobs[min(len(f.future.Jobs), tv.Arrived()-v.Arrived()):]
	if len(tv.Running())+len(tv.Waiting())+len(coming) == 0 {
		return 0
	}
	now, gpus := tv.Now(), float64(tv.Cluster().GPUs())
	area := 0.0 // nanoseconds × GPUs before the job
	for _, j := range tv.Running() {
		end := max(now, tv.Finished(j))
		area += float64(end-now) * share(tv.Request(j).GPUs, tv.Request(j).Milli)
		cost += f.cost(v, tv, j, end, cfg)
	}
	p.queue = append(p.queue[:0], tv.Waiting()...)
	slices.SortFunc(p.queue, func(a, b sim.Job) int { return tv.Pos(a) - tv.Pos(b) })
	for _, j := range p.queue {
		left := tv.Left(j)
		area += left * share(tv.Request(j).GPUs, tv.Request(j).Milli)
		cost += f.cost(v, tv, j, sim.After(now, span(max(left, area/gpus))), cfg)
	}
	for i := range coming {
		t := &coming[i]
		from := max(now, t.Submit)
		area += float64(t.Work) * share(t.GPUs, t.GPUMilli)
		end := max(sim.After(from, t.Work), sim.After(now, span(area/gpus)))
		jct := (end - t.Submit).Seconds()
		if cfg.Objective == Slowdown {
			jct = max(1, jct/max(t.Work.Seconds(), shortest))
		}
		cost += jct
	}
	return cost
}

// span returns ns nanoseconds, at most what a clock can add.
func span(ns float64) time.Duration { return time.Duration(min(ns, 1<<61)) }

// share returns the whole GPUs of a gang.
func share(gpus, milli int) float64 { return float64(gpus) * float64(milli) / 1000 }
