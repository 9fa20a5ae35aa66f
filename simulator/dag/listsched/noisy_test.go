package listsched

import (
	"context"
	"slices"
	"testing"

	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/synth"
)

func erdos(t *testing.T, tasks, gpus int, seed uint64) *dag.Problem {
	t.Helper()
	src := rng.Stream(seed, "listsched/noisy")
	p, err := synth.Platform(synth.PlatformConfig{GPUs: gpus, Speeds: "spread", Links: "random", Bandwidth: 2000}, src)
	if err != nil {
		t.Fatal(err)
	}
	c := synth.DefaultConfig()
	c.Tasks = tasks
	q, err := synth.Problem(c, p, "noisy", src)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// The best of noisy plans is HEFT's when there is one plan or no noise, never longer, and a valid plan.
func TestNoisyHEFTIsNeverLongerThanHEFT(t *testing.T) {
	shorter := 0
	for seed := range uint64(10) {
		q := erdos(t, 40, 6, seed)
		p := New(q, Options{})
		heft := p.HEFT(true).Clone()
		for _, c := range []struct {
			plans int
			sigma float64
		}{{1, 0.1}, {5, 0}, {30, 0.1}} {
			got, err := p.NoisyHEFT(context.Background(), c.plans, c.sigma, rng.Stream(seed, "listsched/test"))
			if err != nil {
				t.Fatal(err)
			}
			if err := dag.Check(q, got, true); err != nil {
				t.Error(err)
			}
			switch {
			case got.Makespan > heft.Makespan:
				t.Errorf("%d plans, noise %v: %v, HEFT's %v", c.plans, c.sigma, got.Makespan, heft.Makespan)
			case got.Makespan < heft.Makespan:
				shorter++
			}
			if (c.plans == 1 || c.sigma == 0) && !slices.Equal(got.Proc, heft.Proc) {
				t.Errorf("%d plans, noise %v: not HEFT's", c.plans, c.sigma)
			}
			again, err := p.NoisyHEFT(context.Background(), c.plans, c.sigma, rng.Stream(seed, "listsched/test"))
			if err != nil || !slices.Equal(again.Start, got.Start) {
				t.Errorf("the same seed gives another plan, %v", err)
			}
		}
	}
	if shorter < 8 {
		t.Errorf("shorter than HEFT's on %d of 10 graphs", shorter)
	}
	stop, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := New(erdos(t, 10, 2, 1), Options{}).NoisyHEFT(stop, 2, 0.1, rng.Stream(1, "listsched/test")); err == nil {
		t.Error("it does not stop")
	}
}
