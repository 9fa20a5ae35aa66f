package hindsight

import (
	"slices"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// follower is the scheduler that plays a schedule.
type follower struct {
	place cluster.Placement

	order   []int  // positions of the jobs, the first to start first
	insists []bool // by position
	follows []bool // by position
	ranks   []int  // by position: its index in order

	started []bool // by position

	line []waiting // jobs that wait, in order
	at   int       // the next one to look at
	open bool      // a point is being decided
	seen int       // jobs before this position are in line
}

type waiting struct {
	rank int
	job  sim.Job
}

func byRank(a, b waiting) int { return a.rank - b.rank }

var _ sim.Scheduler = (*follower)(nil)

// follow makes the schedule the order in which a recorded play has started its jobs. None insists.
func (f *follower) follow(r *recorder) {
	f.order = f.order[:0]
	for pos := range r.at {
		if r.at[pos].seen {
			f.order = append(f.order, pos)
		}
	}
	slices.SortStableFunc(f.order, func(a, b int) int { return int(r.at[a].on - r.at[b].on) })
	f.insists = append(f.insists[:0], make([]bool, len(r.at))...)
	f.follows = append(f.follows[:0], f.insists...)
	f.started = append(f.started[:0], f.insists...)
	f.rank()
}

func (f *follower) rank() {
	f.ranks = append(f.ranks[:0], make([]int, len(f.insists))...)
	for i, pos := range f.order {
		f.ranks[pos] = i
	}
}

// move puts the job at place from of the order at place to.
func (f *follower) move(from, to int) {
	pos := f.order[from]
	if from < to {
		copy(f.order[from:to], f.order[from+1:to+1])
	} else {
		copy(f.order[to+1:from+1], f.order[to:from])
	}
	f.order[to] = pos
	for i := min(from, to); i <= max(from, to); i++ {
		f.ranks[f.order[i]] = i
	}
}

// Reset implements sim.Scheduler.
func (f *follower) Reset(v *sim.View) {
	f.line, f.open = f.line[:0], false
	clear(f.started)
	if p, ok := f.place.(interface{ Reset() }); ok {
		p.Reset()
	}
	for _, j := range v.Waiting() {
		f.add(v, j)
	}
	f.seen = v.Arrived()
}

func (f *follower) add(v *sim.View, j sim.Job) {
	w := waiting{f.ranks[v.Pos(j)], j}
	i, _ := slices.BinarySearchFunc(f.line, w, byRank)
	f.line = slices.Insert(f.line, i, w)
}

// Decide implements sim.Scheduler.
func (f *follower) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if !f.open {
		f.open, f.at = true, 0
		for i := range p.Events {
			switch e := &p.Events[i]; e.Kind {
			case sim.Submit:
				// A job that Reset found waiting can also be among the events of the first point.
				if v.Pos(e.Job) >= f.seen {
					f.add(v, e.Job)
				}
			case sim.Fail:
				f.add(v, e.Job)
			}
		}
	}
	for ; f.at < len(f.line); f.at++ {
		j := f.line[f.at].job
		pos := v.Pos(j)
		// On an idle cluster with nothing to come, what a job waits for would never happen.
		if v.Fits(j) && !(f.held(pos) && v.CanWait()) {
			ok := v.Cluster().Pool() // no placement distinguishes its GPUs
			if d.GPUs = d.GPUs[:0]; !ok {
				d.GPUs, ok = f.place.Place(v.Cluster(), v.Request(j), d.GPUs)
			}
			if ok {
				d.Op, d.Job = sim.StartJob, j
				f.line = slices.Delete(f.line, f.at, f.at+1)
				f.started[pos] = true
				return nil
			}
		}
		if f.insists[pos] && v.CanWait() {
			break
		}
	}
	f.open = false
	d.Op, d.Until = sim.Wait, 0
	return nil
}

// held reports whether the job at a position follows one that has not started.
func (f *follower) held(pos int) bool {
	i := f.ranks[pos]
	return f.follows[pos] && i > 0 && !f.started[f.order[i-1]]
}
