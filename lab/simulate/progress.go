package simulate

import (
	"time"

	"clustergym/simulator/sim"
)

// Progress says how far a run is.
type Progress struct {
	Policy  string
	Run     int           // its number among the runs, from 0
	Runs    int           // how many there are
	Ended   int           // jobs that have finished or were dropped
	Jobs    int           // jobs in total, 0 = unknown: a trace is being read for the first time
	Waiting int           // -1 = unknown
	Time    time.Duration // simulated, since the first event
}

// watch tells a run's progress at every few of its points.
type watch struct {
	tell   func(Progress)
	at     Progress
	points int
	first  time.Duration
}

var _ sim.Observer = (*watch)(nil)

// watched is how many points, or events of a peer's machine, pass from one report to the next.
const watched = 16

// Observe implements sim.Observer.
func (w *watch) Observe(v *sim.View, p *sim.Point) error {
	if w.points == 0 {
		w.first = p.Now
	}
	if w.points++; w.points%watched == 0 {
		w.at.Ended, w.at.Waiting, w.at.Time = v.Ended(), len(v.Waiting()), p.Now-w.first
		w.tell(w.at)
	}
	return nil
}

// event is Observe for an event of a peer's machine, which does not tell its queue.
func (w *watch) event(at time.Duration, finish bool) {
	if finish {
		w.at.Ended++
	}
	if w.points == 0 {
		w.first = at
	}
	if w.points++; w.points%watched == 0 {
		w.at.Waiting, w.at.Time = -1, at-w.first
		w.tell(w.at)
	}
}
