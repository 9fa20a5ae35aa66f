package arena

import (
	"context"
	"math/rand/v2"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/lab/config"
	"clustergym/nets/model"
	"clustergym/traces"
)

// A new network over minus the estimate as base plays greedily as sjf@slots: the same slot in every state or, where the
// observation shows the same number for two estimates, another one with the same number. Column 3 of field jobs is the
// estimate.
func TestANewNetworkOverTheEstimateIsSJF(t *testing.T) {
	seed := testseed.Or(41)
	t.Logf("seed %d", seed)
	const column = 3
	for _, head := range []string{"dense", "slots"} {
		for _, agent := range []string{"ppo", "ddqn"} {
			cfg := config.Default()
			cfg.Agent, cfg.Seed = agent, seed
			cfg.Trace.Synth.Jobs, cfg.Trace.Seed, cfg.Train.Envs, cfg.PPO.Steps = 3000, seed, 1, 4
			cfg.PPO.Minibatches, cfg.DDQN.Buffer, cfg.DDQN.Batch = 1, 16, 16
			cfg.Edit()
			own := cfg.Env.JobSelect()
			own.Window, own.Warm, own.Visible, own.Load = 256, 64, 6, .9
			for _, net := range []*model.Config{&cfg.PPO.Network, &cfg.DDQN.Network} {
				net.Hidden = []int{16}
				net.Base = model.Base{Field: "jobs", Column: column, Scale: -8, Wait: -9}
				if head == "slots" {
					net.Kind, net.Head, net.SlotHidden = "cnn", head, 8
					net.Branches = []model.Branch{{Field: "jobs", Slots: true, Dense: []int{8}}}
				}
			}
			if err := cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			w, err := NewScenario(&cfg)
			if err != nil {
				t.Fatal(err)
			}
			e, err := w.JobSelect(traces.Training, 1)
			if err != nil {
				t.Fatal(err)
			}
			learner, err := NewAgent(&cfg, e.Spec(), 1)
			if err != nil {
				t.Fatal(err)
			}
			rival, err := config.ParseRival("sjf@slots", w.About, cfg.Env.Settings)
			if err != nil {
				t.Fatal(err)
			}
			rule, err := rival.Rule.Policy(e)
			if err != nil {
				t.Fatal(err)
			}
			jobs, width := jobsField(t, e)
			greedy := learner.Greedy()
			same := &compared{t: t, rule: rule, policy: greedy,
				estimate: func(obs []float32, k int32) float32 { return obs[jobs+int(k)*width+column] }}
			for i := range 3 {
				_, steps, err := agents.NewPlayer(e,
					same).Play(t.Context(), env.Episode{Seed: rng.At(seed, uint64(i)), Window: -1}, nil)
				if err != nil || steps < 64 {
					t.Fatalf("%d steps, %v", steps, err)
				}
			}
			if same.choices < 10 {
				t.Errorf("%d decisions with a choice: the test sees nothing", same.choices)
			}
		}
	}
}

// jobsField returns where field jobs begins in an observation and its number of columns.
func jobsField(t *testing.T, e *sched.Env) (from, width int) {
	for _, f := range e.Spec().Obs {
		if f.Name == "jobs" {
			return from, f.Shape[1]
		}
		from += f.Len()
	}
	t.Fatal("no field jobs")
	return 0, 0
}

// compared plays the rule and checks that the policy would have done the same.
type compared struct {
	t            *testing.T
	rule, policy agents.Policy
	estimate     func(obs []float32, k int32) float32
	choices      int
}

func (c *compared) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if err := c.policy.Act(ctx, b, dst, src); err != nil {
		return err
	}
	learned, wait := dst.Disc[0], int32(len(b.Mask)-1)
	if err := c.rule.Act(ctx, b, dst, src); err != nil {
		return err
	}
	legal := 0
	for _, ok := range b.Mask[:wait] {
		if ok {
			legal++
		}
	}
	if legal > 1 {
		c.choices++
	}
	k := dst.Disc[0]
	if learned != k && (learned == wait || k == wait || c.estimate(b.Obs, learned) != c.estimate(b.Obs, k)) {
		c.t.Errorf("the network takes slot %d, sjf@slots slot %d of %d", learned, k, wait)
	}
	return nil
}
