package heuristic

import (
	"math"

	"clustergym/env/sim"
)

// maxLasts bounds estimated run times so that the current time plus an estimate does not overflow.
const maxLasts = math.MaxInt64 / 4

// lasts returns how long the scheduler expects j, which waits, to run once it starts: at least 1 ns. Requested times
// are wall-clock times, so a job that its placement slows down outlives them.
func (s *Scheduler) lasts(v *sim.View, j sim.Job) int64 {
	d := s.est.Of(v, j)
	if v.FirstStart(j) >= 0 {
		if s.est.Mode == sim.EstimateExact {
			return int64(min(max(1, math.Ceil(v.Left(j))), maxLasts))
		}
		d = s.est.Left(v, j)
	}
	return min(max(1, int64(d)), maxLasts)
}

// ends holds the running jobs in order of their expected ends.
type ends struct {
	tree treap
	root int32
	n    int
}

func (e *ends) reset() {
	e.tree.reset()
	e.root, e.n = none, 0
}

func (e *ends) add(j sim.Job, pos int, end, need int64) {
	if int(j) < len(e.tree.nodes) && e.tree.nodes[j].in {
		e.remove(j)
	}
	e.root = e.tree.insert(e.root, j, uint64(max(0, end)), pos, end, need)
	e.n++
}

func (e *ends) remove(j sim.Job) {
	e.root = e.tree.remove(e.root, j)
	e.n--
}

// has reports whether j is entered as running.
func (e *ends) has(j sim.Job) bool { return int(j) < len(e.tree.nodes) && e.tree.nodes[j].in }

// of returns when j, which runs, is expected to end.
func (e *ends) of(j sim.Job) int64 { return e.tree.nodes[j].time }

// released returns the thousandths of a GPU held by all jobs that are expected to end by t.
func (e *ends) released(t int64) int64 { return e.tree.upTo(e.root, uint64(max(0, t))) }

// enough returns the time by which jobs expected to have ended give back need, or MaxInt64 if they never do.
func (e *ends) enough(need int64) int64 {
	if i := e.tree.reaching(e.root, need); i != none {
		return e.tree.nodes[i].time
	}
	return math.MaxInt64
}

// sync updates the books to the state of j. It reports whether j runs without having been entered here: other code
// started it.
func (e *ends) sync(s *Scheduler, v *sim.View, j sim.Job) (foreign bool) {
	runs := v.State(j) == sim.Running
	if int(j) < len(e.tree.nodes) && e.tree.nodes[j].in {
		if runs && e.tree.nodes[j].pos == v.Pos(j) {
			return false
		}
		e.remove(j)
	}
	if runs {
		e.add(j, v.Pos(j), s.expectedEnd(v, j), int64(milli(v, j)))
	}
	return runs
}

// overdue expects the jobs that have outlived their forecast to end later, and reports whether there are such jobs. Jobs
// that outlive another estimate are expected to end now, as in published simulators.
func (e *ends) overdue(s *Scheduler, v *sim.View) (found bool) {
	if !s.est.Causal() {
		return false
	}
	for {
		i := e.tree.first(e.root)
		if i == none || e.tree.nodes[i].time > int64(v.Now()) {
			return found
		}
		j := sim.Job(i)
		e.add(j, v.Pos(j), s.expectedEnd(v, j), int64(milli(v, j)))
		found = true
	}
}

// expectedEnd returns when j, which runs, is expected to end.
func (s *Scheduler) expectedEnd(v *sim.View, j sim.Job) int64 {
	if s.est.Causal() {
		return int64(v.Now()) + min(int64(s.est.Left(v, j)), maxLasts)
	}
	return int64(v.Now()) + min(int64(s.est.Of(v, j)), maxLasts) - int64(v.Ran(j))
}

// rebuild enters all running jobs anew.
func (e *ends) rebuild(s *Scheduler, v *sim.View) {
	e.reset()
	for _, j := range v.Running() {
		e.add(j, v.Pos(j), s.expectedEnd(v, j), int64(milli(v, j)))
	}
}
