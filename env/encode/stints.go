package encode

import (
	"clustergym/env/sched"
	"clustergym/simulator/sim"
)

// stints are the gangs that run, as an observation needs them. They follow the run's events, so that encoding reads
// some ten cache lines in place of five for every job: in a batch of environments what one of them has read is no
// longer in the nearest cache when its turn comes again.
type stints struct {
	on    bool    // every event of the run has been followed
	order []int32 // places in list, in the order of View.Running
	list  []stint // list[0] is no gang
	free  []int32 // places in list that are not in use
	place []int32 // by job: the place in list of the last stint
	owner []int32 // by GPU: place in list, 0 = free; nil where columns are not GPUs
	share int     // gangs that share their GPUs
}

// stint is one running gang. While it runs, and until it outlives its estimate, the time left decreases as time passes.
type stint struct {
	until int64 // when nothing is left; where there are no estimates, since when it would have run without stops
	rate  float64
	job   sim.Job
	known bool // the numbers above are valid
	share bool
	full  int32 // bar, as of the last update
	part  float32
}

// reset begins a run.
func (x *stints) reset() {
	x.on, x.share = false, 0
	x.order, x.free = x.order[:0], x.free[:0]
	x.list = append(x.list[:0], stint{})
	clear(x.owner)
}

// follow takes in events. All events of the run come here once and in order.
func (x *stints) follow(v *sim.View, events []sim.Event) {
	x.on = v.Steady()
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case sim.Start:
			x.start(v, e)
		case sim.Preempt, sim.Fail, sim.Finish:
			x.stop(e)
		case sim.Migrate, sim.Resize:
			k := x.place[e.Job]
			x.list[k].known = false
			for g, o := range x.owner {
				if o == k {
					x.owner[g] = 0
				}
			}
			x.take(e, k)
		}
	}
}

// rejoin begins anew with the gangs that run now.
func (x *stints) rejoin(v *sim.View) {
	x.reset()
	for _, j := range v.Running() {
		x.start(v, &sim.Event{Kind: sim.Start, Job: j, GPUs: v.GPUs(j)})
	}
	x.on = v.Steady()
}

func (x *stints) start(v *sim.View, e *sim.Event) {
	var k int32
	if n := len(x.free); n > 0 {
		k, x.free = x.free[n-1], x.free[:n-1]
	} else {
		k = int32(len(x.list))
		x.list = append(x.list, stint{})
	}
	x.list[k] = stint{job: e.Job, share: v.Request(e.Job).Milli < 1000}
	if x.list[k].share {
		x.share++
	}
	for int(e.Job) >= len(x.place) {
		x.place = append(x.place, 0)
	}
	x.place[e.Job] = k
	x.order = append(x.order, k)
	x.take(e, k)
}

// take makes the GPUs of e those of the gang at k.
func (x *stints) take(e *sim.Event, k int32) {
	if x.owner == nil {
		return
	}
	for _, g := range e.GPUs {
		if g >= 0 {
			x.owner[g] = k
		}
	}
}

// stop removes a gang as the simulator does: the last one takes its place in the order.
func (x *stints) stop(e *sim.Event) {
	k := x.place[e.Job]
	last := len(x.order) - 1
	for i, o := range x.order {
		if o == k {
			x.order[i] = x.order[last]
			break
		}
	}
	x.order = x.order[:last]
	x.free = append(x.free, k)
	if x.list[k].share {
		x.share--
	}
	x.take(e, 0)
}

// update brings the bars up to date and returns the mean rate of the gangs, 1 if there are none. ok is false if the run
// has not been followed; then nothing is known.
func (x *stints) update(s *sched.State, axis *Axis) (rate float64, ok bool) {
	if !x.on || len(x.order) != len(s.View.Running()) {
		return 0, false
	}
	if len(x.order) == 0 {
		return 1, true
	}
	now := int64(s.View.Now())
	for _, k := range x.order {
		g := &x.list[k]
		left := g.until - now
		if s.Blind {
			left = -left
		}
		if !g.known || left <= 0 {
			left = g.learn(s, now)
		}
		g.full, g.part = axis.bar(float64(left))
		rate += g.rate
	}
	return rate / float64(len(x.order)), true
}

// learn asks the simulator for what is left of the gang.
func (g *stint) learn(s *sched.State, now int64) (left int64) {
	g.known, g.rate = true, s.View.Rate(g.job)
	if s.Blind {
		left = int64(s.View.Ran(g.job))
		g.until = now - left
		return left
	}
	left = int64(s.Left(g.job))
	g.until = now + left
	return left
}

// draw draws the gangs into the columns of their GPUs. It reports whether it can: shared GPUs show their longest job,
// which owner does not tell.
func (x *stints) draw(b bars) bool {
	if x.owner == nil || x.share > 0 {
		return false
	}
	full, part := b.full[:len(x.owner)], b.part[:len(x.owner)]
	for c, k := range x.owner {
		g := &x.list[k]
		full[c], part[c] = g.full, g.part
	}
	return true
}
