package sched

import (
	"cmp"
	"slices"
	"time"

	"clustergym/env/sim"
)

// gangs chooses the running jobs that are visible.
type gangs struct {
	rows int // R; 0 = none is
	all  []gang
}

// gang is a running job and its weight in GPU-nanoseconds.
type gang struct {
	weight float64
	pos    int
	job    sim.Job
}

// fill sets s.Running to the R running jobs of most expected GPU-time left, the first of the trace first among equals. Where
// there are no estimates it takes those that have held most GPU-time so far.
func (g *gangs) fill(s *State) {
	s.Running = s.Running[:0]
	if g.rows == 0 {
		return
	}
	g.all = g.all[:0]
	for _, j := range s.View.Running() {
		t := s.View.Ran(j)
		if !s.Blind {
			t = s.Remaining(j)
		}
		g.all = append(g.all, gang{float64(t) * s.Known[j].GPUs, s.View.Pos(j), j})
	}
	slices.SortFunc(g.all, func(a, b gang) int {
		if c := cmp.Compare(b.weight, a.weight); c != 0 {
			return c
		}
		return a.pos - b.pos
	})
	for _, x := range g.all[:min(g.rows, len(g.all))] {
		s.Running = append(s.Running, x.job)
	}
}

// Remaining returns how long j, which runs, is expected to run on: until it finishes where estimates are exact, else Left.
func (s *State) Remaining(j sim.Job) time.Duration {
	if s.Estimates.Mode == sim.EstimateExact {
		return max(1, s.View.Finished(j)-s.View.Now())
	}
	return s.Left(j)
}
