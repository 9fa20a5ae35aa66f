package ppo

import (
	"context"
	"math"
	"testing"
	"time"

	"clustergym/agents/agenttest"
	"clustergym/env/vec"
	"clustergym/internal/raced"
	"clustergym/nets"
)

// small is a setting that solves problems of one or two steps within a few thousand.
func small() Config {
	c := DefaultConfig()
	c.Steps, c.LR, c.AnnealLR, c.EntCoef = 32, 5e-3, false, 0
	c.Network.Hidden = []int{16, 16}
	return c
}

// The ladder of problems with known answers. The rung that fails names the fault.
func TestProbes(t *testing.T) {
	for _, c := range []struct {
		id     string
		values map[float32]float64 // of the observation that holds this number
		solved float64             // mean return of greedy play; NaN = no choice to make
		steps  int
	}{
		{"ProbeConstant-v1", map[float32]float64{0: 1}, 1, 4000},
		{"ProbeObservation-v1", map[float32]float64{-1: -1, 1: 1}, math.NaN(), 4000},
		{"ProbeDiscount-v1", map[float32]float64{0: 0.9, 1: 1}, math.NaN(), 8000},
		{"ProbeAction-v1", map[float32]float64{0: 1}, 1, 6000},
		{"ProbeContext-v1", map[float32]float64{-1: 1, 1: 1}, 1, 8000},
		{"ProbeMaskedAction-v1", nil, 0.65, 8000},
		{"ProbeMaskedContext-v1", map[float32]float64{-1: 1, 1: 1}, 1, 8000},
		{"ProbeMaskedTarget-v1", map[float32]float64{1: 0}, 1, 8000},
	} {
		t.Run(c.id, func(t *testing.T) {
			cfg := small()
			cfg.Gamma = 0.9
			l := newLoop(t, c.id, 8, 1, vec.SameStep, cfg, 1, c.steps).Train()
			for obs, want := range c.values {
				if got := valueOf(t, l.Agent, obs); math.Abs(got-want) > 0.1 {
					t.Errorf("V(%v) is %.3f, want %v", obs, got, want)
				}
			}
			if got := agenttest.Evaluate(t, c.id, l.Agent.Greedy(), 300); got < c.solved {
				t.Errorf("greedy play returns %.3f, want at least %v", got, c.solved)
			}
		})
	}
}

// A constant reward that is cut off after ten steps is worth r/(1−gamma), not the sum of ten.
func TestTruncationBootstraps(t *testing.T) {
	cfg := small()
	cfg.Gamma, cfg.Lambda = 0.9, 0.9
	for _, mode := range []vec.Autoreset{vec.SameStep, vec.NextStep} {
		l := newLoop(t, "ProbeTruncation-v1", 8, 1, mode, cfg, 3, 20_000).Train()
		if got := valueOf(t, l.Agent, 0); math.Abs(got-10) > 0.5 {
			t.Errorf("%v: V is %.2f, want 10; the sum of ten rewards would be %.2f", mode, got, (1-math.Pow(0.9, 10))/0.1)
		}
	}
}

// The reset steps of NextStep batches must not enter the values.
func TestDeadStepTrap(t *testing.T) {
	for _, mode := range []vec.Autoreset{vec.NextStep, vec.SameStep} {
		cfg := small()
		cfg.EntCoef = 0.05 // going on costs first
		l := newLoop(t, "ProbeDeadStep-v1", 8, 1, mode, cfg, 5, 12_000).Train()
		if got := valueOf(t, l.Agent, 1); math.Abs(got-1.5) > 0.15 {
			t.Errorf("%v: V of the middle is %.2f, want 1.5", mode, got)
		}
		if got := agenttest.Evaluate(t, "ProbeDeadStep-v1", l.Agent.Greedy(), 100); got != 0.5 {
			t.Errorf("%v: greedy play returns %.2f, want 0.5", mode, got)
		}
	}
}

// invalidConfig has ten rollouts of 500 steps and minibatches of about 64, as in sb3-contrib's test of the same
// problem. That test's own setting (two layers of 64, rate 3e-4, three rollouts of 2,048 steps) reaches 88–94 here.
func invalidConfig() Config {
	c := DefaultConfig()
	c.Steps, c.Epochs, c.Minibatches = 50, 10, 8
	c.Gamma, c.EntCoef, c.LR, c.AnnealLR, c.Clip = 0.4, 0, 3e-3, false, 0.4
	c.Network.Hidden = []int{256}
	return c
}

// The masked problem with 80 actions, of which 60 are illegal: mean return at least 90 within 5,000 steps. No mask
// may be violated, since the environment refuses illegal actions.
func TestInvalidActionIsSolved(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestProbes, which takes less time; make unit runs this test")
	}
	for seed := uint64(1); seed <= 3; seed++ {
		start := time.Now()
		l := newLoop(t, "InvalidAction-v1", 10, 2, vec.SameStep, invalidConfig(), seed, 5000).Train()
		took := time.Since(start)
		greedy := agenttest.Evaluate(t, "InvalidAction-v1", l.Agent.Greedy(), 50)
		sampled := agenttest.Evaluate(t, "InvalidAction-v1", l.Agent.Greedy().(*Policy).Sampling(), 50)
		t.Logf("seed %d: %d steps in %v: greedy %.1f, sampling %.1f", seed, l.Steps, took.Round(time.Millisecond), greedy,
			sampled)
		if greedy < 90 {
			t.Errorf("seed %d: mean return %.1f, want at least 90", seed, greedy)
		}
		if sampled < 80 {
			t.Errorf("seed %d: the policy that explores returns %.1f, want at least 80", seed, sampled)
		}
		if testing.Short() {
			break
		}
	}
}

// gradientOf returns the gradient over steps of the rollout as one minibatch, parts of which other replicas may have.
func gradientOf(a *Agent, index []int) (*nets.Params, stats, int, error) {
	kept := a.cfg
	defer func() { a.cfg = kept }()
	a.cfg.Minibatches, a.cfg.Batch = 1, 0
	a.index = index
	if err := a.measure(); err != nil {
		return nil, stats{}, 0, err
	}
	grad, sum, err := a.gradient(context.Background(), a.pass[0], 0.2)
	return grad, sum, a.pass[0].steps, err
}
