package arena

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"clustergym/agents"
	"clustergym/agents/onnx"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/lab/config"
	format "clustergym/nets/onnx"
)

// twins plays a policy and checks that another would have done the same.
type twins struct {
	t             *testing.T
	policy, other agents.Policy
	src           []*rand.Rand // of the other, a copy of the policy's
	plain         agents.Policy
	steps, apart  int // all, and those in which the largest logit alone would have decided otherwise
}

func (c *twins) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	for _, p := range []struct {
		policy agents.Policy
		src    []*rand.Rand
		same   bool
	}{{c.other, c.src, true}, {c.plain, nil, false}, {c.policy, src, true}} {
		was := dst.Disc[0]
		if err := p.policy.Act(ctx, b, dst, p.src); err != nil {
			return err
		}
		switch {
		case p.policy == c.other:
		case p.same && dst.Disc[0] != was:
			c.t.Errorf("step %d: action %d, and %d of the model", c.steps, dst.Disc[0], was)
		case !p.same:
			if dst.Disc[0] != was {
				c.apart++
			}
			dst.Disc[0] = was
		}
	}
	c.steps++
	return nil
}

// A checkpoint and the model that it leaves as take the same actions through whole episodes, by every rule.
func TestAnExportPlaysAsItsCheckpointByEveryRule(t *testing.T) {
	seed := testseed.Or(47)
	t.Logf("seed %d", seed)
	p, e := presetPolicy(t, "quickstart-v1")
	defer e.Close() //nolint:errcheck // a test
	s := e.Spec()
	made, err := p.(*ppo.Policy).Export(0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := format.Decode(made.Encode())
	if err != nil {
		t.Fatal(err)
	}
	argMax, err := onnx.NewContext(t.Context(), m, s, agents.ByArgMax)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range agents.Rules() {
		q, err := onnx.NewContext(t.Context(), m, s, rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.(agents.Chooser).By(rule); got != rule || q.Rule() != rule {
			t.Fatalf("%s: the checkpoint follows %s and the model %s", rule, got, q.Rule())
		}
		both := &twins{t: t, policy: p, other: q, plain: argMax}
		for i := range uint64(8) {
			both.src = []*rand.Rand{rng.Stream(seed+i, "eval/act")}
			_, _, err = agents.NewPlayer(e, both).Play(t.Context(), env.Episode{Seed: seed + i, Window: -1},
				rng.Stream(seed+i, "eval/act"))
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %d steps, %d of them not by the largest logit", rule, both.steps, both.apart)
		if differ := both.apart > 0; both.steps < 64 || differ != (rule != agents.ByArgMax) {
			t.Errorf("%s: %d steps, %d of them not by the largest logit", rule, both.steps, both.apart)
		}
	}
}

// Every agent has the rule of its configuration, or the one that it can follow.
func TestAgentsChooseByTheRuleOfTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		agent       string
		asked, want agents.Rule
		said        agents.Rule // in documents
	}{
		{"ppo", "", agents.ByShare, ""}, {"ppo", agents.ByShare, agents.ByShare, ""},
		{"ppo", agents.ByArgMax, agents.ByArgMax, agents.ByArgMax},
		{"ppo", agents.BySample, agents.BySample, agents.BySample},
		{"ddqn", "", agents.ByArgMax, ""}, {"ddqn", agents.ByArgMax, agents.ByArgMax, ""},
		{"ddqn", agents.ByShare, agents.ByArgMax, agents.ByArgMax},
		{"ddqn", agents.BySample, agents.ByArgMax, agents.ByArgMax},
		{"improper", "", agents.BySample, ""}, {"improper", agents.BySample, agents.BySample, ""},
		{"improper", agents.ByShare, agents.ByShare, agents.ByShare},
		{"improper", agents.ByArgMax, agents.ByArgMax, agents.ByArgMax},
		{config.MetaAgent, "", agents.ByShare, ""}, {config.MetaAgent, agents.ByArgMax, agents.ByArgMax, agents.ByArgMax},
	} {
		id := "ProbeContext-v1"
		if c.agent == config.MetaAgent {
			id = "Bandit-v1"
		}
		cfg := config.For(id)
		cfg.Agent, cfg.Train.Envs, cfg.PPO.Steps, cfg.PPO.Minibatches = c.agent, 1, 4, 1
		w, err := NewScenario(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		e, err := w.Open()
		if err != nil {
			t.Fatal(err)
		}
		var learner Trainee
		if c.agent == config.MetaAgent {
			l, err := NewLearner(&cfg, w.Open, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() //nolint:errcheck // a test
			learner = l
		} else if learner, err = NewAgent(&cfg, e.Spec(), 1); err != nil {
			t.Fatal(err)
		}
		weights, err := weightsOf(learner)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Eval.Greedy = agents.ByArgMax // of the run, which Under replaces
		opened := (&Opened{Cfg: cfg, Weights: weights}).Under(c.asked)
		p, err := newPolicy(&opened.Cfg, e.Spec(), bytes.NewReader(weights))
		if err != nil {
			t.Fatal(err)
		}
		said, err := opened.greedy(e.Spec())
		if got := p.(agents.Chooser).By(c.asked); err != nil || got != c.want || said != c.said {
			t.Errorf("%s by %q: follows %q and says %q (%v), want %q and %q", c.agent, c.asked, got, said, err, c.want, c.said)
		}
		if cfg.Eval.Greedy != agents.ByArgMax {
			t.Error("Under changed the run's own configuration")
		}
	}
}
