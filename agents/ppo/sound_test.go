package ppo

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"clustergym/agents/agenttest"
	"clustergym/env/vec"
)

// Numbers that are not finite end an update before a parameter is spoilt, and the error says which and at what step.
func TestBrokenNumbersAreNamed(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name, want string
		spoil      func(a *Agent)
	}{
		{"rewards", "policy_loss is NaN at step 0 of the optimiser", func(a *Agent) { a.roll.Reward[3] = nan }},
		{"critic", "value_loss is NaN at step 0 of the optimiser",
			func(a *Agent) { a.Params().View("critic.value.bias").Data[0] = nan }},
		{"probabilities", "policy_loss is NaN at step 0", func(a *Agent) { a.roll.LogProb[2] = nan }},
		{"gradient", "the gradient of critic.", func(a *Agent) {
			// The loss of a value of 1e19 is still a float32; its gradient by a weight of such a network is not.
			for i := range a.roll.Return {
				a.roll.Reward[i] = 1e18
			}
			a.cfg.VFCoef = 1e30
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := small()
			cfg.Minibatches, cfg.NormAdvantage = 1, c.name == "gradient"
			l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, cfg, 5, 1000)
			fill(t, l)
			c.spoil(l.Agent)
			before := bytes.Clone(agenttest.State(t, l.Agent.Parts())["weights.safetensors"])
			_, err := l.Agent.Learn(context.Background())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if !bytes.Equal(agenttest.State(t, l.Agent.Parts())["weights.safetensors"], before) {
				t.Error("the parameters have changed")
			}
		})
	}
}

// A learning rate far too large spoils parameters through finite gradients: the update that does it fails.
func TestBrokenParametersAreNamed(t *testing.T) {
	l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, small(), 5, 1000)
	fill(t, l)
	l.Agent.cfg.LR = 1e39
	_, err := l.Agent.Learn(context.Background())
	if err == nil || !strings.Contains(err.Error(), "of the optimiser") {
		t.Fatalf("error %v, want one that names the step", err)
	}
	if a := l.Agent; a.roll.Len() == 0 {
		t.Error("the rollout was emptied")
	}
}
