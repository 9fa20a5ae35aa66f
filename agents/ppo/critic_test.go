package ppo

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
)

// apartConfig has a rollout in one minibatch and separate networks.
func apartConfig() Config {
	c := small()
	c.Steps, c.Epochs, c.Minibatches, c.LR, c.MaxGradNorm = 16, 5, 1, 3e-3, 0
	c.Network.Separate = true
	return c
}

// once returns an agent after its first update, on one rollout for every setting.
func once(t *testing.T, cfg Config, workers int) *loop {
	t.Helper()
	l := newLoop(t, "ProbeContext-v1", 6, workers, vec.SameStep, cfg, 4, 1<<20)
	l.Update()
	return l
}

// differ returns by how much the parameters that begin with prefix differ at most.
func differ(a, b *Agent, prefix string) (most float64) {
	for i, v := range a.Params().Views {
		if !strings.HasPrefix(v.Name, prefix) {
			continue
		}
		for k, x := range v.Data {
			most = max(most, math.Abs(float64(x-b.Params().Views[i].Data[k])))
		}
	}
	return most
}

func stat(t *testing.T, l *loop, name string) float64 {
	t.Helper()
	for _, s := range l.Stats {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("there is no %s in %v", name, l.Stats)
	return 0
}

// With passes of its own, each network learns what it learns in shared steps that are not for the other: the policy as
// with vf_coef 0, the critic as with the critic's learning rate and passes.
func TestTheCriticsOwnPasses(t *testing.T) {
	for _, loss := range []Loss{Fused, Composed} {
		for _, clipValue := range []float64{0, 0.1} {
			cfg := apartConfig()
			cfg.Loss, cfg.ClipValue, cfg.CriticEpochs, cfg.CriticLR = loss, clipValue, 9, 1e-2
			split := once(t, cfg, 1)
			policy := cfg
			policy.CriticEpochs, policy.CriticLR, policy.VFCoef = 0, 0, 0
			value := cfg
			value.Epochs, value.LR, value.CriticEpochs, value.CriticLR = cfg.CriticEpochs, cfg.CriticLR, 0, 0
			p, v := once(t, policy, 1), once(t, value, 1)
			if d := differ(split.Agent, p.Agent, "actor."); d > 1e-5 {
				t.Errorf("%s, clip %v: actors differ by %v", loss, clipValue, d)
			}
			if d := differ(split.Agent, v.Agent, "critic."); d > 1e-5 {
				t.Errorf("%s, clip %v: critics differ by %v", loss, clipValue, d)
			}
			if differ(p.Agent, v.Agent, "actor.") < 1e-3 || differ(p.Agent, v.Agent, "critic.") < 1e-3 {
				t.Error("the references agree: the test shows nothing")
			}
			if got, want := stat(t, split, "value_loss"), stat(t, v, "value_loss"); math.Abs(got-want) > 1e-4 {
				t.Errorf("value_loss %v, want %v", got, want)
			}
			if got, want := stat(t, split, "approx_kl"), stat(t, p, "approx_kl"); math.Abs(got-want) > 1e-5 {
				t.Errorf("approx_kl %v, want %v", got, want)
			}
			if got := stat(t, split, "n_updates"); got != float64(cfg.Epochs+cfg.CriticEpochs) {
				t.Errorf("%v steps, want %d and %d", got, cfg.Epochs, cfg.CriticEpochs)
			}
		}
	}
}

// target_kl ends the policy's passes alone.
func TestTheDivergenceEndsThePolicysPassesAlone(t *testing.T) {
	cfg := apartConfig()
	cfg.Epochs, cfg.LR, cfg.TargetKL, cfg.CriticEpochs = 30, 2e-2, 1e-3, 7
	l := once(t, cfg, 1)
	if got := stat(t, l, "epochs"); got < 2 || got >= 30 {
		t.Errorf("%v passes of the policy, want fewer than 30", got)
	}
	if got, want := stat(t, l, "n_updates"), stat(t, l, "epochs")-1+7; got != want {
		t.Errorf("%v steps, want %v: the last pass of the policy makes none", got, want)
	}
}

// The learning rate of the critic falls with that of the policy.
func TestTheCriticsRateIsAnnealed(t *testing.T) {
	cfg := apartConfig()
	cfg.CriticEpochs, cfg.CriticLR, cfg.AnnealLR = 1, 1e-2, true
	l := newLoop(t, "ProbeContext-v1", 6, 1, vec.SameStep, cfg, 4, 1<<20)
	l.Agent.Progress(1)
	before := bytes.Clone(agenttest.State(t, l.Agent.Parts())["weights.safetensors"])
	fill(t, l)
	l.Agent.begun = 1
	if _, err := l.Agent.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(agenttest.State(t, l.Agent.Parts())["weights.safetensors"], before) {
		t.Error("steps at rate 0 have moved the parameters")
	}
}

// Workers change no bit, and replicas add up to one agent.
func TestTheCriticsPassesOfManyWorkersAndReplicas(t *testing.T) {
	cfg := apartConfig()
	cfg.CriticEpochs, cfg.CriticLR, cfg.Shards = 4, 1e-2, 3
	one, oneStats := trained(t, "ProbeContext-v1", cfg, 1, 3)
	many, _ := trained(t, "ProbeContext-v1", cfg, 3, 3)
	for i, x := range one {
		if many[i] != x {
			t.Fatalf("parameter %d is %v with one worker and %v with three", i, x, many[i])
		}
	}
	cfg.Replicas = 3
	replicas, stats := trained(t, "ProbeContext-v1", cfg, 1, 3)
	if d := apart(one, replicas); d > 1e-4 {
		t.Errorf("replicas differ by %.2g of the norm", d)
	}
	for k, s := range oneStats {
		if s.Name == "explained_variance" { // the mean of the replicas' own
			continue
		}
		if got := stats[k].Value; math.Abs(got-s.Value) > 1e-3*(math.Abs(s.Value)+0.01) {
			t.Errorf("%s is %v with replicas and %v without", s.Name, got, s.Value)
		}
	}
}

// What holds for every agent, resuming included, holds with an optimiser of the critic's.
func TestTheCriticsOptimiserIsKept(t *testing.T) {
	cfg := busy()
	cfg.CriticEpochs, cfg.CriticLR, cfg.Network.Separate = 3, 1e-2, true
	contract(t, "", cfg)
	l := once(t, cfg, 1)
	if _, ok := agenttest.State(t, l.Agent.Parts())[criticPart]; !ok {
		t.Errorf("there is no %s", criticPart)
	}
}

// The ladder's rungs that need both networks are climbed with the critic's own passes too.
func TestProbesWithTheCriticsOwnPasses(t *testing.T) {
	for id, solved := range map[string]float64{"ProbeContext-v1": 1, "ProbeMaskedContext-v1": 1} {
		cfg := small()
		cfg.Gamma, cfg.CriticEpochs, cfg.CriticLR, cfg.Network.Separate = 0.9, 4, 1e-2, true
		l := newLoop(t, id, 8, 1, vec.SameStep, cfg, 1, 8000).Train()
		for _, obs := range []float32{-1, 1} {
			if got := valueOf(t, l.Agent, obs); math.Abs(got-1) > 0.1 {
				t.Errorf("%s: V(%v) is %.3f, want 1", id, obs, got)
			}
		}
		if got := agenttest.Evaluate(t, id, l.Agent.Greedy(), 300); got < solved {
			t.Errorf("%s: greedy play returns %.3f, want %v", id, got, solved)
		}
	}
}

func TestSettingsOfTheCriticsPassesAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.CriticEpochs = -1 },
			`critic_epochs: got -1, want the number of the critic's own passes, 1 to 2^20, or 0 = none: every step is for policy and critic`},
		{func(c *Config) { c.CriticEpochs, c.Network.Separate = 2, false },
			`critic_epochs: got 2, want 0 without network.separate: a pass for the critic would change the policy`},
		{func(c *Config) { c.CriticEpochs, c.CriticLR = 2, 1.5 }, `critic_lr: got 1.5, want a number in (0, 1], or 0 = lr`},
		{func(c *Config) { c.CriticLR = 1e-3 },
			`critic_lr: got 0.001, want 0 without critic_epochs: a step for both has one learning rate`},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		_, err := New(cfg, env.Spec{}, 1, 1, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
