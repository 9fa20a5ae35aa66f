package ddqn

import (
	"context"
	"errors"
	"io"
	"testing"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/agents/checkpoint"
	"clustergym/env"
	"clustergym/env/vec"
)

// busy is a setting in which everything changes: schedules, scaling, priorities, shards of unequal size.
func busy() Config {
	c := small()
	c.NStep, c.Shards, c.Batch, c.RewardScale, c.Buffer = 3, 5, 33, true, 700
	c.LearningStarts, c.TrainEvery, c.GradientSteps, c.TargetEvery = 150, 12, 2, 100
	return c
}

func TestContract(t *testing.T) {
	policy := func(cfg Config) func(env.Spec, io.Reader) (agents.Policy, error) {
		return func(spec env.Spec, weights io.Reader) (agents.Policy, error) { return NewPolicy(cfg, spec, weights) }
	}
	other := busy()
	other.Network.Hidden = []int{17}
	agenttest.Run(t, agenttest.Suite[*Agent]{
		Name: "ddqn", New: builder(busy()), Policy: policy(busy()), Other: policy(other),
		Worth: func(a *Agent) string {
			if a.updates == 0 || a.prioritized.Len() != 700 {
				return "not after an update with a full replay"
			}
			return ""
		},
	})
}

// Without the replay a checkpoint is small, and a resumed run waits until the replay is filled again before it
// learns.
func TestResumeWithoutReplay(t *testing.T) {
	cfg := busy()
	cfg.SaveReplay = false
	first := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, cfg, 5, 4000)
	for first.Steps < 1000 {
		first.Step()
	}
	if first.Agent.ExactResume() {
		t.Error("ExactResume says that nothing is lost")
	}
	got := agenttest.State(t, first.Agent.Parts())
	if _, ok := got["replay.bin"]; ok || len(got) != 4 {
		t.Errorf("%d parts, want 4 without replay.bin", len(got))
	}
	dir := first.Save(t, checkpoint.Meta{})
	second := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, cfg, 6, 4000)
	second.Load(t, dir, checkpoint.Meta{})
	second.Steps = first.Steps
	updates := second.Agent.updates
	if updates == 0 || updates != first.Agent.updates {
		t.Fatalf("%d updates after loading, want %d", updates, first.Agent.updates)
	}
	for second.Agent.prioritized.Added() < 150 {
		if second.Agent.prioritized.Added() > 0 && second.Agent.updates != updates {
			t.Fatalf("learnt from %d transitions, want 150 first", second.Agent.prioritized.Added())
		}
		second.Step()
	}
	if n := second.Agent.updates - updates; n > 2 { // no catching up with the steps that passed
		t.Errorf("%d gradient steps at once", n)
	}
	second.Train()
	if got := agenttest.Evaluate(t, "ProbeContext-v1", second.Agent.Greedy(), 100); got != 1 {
		t.Errorf("greedy play returns %v, want 1", got)
	}

	// A checkpoint with the replay is not one without.
	cfg.SaveReplay = true
	third := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, cfg, 6, 4000)
	if _, err := checkpoint.Load(dir, third.Agent.Parts()...); !errors.Is(err, checkpoint.ErrParts) {
		t.Errorf("got %v, want ErrParts", err)
	}
}

// Damaged state is an error and changes nothing.
func TestStateIsChecked(t *testing.T) {
	l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, busy(), 5, 500).Train()
	agenttest.RefusesState(t, l.Agent, "agent.json", map[string]string{
		"another format": `{"format": 2}`,
		"no replay":      `{"format": 1}`,
		"progress":       `{"format": 1, "replay": true, "progress": 2}`,
		"steps":          `{"format": 1, "replay": true, "steps": -1}`,
		"scale":          `{"format": 1, "replay": true, "scale": {"sum": [1]}}`,
		"stream":         `{"format": 1, "replay": true, "scale": {"sum": [1,2,3,4]}, "draws": "AAAA"}`,
	})
}

func TestActAndObserveDoNotAllocate(t *testing.T) {
	cfg := busy()
	cfg.EpsStart, cfg.EpsEnd = 0.5, 0.5
	l := newLoop(t, "InvalidAction-v1", 8, 1, vec.SameStep, cfg, 5, 1<<30)
	for range 400 {
		l.Step()
	}
	// The steps pass through several ends of episodes and through the whole replay.
	l.AllocatesNothing(t, func(*Agent) {})
}

// A gradient step allocates nothing on one worker, with any combination of features: drawing, targets, loss, clipping,
// Adam, new priorities and a move of the target.
func TestGradientStepsDoNotAllocate(t *testing.T) {
	soft := busy()
	soft.TargetEvery, soft.Tau = 0, 0.01
	for name, cfg := range map[string]Config{"plain": plain(), "all": busy(), "soft target": soft} {
		l := newLoop(t, "InvalidAction-v1", 8, 1, vec.SameStep, cfg, 5, 1<<30)
		for l.Agent.updates == 0 {
			l.Step()
		}
		ctx := context.Background()
		if n := testing.AllocsPerRun(20, func() {
			if _, err := l.Agent.update(ctx); err != nil {
				t.Fatal(err)
			}
			if err := l.Agent.moveTarget(1); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations in a gradient step", name, n)
		}
		if n := testing.AllocsPerRun(5, l.Update); n > 10 {
			t.Errorf("%s: %v allocations in an update and the steps up to it, want at most 10", name, n)
		}
	}
}

// BenchmarkTrain is a step of four rows with its share of learning, in CleanRL's setting.
func BenchmarkTrain(b *testing.B) {
	newLoop(b, "ProbeContext-v1", 4, 1, vec.SameStep, DefaultConfig(), 5, 1<<40).BenchmarkSteps(b)
}

func BenchmarkAct(b *testing.B) {
	newLoop(b, "InvalidAction-v1", 8, 1, vec.SameStep, DefaultConfig(), 5, 1<<40).BenchmarkAct(b)
}
