package ddqn

import (
	"math"
	"testing"
	"time"

	"clustergym/agents/agenttest"
	"clustergym/env/vec"
	"clustergym/internal/raced"
)

// small is a setting that solves problems of one or two steps within a few thousand.
func small() Config {
	c := DefaultConfig()
	c.NStep, c.LR, c.Batch, c.Buffer = 1, 3e-3, 32, 2000
	c.LearningStarts, c.TrainEvery, c.TargetEvery, c.EpsShare, c.EpsEnd = 200, 4, 100, 0.5, 0.2
	c.Network.Hidden = []int{24, 24}
	return c
}

// plain is small without any of the improvements.
func plain() Config {
	c := small()
	c.Double, c.Duelling, c.Prioritized = false, false, false
	return c
}

// The ladder of problems with known answers, plain and with all improvements. The rung that fails names the fault.
func TestProbes(t *testing.T) {
	for _, c := range []struct {
		id     string
		values map[float32][]float64 // by the observation that holds this number; NaN = nothing to learn
		solved float64               // mean return of greedy play; NaN = no choice to make
		steps  int
	}{
		{"ProbeConstant-v1", map[float32][]float64{0: {1}}, 1, 3000},
		{"ProbeObservation-v1", map[float32][]float64{-1: {-1}, 1: {1}}, math.NaN(), 3000},
		{"ProbeDiscount-v1", map[float32][]float64{0: {0.9}, 1: {1}}, math.NaN(), 4000},
		{"ProbeAction-v1", map[float32][]float64{0: {-1, 1}}, 1, 4000},
		{"ProbeContext-v1", map[float32][]float64{-1: {1, -1}, 1: {-1, 1}}, 1, 5000},
		{"ProbeMaskedAction-v1", nil, 0.65, 6000},
		{"ProbeMaskedContext-v1", nil, 1, 6000},
		{"ProbeMaskedTarget-v1", map[float32][]float64{0: {0, 1}, 1: {0, math.NaN()}}, 1, 5000},
	} {
		all, steps3 := small(), small()
		steps3.NStep, steps3.RewardScale = 3, false
		for name, cfg := range map[string]Config{"plain": plain(), "all": all, "three steps": steps3} {
			t.Run(c.id+"/"+name, func(t *testing.T) {
				cfg.Gamma = 0.9
				l := newLoop(t, c.id, 4, 1, vec.SameStep, cfg, 1, c.steps).Train()
				for obs, want := range c.values {
					// The mean that a duelling head takes off runs over what is legal, which is everything here
					// but in ProbeMaskedTarget's second step.
					got := valuesOf(t, l.Agent, obs)
					if cfg.Duelling && c.id == "ProbeMaskedTarget-v1" && obs == 1 {
						continue
					}
					for k, w := range want {
						if math.Abs(got[k]-w) > 0.12 {
							t.Errorf("Q(%v, %d) is %.3f, want %v", obs, k, got[k], w)
						}
					}
				}
				if got := agenttest.Evaluate(t, c.id, l.Agent.Greedy(), 300); got < c.solved {
					t.Errorf("greedy play returns %.3f, want at least %v", got, c.solved)
				}
			})
		}
	}
}

// A constant reward that is cut off after ten steps is worth r/(1−gamma), not the sum of ten, for targets of one
// step and of several.
func TestTruncationBootstraps(t *testing.T) {
	raced.Alone(t)
	for _, mode := range []vec.Autoreset{vec.SameStep, vec.NextStep} {
		for _, n := range []int{1, 4} {
			cfg := small()
			cfg.Gamma, cfg.NStep, cfg.TargetEvery = 0.8, n, 40
			l := newLoop(t, "ProbeTruncation-v1", 4, 1, mode, cfg, 3, 20_000).Train()
			if got := valuesOf(t, l.Agent, 0)[0]; math.Abs(got-5) > 0.1 {
				t.Errorf("%v, %d steps: Q is %.2f, want 5; the sum of ten rewards would be %.2f", mode, n, got,
					(1-math.Pow(0.8, 10))/0.2)
			}
		}
	}
}

// The reset steps of NextStep batches must not enter the values.
func TestDeadStepTrap(t *testing.T) {
	raced.Alone(t)
	for _, mode := range []vec.Autoreset{vec.NextStep, vec.SameStep} {
		for _, n := range []int{1, 3} {
			cfg := small()
			cfg.NStep = n
			l := newLoop(t, "ProbeDeadStep-v1", 4, 1, mode, cfg, 5, 8000).Train()
			for _, got := range valuesOf(t, l.Agent, 1) {
				if math.Abs(got-1.5) > 0.15 {
					t.Errorf("%v, %d steps: Q of the middle is %.2f, want 1.5", mode, n, got)
				}
			}
			if got := agenttest.Evaluate(t, "ProbeDeadStep-v1", l.Agent.Greedy(), 100); got != 0.5 {
				t.Errorf("%v, %d steps: greedy play returns %.2f, want 0.5", mode, n, got)
			}
		}
	}
}

// The masked problem with 80 actions, of which 60 are illegal: mean return at least 90. PPO must reach it within
// 5,000 steps. Q-learning must see most of the 1,600 pairs of state and action that matter, and gets 15,000. No mask
// may be violated, since the environment refuses illegal actions.
func TestInvalidActionIsSolved(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestProbes, which takes less time; make unit runs this test")
	}
	for seed := uint64(1); seed <= 2; seed++ {
		start := time.Now()
		l := newLoop(t, "InvalidAction-v1", 10, 2, vec.SameStep, invalidConfig(), seed, 15_000).Train()
		took := time.Since(start)
		got := agenttest.Evaluate(t, "InvalidAction-v1", l.Agent.Greedy(), 50)
		t.Logf("seed %d: %d steps in %v: greedy %.1f", seed, l.Steps, took.Round(time.Millisecond), got)
		if got < 90 {
			t.Errorf("seed %d: mean return %.1f, want at least 90", seed, got)
		}
		if testing.Short() {
			break
		}
	}
}

func invalidConfig() Config {
	c := DefaultConfig()
	c.Gamma, c.NStep, c.LR, c.Batch, c.Buffer = 0.4, 1, 2e-3, 64, 20_000
	c.LearningStarts, c.TrainEvery, c.TargetEvery, c.EpsShare, c.EpsEnd = 500, 8, 200, 0.6, 0.02
	c.Network.Hidden = []int{128}
	return c
}
