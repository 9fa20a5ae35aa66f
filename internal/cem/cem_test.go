package cem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"clustergym/internal/cem"
	"clustergym/internal/par"
	"clustergym/internal/testseed"
)

// usual are moves that converge.
var usual = cem.Search{Population: 40, Elite: 10, MeanStep: 0.5, DeviationStep: 0.3, Least: 1e-4}

// seeded returns the seed of a test that draws, and prints it if the test fails.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed := testseed.Or(1)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d repeats this run", testseed.Key, seed)
		}
	})
	return seed
}

// bowl is a quadratic with its least value, 3, at a point.
type bowl struct{ at, steep []float64 }

func newBowl(r *rand.Rand, n int) (b bowl) {
	for range n {
		b.at = append(b.at, 4*r.Float64()-2)
		b.steep = append(b.steep, math.Exp(2*r.Float64()-1))
	}
	return b
}

func (b *bowl) cost(x []float64) float64 {
	sum := 3.0
	for k := range x {
		sum += b.steep[k] * (x[k] - b.at[k]) * (x[k] - b.at[k])
	}
	return sum
}

func start(n int) cem.Point {
	p := cem.Point{Mean: make([]float64, n), Deviation: make([]float64, n)}
	for k := range p.Deviation {
		p.Deviation[k] = 1
	}
	return p
}

// search moves p until it has had so many generations.
func search(s *cem.Search, p *cem.Point, seed uint64, generations, workers int, cost func(x []float64) float64) {
	for p.Generation < generations {
		drawn := s.Draw(p, cem.Stream(seed, "test", p.Generation))
		costs := make([]float64, len(drawn))
		if err := par.For(context.Background(), workers, len(drawn), func(_, i int) error {
			costs[i] = cost(drawn[i])
			return nil
		}); err != nil {
			panic(err)
		}
		s.Move(p, drawn, costs)
	}
}

func TestTheLeastOfAQuadraticIsFound(t *testing.T) {
	seed := seeded(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1, 3, 8} {
		b, p := newBowl(r, n), start(n)
		search(&usual, &p, seed, 150, 2, b.cost)
		for k := range p.Mean {
			if math.Abs(p.Mean[k]-b.at[k]) > 0.02 {
				t.Errorf("%d numbers: number %d is %v, want %v", n, k, p.Mean[k], b.at[k])
			}
		}
		if p.Generation != 150 {
			t.Errorf("%d generations, want 150", p.Generation)
		}
	}
}

// A point that is written and read between two generations continues with the same bits.
func TestASearchContinuesFromAPoint(t *testing.T) {
	seed := seeded(t)
	b, want := newBowl(rand.New(rand.NewPCG(seed, 0)), 5), start(5)
	search(&usual, &want, seed, 20, 1, b.cost)
	half := start(5)
	search(&usual, &half, seed, 7, 1, b.cost)
	text, err := json.Marshal(half)
	if err != nil {
		t.Fatal(err)
	}
	var got cem.Point
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	search(&usual, &got, seed, 20, 1, b.cost)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("after an interruption %+v, want %+v", got, want)
	}
	other := start(5)
	search(&usual, &other, seed+1, 20, 1, b.cost)
	if reflect.DeepEqual(other, want) {
		t.Error("two seeds draw the same")
	}
}

func TestWorkersChangeNothing(t *testing.T) {
	seed := seeded(t)
	b := newBowl(rand.New(rand.NewPCG(seed, 0)), 5)
	one, three := start(5), start(5)
	search(&usual, &one, seed, 10, 1, b.cost)
	search(&usual, &three, seed, 10, 3, b.cost)
	if !reflect.DeepEqual(one, three) {
		t.Errorf("3 workers: %+v, 1: %+v", three, one)
	}
}

// One move, by hand: the elite of 6, 1, 2, 3 are the second and third.
func TestAMove(t *testing.T) {
	s := cem.Search{Population: 4, Elite: 2, MeanStep: 0.5, DeviationStep: 0.25, Least: 0.1}
	p := cem.Point{Generation: 3, Mean: []float64{0, 5, 1}, Deviation: []float64{1, 0, 0.1}}
	drawn := [][]float64{{0, 5, 1}, {2, 5, 1}, {4, 5, 1}, {9, 5, 1}}
	s.Move(&p, drawn, []float64{6, 1, 2, 3})
	// The mean of 2 and 4 is 3, their deviation 1: the mean goes from 0 to 1.5, the deviation stays. The second number
	// does not move, the third has the least deviation.
	want := cem.Point{Generation: 4, Mean: []float64{1.5, 5, 1}, Deviation: []float64{1, 0, 0.1}}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("%+v, want %+v", p, want)
	}
	// Costs that are no numbers are the greatest, and of equals the first wins.
	p = cem.Point{Mean: []float64{0}, Deviation: []float64{1}}
	s.Elite = 1
	s.Move(&p, [][]float64{{8}, {2}, {4}, {6}}, []float64{math.NaN(), 7, 7, math.Inf(1)})
	if p.Mean[0] != 1 || p.Deviation[0] != 0.75 {
		t.Errorf("%+v, want mean 1 and deviation 0.75", p)
	}
}

// What is drawn has the mean and deviation of the point, the first vector apart, which is the mean.
func TestDrawsFollowThePoint(t *testing.T) {
	seed := seeded(t)
	const n = 20000
	s := cem.Search{Population: n + 1}
	p := cem.Point{Mean: []float64{-3, 2, 7}, Deviation: []float64{0.5, 2, 0}}
	kept := fmt.Sprint(p)
	drawn := s.Draw(&p, cem.Stream(seed, "test", 4))
	if !slices.Equal(drawn[0], p.Mean) || &drawn[0][0] == &p.Mean[0] {
		t.Errorf("the first is %v, want a copy of the mean %v", drawn[0], p.Mean)
	}
	for k := range p.Mean {
		sum, squares := 0.0, 0.0
		for _, x := range drawn[1:] {
			d := x[k] - p.Mean[k]
			sum += d
			squares += d * d
		}
		// Five standard errors.
		if got := sum / n; math.Abs(got) > 5*p.Deviation[k]/math.Sqrt(n) {
			t.Errorf("number %d is off by %v in the mean", k, got)
		}
		if got := math.Sqrt(squares / n); math.Abs(got-p.Deviation[k]) > 5*p.Deviation[k]/math.Sqrt(2*n) {
			t.Errorf("number %d has deviation %v, want %v", k, got, p.Deviation[k])
		}
	}
	if fmt.Sprint(p) != kept {
		t.Error("the point has changed")
	}
}
