package incumbent

import (
	"slices"
	"sort"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// Before returns p up to t: its jobs that arrived before, as if no others had come. What is fitted to it has not seen
// the rest.
func (p *Past) Before(t time.Duration) *Past {
	n := sort.Search(len(p.Jobs), func(i int) bool { return p.Jobs[i].Submit >= t })
	q := *p
	q.Jobs, q.Starts, q.End = p.Jobs[:n:n], p.Starts[:n:n], min(p.End, t)
	if p.Held != nil {
		q.Held = p.Held[:n:n]
	}
	q.Seated = slices.DeleteFunc(slices.Clone(p.Seated), func(s Seat) bool { return s.Job >= n })
	return &q
}

// Weighed returns the scheduler hold with weights; zero ones are the default.
func Weighed(w *tuned.Hold, placement string, known sim.Estimates) (sim.Scheduler, error) {
	h, err := schedulers.Parse(Hold)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	h.Hold, h.Placement, h.Estimates = *w, placement, known
	s, err := schedulers.New(h)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	return s, nil
}

// Hold is the name of the policy that weighs length, size and age of jobs.
const Hold = "hold"
