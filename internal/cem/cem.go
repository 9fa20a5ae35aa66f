// Package cem looks for the vector of least cost by the cross-entropy method: R. Y. Rubinstein, "The cross-entropy
// method for combinatorial and continuous optimization", Methodology and Computing in Applied Probability 1, 1999; for
// a normal distribution of each number, with smoothed moves: P.-T. de Boer et al., "A tutorial on the cross-entropy
// method", Annals of Operations Research 134, 2005.
//
// A generation has three steps. Draw returns vectors, the caller finds what each costs, on as many goroutines as it
// likes, and Move moves the distribution to those of least cost:
//
//	r := cem.Stream(seed, "name", p.Generation)
//	drawn := s.Draw(&p, r)
//	… cost[i] of drawn[i] …
//	s.Move(&p, drawn, cost)
//
// A Point is all that a search remembers: one that is saved between two generations and read again continues with the
// same bits.
package cem

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
)

// Search says how a distribution is drawn from and how it moves. All of it stays the same during a search.
type Search struct {
	Population int // vectors drawn in a generation, at least 1
	Elite      int // vectors of least cost to which the distribution moves, 1 to Population

	// MeanStep and DeviationStep are how far the mean goes to that of the elite, and the deviation to theirs, each from 0
	// (not at all) to 1 (all of the way).
	MeanStep, DeviationStep float64
	// Least is the least deviation of a number that moves, so that a search never ends by itself.
	Least float64
}

// Point is a distribution: the state of a search after some generations. Numbers of deviation 0 stay as they are.
type Point struct {
	Generation int       `json:"generation"`
	Mean       []float64 `json:"mean"`
	Deviation  []float64 `json:"deviation"`
}

// Stream returns the random numbers of one generation of the search called name. Generations share none, so that a
// search can continue from a Point alone. What a generation's costs are measured with can be drawn from it, too, before
// or after its vectors.
func Stream(seed uint64, name string, generation int) *rand.Rand {
	return rng.Stream(rng.At(seed, uint64(generation)), name)
}

// Draw returns Population vectors, of which the first is the mean itself.
func (s *Search) Draw(p *Point, r *rand.Rand) [][]float64 {
	all := make([][]float64, s.Population)
	for i := range all {
		all[i] = slices.Clone(p.Mean)
		if i == 0 {
			continue
		}
		for k := range all[i] {
			all[i][k] += p.Deviation[k] * r.NormFloat64()
		}
	}
	return all
}

// Move moves p to those of drawn that cost least, of equals the first; a cost that is no number is the greatest. It
// changes neither drawn nor cost.
func (s *Search) Move(p *Point, drawn [][]float64, cost []float64) {
	order := make([]int, len(drawn))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(finite(cost[a]), finite(cost[b])) })
	elite := order[:s.Elite]
	n := float64(len(elite))
	for k := range p.Mean {
		if p.Deviation[k] == 0 {
			continue
		}
		mean, variance := 0.0, 0.0
		for _, i := range elite {
			mean += drawn[i][k] / n
		}
		for _, i := range elite {
			d := drawn[i][k] - mean
			variance += d * d / n
		}
		p.Mean[k] += s.MeanStep * (mean - p.Mean[k])
		p.Deviation[k] = max(s.Least, p.Deviation[k]+s.DeviationStep*(math.Sqrt(variance)-p.Deviation[k]))
	}
	p.Generation++
}

func finite(cost float64) float64 {
	if math.IsNaN(cost) {
		return math.Inf(1)
	}
	return cost
}
