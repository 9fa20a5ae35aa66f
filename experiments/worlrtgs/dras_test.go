package worlrtgs

import (
	"context"
	"math"
	"testing"

	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/synth"
)

// The DRAS-like baseline must be worth more than picks drawn at random in the same machine, on graphs that it was not
// trained on and that no table reports. Training and graphs follow from fixed seeds.
func TestDRASBeatsRandomPicking(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds of training")
	}
	ctx := context.Background()
	c := defaultDRASAgent()
	weights, err := drasWeights(ctx, &c, 40_000, 2, func(int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	sum, graphs := 0.0, 0
	for _, family := range synth.Families() {
		if family == "degree-100" { // almost a chain: the queue is empty
			continue
		}
		for k := range 8 {
			q, err := synth.FamilyProblem(family, 150, 8, 1000+k, true)
			if err != nil {
				t.Fatal(err)
			}
			dras, err := playDRAS(ctx, q, &c, weights)
			if err != nil {
				t.Fatal(err)
			}
			if err := dag.Check(q, dras, true); err != nil {
				t.Error(err)
			}
			const plays = 5
			random := 0.0
			for seed := range uint64(plays) {
				p, err := playQueue(q, rng.Stream(seed, "worl-rtgs/test"))
				if err != nil {
					t.Fatal(err)
				}
				random += p.Makespan / plays
			}
			sum, graphs = sum+math.Log(dras.Makespan/random), graphs+1
		}
		t.Logf("%s: %+.2f %% so far", family, 100*sum/float64(graphs))
	}
	if mean := sum / float64(graphs); mean > -0.01 {
		t.Errorf("against random picking: %+.2f %%, want −1 %% at least", 100*mean)
	}
}
