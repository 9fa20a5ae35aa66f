package heuristic

import (
	"math"
	"slices"
	"time"

	"clustergym/env/sim"
)

// step is one decision of a plan. Its GPUs are a range of exactPlan.spots, or chosen by the placement when the step
// is carried out.
type step struct {
	stop bool
	entry
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
		if r, ok := s.state.(riser); ok && r.rise(v) {
			s.rerank(v)
		}
		s.state.before(v, s.running)
	}
	for i := range s.running {
		s.running[i].key = s.rule.key(s, v, s.running[i].job)
		if s.kept.holds(v, s.running[i].job) {
			s.running[i].key = math.Inf(-1) // before all others, so it stays
		}
	}
	if s.rule.dynamic {
		slices.SortFunc(s.running, func(a, b entry) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
	} else {
		// The list is nearly in order from the last pass, so insertion sort costs little.
		for i := 1; i < len(s.running); i++ {
			for k := i; k > 0 && s.running[k].before(&s.running[k-1]); k-- {
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
	for _, e := range s.stopped {
		s.plan = append(s.plan, step{stop: true, entry: e})
	}
	if counted {
		for _, i := range s.fresh {
			s.plan = append(s.plan, step{entry: s.chosen[i]})
		}
		return
	}
	for i, e := range s.chosen {
		if v.State(e.job) == sim.Waiting {
			s.plan = append(s.plan, step{entry: e, from: s.exact.spans[i].from, to: s.exact.spans[i].to})
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
	left, quotas := v.Cluster().FreeMilli(), len(s.lanes) > 1
	for i := range s.lanes {
		s.lanes[i].room = v.Cluster().VCRoom(int32(i))
	}
	for _, e := range s.running {
		left += milli(v, e.job)
	}
	for i := 0; quotas && i < len(s.running); i++ {
		j := s.running[i].job
		s.lanes[s.laneOf(v, j)].spend(-milli(v, j))
	}
	rest := left - v.Cluster().FreeMilli() // of the running jobs from r on
	r := 0
	var l *lane
	w, known := none, false // w is the first waiting job that has room, or that ends the pass
	for {
		for !known {
			l, w = s.bestOf(v, left)
			if known = w == none || s.strict || milli(v, l.top(w).job) <= min(left, l.room); !known {
				l.close(w)
			}
		}
		if !quotas && !s.lanes[0].over {
			if w == none && rest <= left {
				s.chosen = append(s.chosen, s.running[r:]...)
				return
			}
			n := left
			r, left = s.stay(v, r, left, l, w)
			if rest -= n - left; w != none && !s.strict && milli(v, l.top(w).job) > left {
				known = false // another may come first now
				continue
			}
		}
		switch {
		case r < len(s.running) && (w == none || s.running[r].before(l.top(w))):
			e := s.running[r]
			r++
			n, its := milli(v, e.job), &s.lanes[s.laneOf(v, e.job)]
			rest -= n
			if !its.over && n <= left && (!quotas || n <= its.room) {
				left -= n
				if quotas {
					its.spend(n)
				}
				s.chosen = append(s.chosen, e)
				// The first stays the first while it has room.
				known = w == none || s.strict || milli(v, l.top(w).job) <= min(left, l.room)
			} else {
				its.over = its.over || s.strict
				s.stopped = append(s.stopped, e)
				known = !s.strict
			}
		case w == none:
			return
		case milli(v, l.top(w).job) > min(left, l.room):
			l.over, known = true, false // strict
		default:
			e := s.pop(l, w)
			left -= milli(v, e.job)
			l.spend(milli(v, e.job))
			s.fresh = append(s.fresh, len(s.chosen))
			s.chosen = append(s.chosen, e)
			known = false
		}
	}
}

// stay chooses the running jobs from r on that rank before the waiting job w, if there is one, until one has no room in
// left. It returns the next and what is left.
func (s *Scheduler) stay(v *sim.View, r, left int, l *lane, w int) (next, rest int) {
	var first *entry
	if w != none {
		first = l.top(w)
	}
	for ; r < len(s.running); r++ {
		e := &s.running[r]
		if first != nil && !e.before(first) {
			break
		}
		n := milli(v, e.job)
		if n > left {
			break
		}
		left -= n
		s.chosen = append(s.chosen, *e)
	}
	return r, left
}

// spend takes milli thousandths from the lane's quota, if it has one.
func (l *lane) spend(milli int) {
	if l.room != math.MaxInt {
		l.room -= milli
	}
}

// bestOf is best with a count of free thousandths instead of a cluster.
func (s *Scheduler) bestOf(v *sim.View, free int) (l *lane, at int) {
	if len(s.lanes) == 1 && !s.lanes[0].over {
		return &s.lanes[0], s.lanes[0].best(v, s.limit(free/1000))
	}
	at = none
	for i := range s.lanes {
		k := &s.lanes[i]
		if k.over {
			continue
		}
		if w := k.best(v, s.limit(min(free, k.room)/1000)); w != none && (at == none || k.top(w).before(l.top(at))) {
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
		d.Job = p.job
		if p.stop {
			d.Op = sim.PreemptJob
			d.GPUs = d.GPUs[:0]
			return false
		}
		ok := p.to > 0
		if ok {
			d.GPUs = append(d.GPUs[:0], s.exact.spots[p.from:p.to]...)
		} else {
			d.GPUs, ok = s.place.Place(v, p.job, v.Cluster(), d.GPUs)
		}
		if ok {
			d.Op = sim.StartJob
			s.running = append(s.running, entry{pos: p.pos, job: p.job})
			return false
		}
		s.push(v, p.entry)
	}
	if s.state != nil {
		s.chosen = slices.DeleteFunc(s.chosen, func(e entry) bool { return v.State(e.job) != sim.Running })
		s.state.after(v, s.chosen, s.stopped)
	}
	again := s.goesOn(v)
	// Stopped jobs wait from now on; their keys are computed at this time.
	for _, e := range s.stopped {
		s.push(v, entry{s.rule.key(s, v, e.job), e.pos, e.job})
	}
	if len(s.stopped) > 0 {
		s.running = slices.DeleteFunc(s.running, func(e entry) bool { return v.State(e.job) != sim.Running || v.Pos(e.job) != e.pos })
		s.stopped = s.stopped[:0]
	}
	if s.state != nil {
		s.until = s.state.before(v, s.running)
	}
	if again {
		s.until = int64(v.Now()) + 1
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

// Keep makes a scheduler that stops running jobs spare some from the next Reset on: those at positions before first, and
// those whose stint has not lasted min. It does not ask to be called when that time is over. It implements sched.Keeper.
func (s *Scheduler) Keep(first int, least time.Duration) { s.kept = kept{first, least} }

// goesOn reports whether a job of a virtual cluster that shares its nodes was stopped only because another needed its
// GPUs, and has a place elsewhere. It starts there a nanosecond later, because a job can be changed only once at any
// time.
func (s *Scheduler) goesOn(v *sim.View) bool {
	return len(s.lanes) > 1 && slices.ContainsFunc(s.exact.displaced, func(e entry) bool {
		if v.State(e.job) != sim.Waiting || !v.Fits(e.job) {
			return false
		}
		var ok bool
		s.exact.dst, ok = s.place.Place(v, e.job, v.Cluster(), s.exact.dst)
		return ok
	})
}

// takeStock updates the list of running jobs to what happened since the last pass.
func (s *Scheduler) takeStock(v *sim.View) {
	if !s.ended && len(s.running) == len(v.Running()) {
		return // no job has stopped, and other code has started none
	}
	s.ended = false
	s.running = slices.DeleteFunc(s.running, func(e entry) bool { return v.State(e.job) != sim.Running || v.Pos(e.job) != e.pos })
	if len(s.running) == len(v.Running()) {
		return
	}
	// Other code has started jobs. Those started at this same time cannot be stopped now.
	s.running = s.running[:0]
	for _, j := range v.Running() {
		if v.Started(j) < v.Now() {
			s.running = append(s.running, entry{pos: v.Pos(j), job: j})
		}
	}
}
