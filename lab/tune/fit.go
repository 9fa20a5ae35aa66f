package tune

import (
	"context"
	"math"
	"slices"

	"clustergym/internal/cem"
	"clustergym/simulator/schedulers/tuned"
)

// Fitted says how Fit went. Costs are those of Trial.
type Fitted struct {
	Generations int     `json:"generations"`
	Plays       int     `json:"plays"` // policies that were simulated
	Start       float64 `json:"start"` // cost of the weights at the beginning
	Best        float64 `json:"best"`  // of the result
	At          int     `json:"best_generation"`
}

// Trial simulates a policy with each of the weights on the same jobs and returns what they cost, in order; less is
// better. It is asked for whole generations, so that it can play side by side.
type Trial func(ctx context.Context, all []Weights) ([]float64, error)

// Fit looks for weights as Run does, on simulations of the caller's own. All generations play the same jobs, and the
// result is the cheapest of the means, the weights at the beginning included: what it costs elsewhere is for other jobs
// to say. s.Windows, Draws and Every are not looked at. tick is called before each generation; nil = nobody is told.
// The result is the same for any number of workers of trial.
func Fit(ctx context.Context, start *Weights, s *Settings, trial Trial, tick func(generation, all int)) (Weights,
	*Fitted, error) {
	if err := s.Check(start.Policy); err != nil {
		return Weights{}, nil, err
	}
	p := first(start, s)
	r := &Fitted{Best: math.Inf(1)}
	best := slices.Clone(p.Mean)
	for {
		if tick != nil {
			tick(p.Generation, s.Generations)
		}
		drawn := [][]float64{p.Mean} // at the end the last mean is played alone
		if p.Generation < s.Generations {
			drawn = s.drawn(&p, "tune/fit")
		}
		all := make([]Weights, len(drawn))
		for i, x := range drawn {
			all[i] = of(start.Policy, x)
		}
		cost, err := trial(ctx, all)
		if err != nil {
			return Weights{}, nil, err
		}
		r.Plays += len(all)
		if cost[0] < r.Best { // the first of a generation is the mean
			best, r.Best, r.At = slices.Clone(p.Mean), cost[0], p.Generation
		}
		if p.Generation == 0 {
			r.Start = cost[0]
		}
		if p.Generation == s.Generations {
			break
		}
		method := s.method()
		method.Move(&p, drawn, cost)
	}
	r.Generations = p.Generation
	return of(start.Policy, best), r, nil
}

// first returns the distribution at the beginning of a search: around start, wide where a weight changes much.
func first(start *Weights, s *Settings) cem.Point {
	p := cem.Point{Mean: vector(start)}
	for i, scale := range familyOf(start.Policy).scale {
		if !s.moves(start.Policy, i) {
			scale = 0
		}
		p.Deviation = append(p.Deviation, spread*scale)
	}
	return p
}

// drawn draws the weights of a generation.
func (s *Settings) drawn(p *cem.Point, stream string) [][]float64 {
	method := s.method()
	all := method.Draw(p, cem.Stream(s.Seed, stream, p.Generation))
	for _, w := range all {
		bound(p.Mean, w)
	}
	return all
}

// bound keeps weights within what the policies accept, unless the mean was given from outside of it.
func bound(mean, w []float64) {
	for k := range w {
		if math.Abs(mean[k]) <= tuned.HeaviestHold {
			w[k] = max(-tuned.HeaviestHold, min(tuned.HeaviestHold, w[k]))
		}
	}
}
