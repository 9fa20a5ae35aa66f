package tune

import (
	"context"
	"errors"
	"math"
	"testing"

	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// Fit moves towards weights of least cost, returns the cheapest mean it has seen, and gives equal weights again.
func TestFitFindsWeights(t *testing.T) {
	start := Weights{Policy: held, Hold: tuned.Hold{Base: -1}}
	s := Settings{Generations: 25, Population: 20, Windows: 1, Every: 1, Seed: 3, Only: []string{"width", "base"}}
	plays, told := 0, 0
	trial := func(_ context.Context, all []Weights) ([]float64, error) {
		var cost []float64
		for _, w := range all {
			if w.Hold.Queue != 0 {
				t.Fatalf("a weight that stays moved: %+v", w.Hold)
			}
			cost = append(cost, math.Hypot(w.Hold.Width-1, w.Hold.Base+2))
		}
		plays += len(all)
		return cost, nil
	}
	got, fit, err := Fit(t.Context(), &start, &s, trial, func(_, all int) { told += all / 25 })
	if err != nil || fit.Best > .1 || fit.Start != math.Sqrt2 || fit.Plays != plays || plays != 25*20+1 || told != 26 {
		t.Fatalf("%v: %+v, %d plays, told %d times", err, fit, plays, told)
	}
	if math.Hypot(got.Hold.Width-1, got.Hold.Base+2) != fit.Best {
		t.Errorf("the weights %+v do not cost %v", got.Hold, fit.Best)
	}
	again, _, err := Fit(t.Context(), &start, &s, trial, nil)
	if err != nil || again != got {
		t.Errorf("%v: %+v, want %+v", err, again, got)
	}
	broken := errors.New("broken")
	if _, _, err := Fit(t.Context(), &start, &s,
		func(context.Context, []Weights) ([]float64, error) { return nil, broken }, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	s.Only = []string{"widht"}
	if _, _, err := Fit(t.Context(), &start, &s, trial, nil); err == nil {
		t.Error("an unknown weight was taken")
	}
}

// Where nothing is better than the beginning, that is the result.
func TestFitKeepsTheBeginning(t *testing.T) {
	start := Weights{Policy: held, Hold: tuned.SteadyHold(sim.Estimates{Mode: sim.EstimateHistory})}
	s := Settings{Generations: 3, Population: 6, Windows: 1, Every: 1, Seed: 1}
	got, fit, err := Fit(t.Context(), &start, &s, func(_ context.Context, all []Weights) ([]float64, error) {
		cost := make([]float64, len(all))
		for i := range all {
			if all[i].Hold != start.Hold {
				cost[i] = math.Inf(1)
			}
		}
		return cost, nil
	}, nil)
	if err != nil || got.Hold != start.Hold || fit.At != 0 || fit.Best != 0 {
		t.Errorf("%v: %+v of %+v", err, fit, got)
	}
}
