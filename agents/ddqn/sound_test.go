package ddqn

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"clustergym/agents/agenttest"
	"clustergym/env/vec"
)

// fed is an agent that has seen enough for its first update.
func fed(t *testing.T, shards, workers int) *Agent {
	t.Helper()
	cfg := small()
	cfg.Shards, cfg.LearningStarts, cfg.Huber, cfg.Prioritized = shards, 0, 0, false
	l := newLoop(t, "ProbeContext-v1", 4, workers, vec.SameStep, cfg, 5, 1000)
	for l.Agent.buffer.Len() < 100 {
		l.Play()
	}
	l.Agent.intervals = l.Agent.due() - 1 // a single gradient step
	return l.Agent
}

// Numbers that are not finite end an update before a parameter is spoilt, and the error says which and at what step.
func TestBrokenNumbersAreNamed(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name, want string
		spoil      func(a *Agent)
	}{
		{"rewards", "the loss is NaN at step 0 of the optimiser", func(a *Agent) { a.cfg.RewardFactor = math.NaN() }},
		{"network", "the loss is NaN at step 0 of the optimiser",
			func(a *Agent) { a.Params().View("value.bias").Data[0] = nan }},
		// Values are 0, so the squared errors of targets of 1e18 are still float32s; their products with activations of
		// 1e22 are not.
		{"gradient", "the gradient of ", func(a *Agent) {
			a.cfg.RewardFactor = 1e18
			for _, v := range a.Params().Views {
				for i := range v.Data {
					if strings.HasPrefix(v.Name, "value") || strings.HasPrefix(v.Name, "advantage") {
						v.Data[i] = 0
					} else {
						v.Data[i] *= 1e11
					}
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := fed(t, 4, 2)
			c.spoil(a)
			before := bytes.Clone(agenttest.State(t, a.Parts())["weights.safetensors"])
			_, err := a.Learn(context.Background())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			t.Log(err)
			if !bytes.Equal(agenttest.State(t, a.Parts())["weights.safetensors"], before) {
				t.Error("the parameters have changed")
			}
		})
	}
}

// A learning rate far too large spoils parameters through finite gradients: the update that does it fails.
func TestBrokenParametersAreNamed(t *testing.T) {
	a := fed(t, 1, 1)
	a.cfg.LR = 1e39
	_, err := a.Learn(context.Background())
	if err == nil || !strings.Contains(err.Error(), "ddqn: the parameter ") ||
		!strings.Contains(err.Error(), "of the optimiser") {
		t.Fatalf("error %v, want one that names the parameter and the step", err)
	}
}
