package sched

import (
	"slices"
	"time"

	"clustergym/simulator/sim"
)

// Stops says which running jobs actions can stop: the agent's (Known.Counted) whose stint has lasted Min. A job that
// has started at an instant cannot be stopped at the same instant, and one that was stopped becomes visible at the
// next.
type Stops struct {
	Min time.Duration
}

// Keeper is an optional ability of a scheduler that stops running jobs: from the next Reset on it stops none whose
// position is below first, and none whose stint has not lasted min.
type Keeper interface {
	Keep(first int, least time.Duration)
}

// gangs chooses the running jobs that are visible.
type gangs struct {
	rows  int    // R; 0 = none is
	stops *Stops // nil = none can be stopped
	all   []gang
}

// gang is a running job and its weight in GPU-nanoseconds.
type gang struct {
	weight float64
	pos    int
	job    sim.Job
}

// fill sets s.Stops, and s.Running to the R running jobs of most expected GPU-time left, the first of the trace first
// among equals. Where there are no estimates it takes those that have held most GPU-time so far.
func (g *gangs) fill(s *State) {
	s.Running, s.Stops = s.Running[:0], s.Stops[:0]
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
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return a.pos - b.pos
	})
	for _, x := range g.all[:min(g.rows, len(g.all))] {
		s.Running = append(s.Running, x.job)
		s.Stops = append(s.Stops, g.stops != nil && s.Waiting > 0 && g.stops.may(s, x.job))
	}
}

// may reports whether j, which runs, can be stopped now.
func (p *Stops) may(s *State, j sim.Job) bool {
	stint := s.View.Now() - s.View.Started(j)
	return s.Known[j].Counted && stint > 0 && stint >= p.Min
}

// Remaining returns how long j, which runs, is expected to run on: until it finishes where estimates are exact, else
// Left.
func (s *State) Remaining(j sim.Job) time.Duration {
	if s.Estimates.Mode == sim.EstimateExact {
		return max(1, s.View.Finished(j)-s.View.Now())
	}
	return s.Left(j)
}
