package ppo

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"clustergym/agents/checkpoint"
	"clustergym/env"
	"clustergym/env/vec"
)

// busy is a setting in which everything moves: schedules, scaling, early stops, shards of unequal size.
func busy() Config {
	c := small()
	c.Steps, c.Minibatches, c.Epochs, c.Shards = 21, 4, 3, 3
	c.AnnealLR, c.AnnealClip, c.RewardScale, c.ClipValue, c.TargetKL = true, true, true, 0.3, 0.05
	return c
}

// Workers change nothing: weights, moments, counters and rollout are equal byte for byte.
func TestWorkersChangeNothing(t *testing.T) {
	var want map[string][]byte
	for _, workers := range []int{1, 2, 8} {
		l := newLoop(t, "InvalidAction-v1", 70, workers, vec.SameStep, busy(), 5, 3500).train() // 70 rows: two pieces when acting
		got := stateOf(t, l.agent.Parts())
		if want == nil {
			want = got
			continue
		}
		sameState(t, "workers", got, want)
	}
}

func TestSeedsDiffer(t *testing.T) {
	a := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, busy(), 5, 10)
	b := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, busy(), 6, 10)
	if bytes.Equal(stateOf(t, a.agent.Parts())["weights.safetensors"], stateOf(t, b.agent.Parts())["weights.safetensors"]) {
		t.Error("seeds 5 and 6 begin with the same weights")
	}
}

// Saved in mid-rollout, loaded into a new agent and gone on with, a run ends with the bytes of one that was never
// interrupted.
func TestResumeEqualsStraightThrough(t *testing.T) {
	for _, mode := range []vec.Autoreset{vec.SameStep, vec.NextStep} {
		straight := newLoop(t, "InvalidAction-v1", 6, 1, mode, busy(), 5, 3000)
		first := newLoop(t, "InvalidAction-v1", 6, 1, mode, busy(), 5, 3000)
		for first.steps < 1400 {
			first.step()
			straight.step()
		}
		if first.agent.roll.Len() == 0 || first.agent.updates == 0 {
			t.Fatal("not in the middle of a rollout after an update")
		}
		dir := filepath.Join(t.TempDir(), "1400")
		meta := checkpoint.Meta{Env: first.v.Spec().ID, Agent: "ppo", Network: first.agent.Network()}
		if err := checkpoint.Save(dir, meta, first.agent.Parts()...); err != nil {
			t.Fatal(err)
		}
		snap, err := first.v.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}

		second := newLoop(t, "InvalidAction-v1", 6, 2, mode, busy(), 999, 3000) // another seed: all must come from the checkpoint
		m, err := checkpoint.Load(dir, second.agent.Parts()...)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Match(checkpoint.Meta{Env: second.v.Spec().ID, Agent: "ppo", Network: second.agent.Network()}); err != nil {
			t.Fatal(err)
		}
		sameState(t, "loaded", stateOf(t, second.agent.Parts()), stateOf(t, first.agent.Parts()))
		// What belongs to the trainer.
		if err := second.v.RestoreSnapshot(snap, second.b); err != nil {
			t.Fatal(err)
		}
		second.b.CopyFrom(first.b)
		second.steps = first.steps
		for i, p := range first.pcg {
			*second.pcg[i] = *p
		}
		second.train()
		straight.train()
		sameState(t, "resumed", stateOf(t, second.agent.Parts()), stateOf(t, straight.agent.Parts()))
	}
}

// A policy of the weights alone plays what the agent's greedy policy plays, in batches of any size.
func TestPolicyFromWeights(t *testing.T) {
	cfg := small()
	l := newLoop(t, "InvalidAction-v1", 4, 1, vec.SameStep, cfg, 5, 1000).train()
	weights := stateOf(t, l.agent.Parts())["weights.safetensors"]
	p, err := NewPolicy(cfg, l.v.Spec(), bytes.NewReader(weights))
	if err != nil {
		t.Fatal(err)
	}
	greedy := l.agent.Greedy()
	spec := l.v.Spec()
	for _, n := range []int{1, 200, 7} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		b := env.NewBatch(spec, n)
		for i := range b.Obs {
			b.Obs[i] = float32(rng.NormFloat64())
		}
		for i := range b.Mask {
			b.Mask[i] = i%80 == 3 || rng.IntN(4) == 0
		}
		one, two := env.NewActions(spec, n), env.NewActions(spec, n)
		if err := p.Act(context.Background(), b, one, nil); err != nil {
			t.Fatal(err)
		}
		if err := greedy.Act(context.Background(), b, two, nil); err != nil {
			t.Fatal(err)
		}
		for i := range one.Disc {
			if one.Disc[i] != two.Disc[i] || !b.Mask[i*80+int(one.Disc[i])] {
				t.Fatalf("row %d of %d: actions %d and %d", i, n, one.Disc[i], two.Disc[i])
			}
		}
	}
	cfg.Network.Hidden = []int{17}
	if _, err := NewPolicy(cfg, spec, bytes.NewReader(weights)); err == nil {
		t.Error("weights of another shape: no error")
	}
}

// Damaged state is an error and changes nothing.
func TestStateIsChecked(t *testing.T) {
	l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, busy(), 5, 500).train()
	before := stateOf(t, l.agent.Parts())
	for name, bad := range map[string]string{
		"another format": `{"format": 2}`,
		"rows":           `{"format": 1, "last": [1]}`,
		"progress":       `{"format": 1, "progress": 2, "last": [1,2,3,4]}`,
		"scale":          `{"format": 1, "last": [1,2,3,4], "scale": {"sum": [1]}}`,
		"stream":         `{"format": 1, "last": [1,2,3,4], "scale": {"sum": [1,2,3,4]}, "order": "AAAA"}`,
	} {
		for _, p := range l.agent.Parts() {
			if p.Name() == "agent.json" {
				if _, err := p.ReadFrom(bytes.NewReader([]byte(bad))); err == nil {
					t.Errorf("%s: no error", name)
				}
			}
		}
		sameState(t, name, stateOf(t, l.agent.Parts()), before)
	}
}

func TestActAndObserveDoNotAllocate(t *testing.T) {
	cfg := small()
	cfg.Steps = 8
	l := newLoop(t, "InvalidAction-v1", 8, 1, vec.SameStep, cfg, 5, 1<<30)
	for range 200 {
		l.step()
	}
	p := l.agent.Greedy()
	run := func() {
		ctx := context.Background()
		if l.agent.roll.Full() {
			l.agent.roll.Reset()
		}
		if p.Act(ctx, l.b, l.act, nil) != nil || l.agent.Act(ctx, l.b, l.act, l.src) != nil ||
			l.v.Step(ctx, nil, l.act, l.next) != nil || l.agent.Observe(l.b, l.act, l.next) != nil {
			t.Fatal("a step failed")
		}
		l.b, l.next = l.next, l.b
	}
	run()
	// 300 runs pass through several ends of episodes and of rollouts.
	if got := testing.AllocsPerRun(300, run); got != 0 {
		t.Errorf("%v allocations a step, want 0", got)
	}
}

// BenchmarkTrain is a step of eight rows with its share of learning, in CleanRL's setting.
func BenchmarkTrain(b *testing.B) {
	l := newLoop(b, "ProbeContext-v1", 4, 1, vec.SameStep, DefaultConfig(), 5, 1<<40)
	b.ReportAllocs()
	for b.Loop() {
		l.step()
	}
	b.ReportMetric(float64(l.steps)/b.Elapsed().Seconds(), "steps/s")
}

func BenchmarkAct(b *testing.B) {
	l := newLoop(b, "InvalidAction-v1", 8, 1, vec.SameStep, DefaultConfig(), 5, 1<<40)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.agent.Act(context.Background(), l.b, l.act, l.src); err != nil {
			b.Fatal(err)
		}
	}
}
