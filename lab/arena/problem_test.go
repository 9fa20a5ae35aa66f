package arena

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/traces"
)

// Statistics of returns calculated by hand, and whether they count as solved.
func TestEpisodeReportByHand(t *testing.T) {
	cfg := config.For("CartPole-v1")
	cfg.Eval.Episodes = 4
	r := &report.EpisodeReport{Env: "X-v1", Solved: new(5.0), Episodes: 4, Seed: cfg.Eval.Seed}
	r.Add("a", "checkpoint", []float64{2, 4, 6, 12}, []float64{1, 2, 3, 4})
	r.Add("b", "baseline", []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1})
	a, b := r.Policies[0], r.Policies[1]
	// Mean 24/4; deviation √((16+4+0+36)/4); the interquartile mean is that of 4 and 6.
	if a.Return.Mean != 6 || a.Return.Std != math.Sqrt(14) || a.Return.IQM != 5 || *a.Length != 2.5 || !*a.Solved ||
		*b.Solved {
		t.Errorf("a is %+v, b is %+v", a, b)
	}
	if lo, hi := a.Return.CI95[0], a.Return.CI95[1]; !(lo >= 2 && lo < 5 && hi > 5 && hi <= 12) ||
		b.Return.CI95 != [2]float64{1, 1} {
		t.Errorf("intervals %v and %v", a.Return.CI95, b.Return.CI95)
	}
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"policy  mean return",
		"a             6.000  3.742   5.000 [2.000, 12.0]  2.000          2.5     yes", "no\n",
		"X-v1: 4 episodes from seed 1", "at least 5.\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	r = &report.EpisodeReport{Env: "Y-v1", Episodes: 1, Seed: cfg.Eval.Seed}
	r.Add("a", "checkpoint", []float64{2}, []float64{1})
	if out, err := json.Marshal(r); err != nil || !strings.Contains(string(out), `"solved_at":null`) ||
		!strings.Contains(string(out), `"solved":null`) {
		t.Errorf("without a threshold: %s (%v)", out, err)
	}
}

// The seeds of validation, test and training episodes are disjoint.
func TestEpisodesOfTrainingValidationAndTestAreApart(t *testing.T) {
	seen := map[uint64]string{}
	add := func(what string, first uint64) {
		for i := range 200 {
			s := env.EpisodeSeed(first, i)
			if other, twice := seen[s]; twice {
				t.Errorf("episode %d of %s is one of %s", i, what, other)
			}
			seen[s] = what
		}
	}
	add("validation", rng.At(1, rng.Hash(seedStreams[traces.Validation])))
	add("test", rng.At(1, rng.Hash(seedStreams[traces.Test])))
	train := rng.Source(1, "train/envs").Uint64()
	for row := range uint64(4) {
		add("training", rng.At(train, row))
	}
}
