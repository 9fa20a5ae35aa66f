package ppo

import (
	"math"
	"testing"

	"clustergym/env"
)

// A rollout whose rewards are 2 an hour, whatever the agent does, has differential rewards of 0, and the average follows
// a change by the share that Average says.
func TestTheAverageRewardIsSubtracted(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Gamma, cfg.Average, cfg.Steps, cfg.Minibatches = 1, 0.25, 2, 1
	s := env.Spec{ID: "two", Obs: []env.Field{{Name: "x", Shape: []int{1}, Low: -1, High: 1}},
		Action: env.ActionSpec{Sizes: []int{2}}, Tau: 3600e9}
	a, err := New(cfg, s, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(perHour float64) {
		a.roll.Reset()
		for range cfg.Steps {
			b, next := env.NewBatch(s, 1), env.NewBatch(s, 1)
			next.Kind[0], next.Reward[0], next.Elapsed[0] = env.Mid, perHour/2, 1800e9
			if err := a.roll.Add(b, env.NewActions(s, 1), next, []float32{0}, []float32{0}, []float32{0}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(2)
	a.subtract()
	if got := 3600 * a.average.PerSecond; math.Abs(got-2) > 1e-9 || math.Abs(float64(a.roll.Reward[1])) > 1e-6 {
		t.Errorf("the average is %v an hour and a reward is %v, want 2 and 0", got, a.roll.Reward[1])
	}
	fill(6)
	a.subtract()
	if got := 3600 * a.average.PerSecond; math.Abs(got-3) > 1e-9 || math.Abs(float64(a.roll.Reward[0])-1.5) > 1e-6 {
		t.Errorf("the average is %v an hour and a reward is %v, want 3 and 1.5", got, a.roll.Reward[0])
	}
	kept, err := a.save()
	if err != nil || kept.Average == nil || *kept.Average != a.average {
		t.Errorf("the state has the average %+v (%v), want %+v", kept.Average, err, a.average)
	}
}
