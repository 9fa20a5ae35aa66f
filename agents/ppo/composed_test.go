package ppo

import (
	"fmt"
	"math"
	"testing"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
)

// params is an Agent or Replicas.
type params interface {
	agents.Agent
	Network() string
}

// trained returns the parameters after a number of updates in an environment, and the statistics of the last.
func trained(t *testing.T, id string, cfg Config, workers, updates int) ([]float32, agents.Stats) {
	t.Helper()
	set := agenttest.Setting{Env: id, Rows: 6, Workers: workers, Autoreset: vec.SameStep, Seed: 4, Total: 1 << 20}
	var weights []float32
	build := func(spec env.Spec, rows, workers int, seed uint64) (params, error) {
		if cfg.Replicas > 1 {
			r, err := NewReplicas(cfg, spec, rows, workers, seed)
			if err == nil {
				weights = r.Params().Data
			}
			return r, err
		}
		a, err := New(cfg, spec, rows, workers, seed)
		if err == nil {
			weights = a.Params().Data
		}
		return a, err
	}
	l := agenttest.NewLoop(t, agenttest.Constructor[params](build), set)
	for range updates {
		l.Update()
	}
	return weights, l.Stats
}

// apart is how far two sets of parameters differ, as a share of their norm.
func apart(a, b []float32) float64 {
	var diff, norm float64
	for i, x := range a {
		d := float64(x) - float64(b[i])
		diff, norm = diff+d*d, norm+float64(x)*float64(x)
	}
	return math.Sqrt(diff / norm)
}

// A short training with the composed loss is that with the fused one up to rounding: one discrete factor with masks and
// continuous actions, with shards and with replicas, with and without value clipping. Workers change no bit.
func TestComposedTrainsAsFused(t *testing.T) {
	for _, id := range []string{"InvalidAction-v1", "Nav2D-v1", "ProbeTruncation-v1"} {
		for _, c := range []struct {
			shards, replicas int
			clipValue        float64
		}{{1, 1, 0}, {3, 1, 0.2}, {1, 3, 0.2}} {
			t.Run(fmt.Sprint(id, c), func(t *testing.T) {
				cfg := small()
				cfg.Steps, cfg.Epochs, cfg.Minibatches, cfg.LR, cfg.EntCoef = 16, 3, 2, 1e-3, 0.01
				cfg.Shards, cfg.Replicas, cfg.ClipValue = c.shards, c.replicas, c.clipValue
				fused, fusedStats := trained(t, id, cfg, 1, 3)
				cfg.Loss = Composed
				composed, composedStats := trained(t, id, cfg, 1, 3)
				if d := apart(fused, composed); d > 1e-4 {
					t.Errorf("parameters differ by %.2g of their norm", d)
				}
				for k, s := range fusedStats {
					if got := composedStats[k].Value; math.Abs(got-s.Value) > 1e-3*(math.Abs(s.Value)+0.01) {
						t.Errorf("%s is %v composed and %v fused", s.Name, got, s.Value)
					}
				}
				many, _ := trained(t, id, cfg, 3, 3)
				for i, x := range composed {
					if many[i] != x {
						t.Fatalf("parameter %d is %v with one worker and %v with three", i, x, many[i])
					}
				}
				before := func() []float32 { w, _ := trained(t, id, cfg, 1, 0); return w }()
				if apart(before, composed) < 1e-3 {
					t.Error("the training has moved nothing")
				}
			})
		}
	}
}
