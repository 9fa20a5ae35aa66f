package incumbent

import (
	"cmp"
	"slices"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// timely is first come, first served, with back-filling by time alone: a job overtakes only if its limit ends before
// the first one in line could start when all that runs keeps to its limits. Easy back-filling also lets those overtake
// that leave the first one enough GPUs. It remembers nothing, and is played in replays alone.
type timely struct {
	place cluster.Placement
	todo  []sim.Job
	runs  []sim.Job
	at    time.Duration
	until time.Duration // the first in line could start then; -1 = all before fit
	next  int
	fresh bool
}

// Timely is its name.
const Timely = "fifo+timely"

// Reset implements sim.Scheduler.
func (t *timely) Reset(*sim.View) { t.fresh = true }

// Decide implements sim.Scheduler.
func (t *timely) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if t.fresh || t.at != p.Now {
		t.fresh, t.at, t.next, t.until = false, p.Now, 0, -1
		t.todo = append(t.todo[:0], v.Waiting()...)
		slices.SortFunc(t.todo, func(a, b sim.Job) int { return cmp.Compare(v.Pos(a), v.Pos(b)) })
	}
	for t.next < len(t.todo) {
		j := t.todo[t.next]
		t.next++
		if v.Decided(j) { // it was requeued at this moment
			continue
		}
		if t.until >= 0 && v.Now()+v.Trace(j).Estimate > t.until {
			continue
		}
		if gpus, ok := t.place.Place(v.Cluster(), v.Request(j), d.GPUs); ok {
			d.Op, d.Job, d.GPUs = sim.StartJob, j, gpus
			return nil
		}
		if t.until < 0 {
			t.until = t.couldStart(v, j)
		}
	}
	return nil
}

// couldStart returns when j fits by number if the jobs that run end at their limits.
func (t *timely) couldStart(v *sim.View, j sim.Job) time.Duration {
	free := v.Cluster().GPUs()
	for _, r := range v.Running() {
		free -= v.Trace(r).GPUs
	}
	ends := func(r sim.Job) time.Duration { return max(v.Started(r)+v.Trace(r).Estimate, v.Now()) }
	t.runs = append(t.runs[:0], v.Running()...)
	slices.SortFunc(t.runs,
		func(a, b sim.Job) int { return cmp.Or(cmp.Compare(ends(a), ends(b)), cmp.Compare(v.Pos(a), v.Pos(b))) })
	for _, r := range t.runs {
		if free += v.Trace(r).GPUs; free >= v.Trace(j).GPUs {
			return ends(r)
		}
	}
	return traces.MaxTime
}
