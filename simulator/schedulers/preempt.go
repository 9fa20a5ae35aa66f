package schedulers

import (
	"math"
	"slices"
	"time"

	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// preemption is what orders that preempt need: they plan a whole pass and then return it decision by decision.
type preemption struct {
	running []queue.Entry
	ended   bool // jobs may have stopped running since takeStock
	chosen  []queue.Entry
	fresh   []int // places in chosen of waiting jobs, by countedPlan
	stopped []queue.Entry
	plan    []step
	next    int
	exact   exactPlan
	kept    kept // running jobs that are spared
}

// step is one decision of a plan. Its GPUs are a range of exactPlan.spots, or chosen by the placement when the step
// is carried out.
type step struct {
	stop bool
	queue.Entry
	from, to int // in exactPlan.spots; to = 0: ask the placement
}

// makePlan ranks running and waiting jobs together and gives the GPUs to the first in line.
//
// Counting is enough on counters, and where every job asks for whole GPUs only and the placement accepts whatever
// fits: one walk down the merged ranks with a count of what is left of the cluster and of each quota. Elsewhere that
// walk is a guess that exactPlan corrects.
func (s *Scheduler) makePlan(v *sim.View) {
	s.plan, s.next, s.chosen, s.fresh, s.stopped = s.plan[:0], 0, s.chosen[:0], s.fresh[:0], s.stopped[:0]
	s.takeStock(v)
	if s.state != nil {
		if r, ok := s.state.(riser); ok && r.Rise(v) {
			s.rerank(v)
		}
		s.state.Before(v, s.running)
	}
	for i := range s.running {
		s.running[i].Key = s.key(v, s.running[i].Job)
		if s.kept.holds(v, s.running[i].Job) || s.stays(v, s.running[i].Job) {
			s.running[i].Key = math.Inf(-1) // before all others, so it stays
		}
	}
	if s.rule.dynamic {
		slices.SortFunc(s.running, func(a, b queue.Entry) int { return a.Compare(&b) })
	} else {
		// The list is nearly in order from the last pass, so insertion sort costs little.
		for i := 1; i < len(s.running); i++ {
			for k := i; k > 0 && s.running[k].Before(&s.running[k-1]); k-- {
				s.running[k], s.running[k-1] = s.running[k-1], s.running[k]
			}
		}
	}
	s.countedPlan(v)
	s.exact.spans, s.exact.displaced = s.exact.spans[:0], s.exact.displaced[:0]
	counted := v.Cluster().Pool() || !s.picky && s.odd == 0
	if !counted {
		s.exact.make(s, v)
	}
	s.comeBack(v)
	for _, e := range s.stopped {
		s.plan = append(s.plan, step{stop: true, Entry: e})
	}
	if counted {
		for _, i := range s.fresh {
			s.plan = append(s.plan, step{Entry: s.chosen[i]})
		}
		return
	}
	for i, e := range s.chosen {
		if v.State(e.Job) == sim.Waiting {
			s.plan = append(s.plan, step{Entry: e, from: s.exact.spans[i].from, to: s.exact.spans[i].to})
		}
	}
}

// countedPlan walks down the merged ranks with a count of what is left. A running job that no longer has room, because
// the cluster or its quota is spent, is stopped. Under strict, so are all jobs of its virtual cluster behind the first
// that has none.
func (s *Scheduler) countedPlan(v *sim.View) {
	if len(v.Waiting()) == 0 { // no waiting job could take their GPUs
		s.chosen = append(s.chosen, s.running...)
		return
	}
	left, quotas := v.Cluster().FreeMilli(), len(s.queues) > 1
	for i := range s.queues {
		s.queues[i].budget = v.Cluster().VCRoom(int32(i))
	}
	for _, e := range s.running {
		left += queue.Milli(v, e.Job)
	}
	for i := 0; quotas && i < len(s.running); i++ {
		j := s.running[i].Job
		s.queues[s.queueOf(v, j)].spend(-queue.Milli(v, j))
	}
	rest := left - v.Cluster().FreeMilli() // of the running jobs from r on
	r := 0
	var l *vcQueue
	w, known := queue.None, false // w is the first waiting job that has room, or that ends the pass
	for {
		for !known {
			l, w = s.bestOf(v, left)
			if w != queue.None && s.heldBack(v, l.Top(w).Job, len(v.Running())+len(s.chosen) > 0) {
				s.holdBack(v, l, w)
				continue
			}
			if known = w == queue.None || s.strict || queue.Milli(v, l.Top(w).Job) <= min(left, l.budget); !known {
				l.Close(w)
			}
		}
		if !quotas && !s.queues[0].over {
			if w == queue.None && rest <= left {
				s.chosen = append(s.chosen, s.running[r:]...)
				return
			}
			n := left
			r, left = s.stay(v, r, left, l, w)
			if rest -= n - left; w != queue.None && !s.strict && queue.Milli(v, l.Top(w).Job) > left {
				known = false // another may come first now
				continue
			}
		}
		switch {
		case r < len(s.running) && (w == queue.None || s.running[r].Before(l.Top(w))):
			e := s.running[r]
			r++
			n, its := queue.Milli(v, e.Job), &s.queues[s.queueOf(v, e.Job)]
			rest -= n
			if !its.over && n <= left && (!quotas || n <= its.budget) {
				left -= n
				if quotas {
					its.spend(n)
				}
				s.chosen = append(s.chosen, e)
				// The first stays the first while it has room.
				known = w == queue.None || s.strict || queue.Milli(v, l.Top(w).Job) <= min(left, l.budget)
			} else {
				its.over = its.over || s.strict
				s.stopped = append(s.stopped, e)
				known = !s.strict
			}
		case w == queue.None:
			return
		case queue.Milli(v, l.Top(w).Job) > min(left, l.budget):
			l.over, known = true, false // strict
		default:
			e := s.pop(l, w)
			left -= queue.Milli(v, e.Job)
			l.spend(queue.Milli(v, e.Job))
			s.fresh = append(s.fresh, len(s.chosen))
			s.chosen = append(s.chosen, e)
			known = false
		}
	}
}

// stay chooses the running jobs from r on that rank before the waiting job w, if there is one, until one has no room in
// left. It returns the next and what is left.
func (s *Scheduler) stay(v *sim.View, r, left int, l *vcQueue, w int) (next, rest int) {
	var first *queue.Entry
	if w != queue.None {
		first = l.Top(w)
	}
	for ; r < len(s.running); r++ {
		e := &s.running[r]
		if first != nil && !e.Before(first) {
			break
		}
		n := queue.Milli(v, e.Job)
		if n > left {
			break
		}
		left -= n
		s.chosen = append(s.chosen, *e)
	}
	return r, left
}

// spend takes milli thousandths from the queue's quota, if it has one.
func (l *vcQueue) spend(milli int) {
	if l.budget != math.MaxInt {
		l.budget -= milli
	}
}

// bestOf is best with a count of free thousandths instead of a cluster.
func (s *Scheduler) bestOf(v *sim.View, free int) (l *vcQueue, at int) {
	if len(s.queues) == 1 && !s.queues[0].over {
		return &s.queues[0], s.queues[0].Best(v, s.limit(free/1000))
	}
	at = queue.None
	for i := range s.queues {
		k := &s.queues[i]
		if k.over {
			continue
		}
		if w := k.Best(v, s.limit(min(free, k.budget)/1000)); w != queue.None &&
			(at == queue.None || k.Top(w).Before(l.Top(at))) {
			l, at = k, w
		}
	}
	return l, at
}

// nextStep returns the plan's next decision. A job that cannot be placed although enough GPUs are free goes back into
// line.
func (s *Scheduler) nextStep(v *sim.View, d *sim.Decision) (done bool) {
	for s.next < len(s.plan) {
		p := s.plan[s.next]
		s.next++
		d.Job = p.Job
		if p.stop {
			d.Op = sim.PreemptJob
			d.GPUs = d.GPUs[:0]
			return false
		}
		ok := p.to > 0
		if ok {
			d.GPUs = append(d.GPUs[:0], s.exact.spots[p.from:p.to]...)
		} else {
			d.GPUs, ok = s.place.Place(v, p.Job, v.Request(p.Job), v.Cluster(), d.GPUs)
		}
		if ok {
			d.Op = sim.StartJob
			s.running = append(s.running, queue.Entry{Pos: p.Pos, Job: p.Job})
			return false
		}
		s.push(v, p.Entry)
	}
	if s.state != nil {
		s.chosen = slices.DeleteFunc(s.chosen, func(e queue.Entry) bool { return v.State(e.Job) != sim.Running })
		s.state.After(v, s.chosen, s.stopped)
	}
	again := s.goesOn(v)
	// Stopped jobs wait from now on; their keys are computed at this time.
	for _, e := range s.stopped {
		s.push(v, queue.Entry{Key: s.key(v, e.Job), Pos: e.Pos, Job: e.Job})
	}
	if len(s.stopped) > 0 {
		s.running = slices.DeleteFunc(s.running,
			func(e queue.Entry) bool { return v.State(e.Job) != sim.Running || v.Pos(e.Job) != e.Pos })
		s.stopped = s.stopped[:0]
	}
	if s.state != nil {
		s.pass.until = s.state.Before(v, s.running)
	}
	if again {
		s.pass.until = int64(v.Now()) + 1
	}
	return true
}

// kept are the running jobs that may not be stopped.
type kept struct {
	first int           // those at positions before it
	min   time.Duration // those whose stint has not lasted so long
}

// none reports whether every job may be stopped.
func (k *kept) none() bool { return k.first == 0 && k.min == 0 }

// holds reports whether j, which runs, may not be stopped now.
func (k *kept) holds(v *sim.View, j sim.Job) bool {
	return !k.none() && (v.Pos(j) < k.first || v.Now()-v.Started(j) < k.min)
}

// Keep makes a scheduler that stops running jobs spare some from the next Reset on: those at positions before first,
// and those whose stint has not lasted min. It does not ask to be called when that time is over. It implements
// sched.Keeper.
func (s *Scheduler) Keep(first int, least time.Duration) { s.kept = kept{first, least} }

// goesOn reports whether a job of a virtual cluster that shares its nodes was stopped only because another needed its
// GPUs, and has a place elsewhere. It starts there a nanosecond later, because a job can be changed only once at any
// time.
func (s *Scheduler) goesOn(v *sim.View) bool {
	return len(s.queues) > 1 && slices.ContainsFunc(s.exact.displaced, func(e queue.Entry) bool {
		if v.State(e.Job) != sim.Waiting || !v.Fits(e.Job) {
			return false
		}
		var ok bool
		s.exact.dst, ok = s.place.Place(v, e.Job, v.Request(e.Job), v.Cluster(), s.exact.dst)
		return ok
	})
}

// takeStock updates the list of running jobs to what happened since the last pass.
func (s *Scheduler) takeStock(v *sim.View) {
	if !s.ended && len(s.running) == len(v.Running()) {
		return // no job has stopped, and other code has started none
	}
	s.ended = false
	s.running = slices.DeleteFunc(s.running,
		func(e queue.Entry) bool { return v.State(e.Job) != sim.Running || v.Pos(e.Job) != e.Pos })
	if len(s.running) == len(v.Running()) {
		return
	}
	// Other code has started jobs. Those started at this same time cannot be stopped now.
	s.running = s.running[:0]
	for _, j := range v.Running() {
		if v.Started(j) < v.Now() {
			s.running = append(s.running, queue.Entry{Pos: v.Pos(j), Job: j})
		}
	}
}
