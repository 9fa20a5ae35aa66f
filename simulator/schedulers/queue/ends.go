package queue

import (
	"math"

	"clustergym/simulator/sim"
)

// Ends holds the running jobs in order of their expected ends.
type Ends struct {
	tree Tree
	root int32
	N    int // jobs
}

// Reset forgets all jobs.
func (e *Ends) Reset() {
	e.tree.Reset()
	e.root, e.N = None, 0
}

// Add enters j as running until end, on need thousandths of a GPU, in place of what was entered before.
func (e *Ends) Add(j sim.Job, pos int, end, need int64) {
	if e.Has(j) {
		e.remove(j)
	}
	e.root = e.tree.Insert(e.root, j, uint64(max(0, end)), pos, end, need)
	e.N++
}

func (e *Ends) remove(j sim.Job) {
	e.root = e.tree.Remove(e.root, j)
	e.N--
}

// Has reports whether j is entered as running.
func (e *Ends) Has(j sim.Job) bool { return int(j) < len(e.tree.Nodes) && e.tree.Nodes[j].in }

// Of returns when j, which runs, is expected to end.
func (e *Ends) Of(j sim.Job) int64 { return e.tree.Nodes[j].Time }

// Released returns the thousandths of a GPU held by all jobs that are expected to end by t.
func (e *Ends) Released(t int64) int64 { return e.tree.upTo(e.root, uint64(max(0, t))) }

// Enough returns the time by which jobs expected to have ended give back need, or MaxInt64 if they never do.
func (e *Ends) Enough(need int64) int64 {
	if i := e.tree.reaching(e.root, need); i != None {
		return e.tree.Nodes[i].Time
	}
	return math.MaxInt64
}

// Sync updates the books to the state of j. It reports whether j runs without having been entered here: other code
// started it.
func (e *Ends) Sync(est *sim.Estimates, v *sim.View, j sim.Job) (foreign bool) {
	runs := v.State(j) == sim.Running
	if e.Has(j) {
		if runs && e.tree.Nodes[j].Pos == v.Pos(j) {
			return false
		}
		e.remove(j)
	}
	if runs {
		e.Add(j, v.Pos(j), expectedEnd(est, v, j), int64(Milli(v, j)))
	}
	return runs
}

// Overdue expects the jobs that have outlived their forecast to end later, and reports whether there are such jobs.
// Jobs that outlive another estimate are expected to end now, as in published simulators.
func (e *Ends) Overdue(est *sim.Estimates, v *sim.View) (found bool) {
	if !est.Causal() {
		return false
	}
	for {
		i := e.tree.First(e.root)
		if i == None || e.tree.Nodes[i].Time > int64(v.Now()) {
			return found
		}
		j := sim.Job(i)
		e.Add(j, v.Pos(j), expectedEnd(est, v, j), int64(Milli(v, j)))
		found = true
	}
}

// expectedEnd returns when j, which runs, is expected to end.
func expectedEnd(est *sim.Estimates, v *sim.View, j sim.Job) int64 {
	if est.Causal() {
		return int64(v.Now()) + min(int64(est.Left(v, j)), MaxLasts)
	}
	return int64(v.Now()) + min(int64(est.Of(v, j)), MaxLasts) - int64(v.Ran(j))
}

// Rebuild enters all running jobs again, and no others.
func (e *Ends) Rebuild(est *sim.Estimates, v *sim.View) {
	e.Reset()
	for _, j := range v.Running() {
		e.Add(j, v.Pos(j), expectedEnd(est, v, j), int64(Milli(v, j)))
	}
}

// List appends the running jobs to dst, those that are expected to end first at the front.
func (e *Ends) List(dst []sim.Job) []sim.Job { return e.tree.List(e.root, dst) }

// Held returns the thousandths of a GPU that j, which runs, holds.
func (e *Ends) Held(j sim.Job) int64 { return e.tree.Nodes[j].Need }
