package runpage

import (
	"clustergym/lab/arena"
	"clustergym/simulator/sim"
)

// jctSum counts completion times by position.
type jctSum struct {
	seconds []float64
	at      []int
}

// Observe implements sim.Observer.
func (s *jctSum) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		if e.Kind == sim.Finish {
			s.at = append(s.at, v.Pos(e.Job))
			s.seconds = append(s.seconds, (e.At - v.Trace(e.Job).Submit).Seconds())
		}
	}
	return nil
}

func (s *jctSum) mean(first int) float64 {
	sum, n := 0.0, 0.0
	for i, at := range s.at {
		if at >= first {
			sum += s.seconds[i]
			n++
		}
	}
	return sum / n
}

// among is the mean over the jobs of an excerpt.
func (s *jctSum) among(w arena.Watched) float64 {
	sum, n := 0.0, 0.0
	for i, at := range s.at {
		if at >= w.First && at < w.First+w.Jobs {
			sum += s.seconds[i]
			n++
		}
	}
	return sum / n
}
