package ppo

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/replay"
)

// fill plays until the rollout is full, without learning.
func fill(t *testing.T, l *loop) {
	t.Helper()
	for !l.Agent.roll.Full() {
		l.Play()
	}
}

// In the first minibatch of the first epoch nothing has changed since the actions were taken: every ratio is 1, so
// KL and clip fraction are exactly 0 and the policy loss is minus the mean advantage, 0 once normalised.
func TestFirstMinibatchSeesTheActingPolicy(t *testing.T) {
	for _, norm := range []bool{false, true} {
		cfg := small()
		cfg.Epochs, cfg.Minibatches, cfg.NormAdvantage = 1, 1, norm
		l := newLoop(t, "InvalidAction-v1", 4, 1, vec.SameStep, cfg, 7, 1<<20)
		fill(t, l)
		if err := l.Agent.roll.Advantages(l.Agent.last, float32(cfg.Lambda), 1); err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for _, a := range l.Agent.roll.Advantage {
			want -= float64(a) / float64(len(l.Agent.roll.Advantage))
		}
		if norm {
			want = 0
		}
		stats, err := l.Agent.Learn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		l.Stats = stats
		if kl, clip := l.Stat("approx_kl"), l.Stat("clip_fraction"); kl != 0 || clip != 0 {
			t.Errorf("norm %v: KL %v and clip fraction %v, want 0 and 0", norm, kl, clip)
		}
		if got := l.Stat("policy_loss"); math.Abs(got-want) > 1e-6 {
			t.Errorf("norm %v: policy loss %v, want %v", norm, got, want)
		}
		// The policy's head starts close to 0, so the policy is close to uniform over the 20 legal actions.
		if got := l.Stat("entropy"); math.Abs(got-math.Log(20)) > 1e-3 {
			t.Errorf("norm %v: entropy %v, want ln 20 = %v", norm, got, math.Log(20))
		}
	}
}

// With all weights 0 the policy is exactly uniform over the legal actions.
func TestUniformPolicyHasEntropyLogN(t *testing.T) {
	cfg := small()
	cfg.Epochs, cfg.Minibatches = 1, 1
	l := newLoop(t, "InvalidAction-v1", 4, 1, vec.SameStep, cfg, 7, 1<<20)
	clear(l.Agent.Params().Data)
	fill(t, l)
	for _, lp := range l.Agent.roll.LogProb {
		if math.Abs(float64(lp)+math.Log(20)) > 1e-6 {
			t.Fatalf("log-probability %v, want −ln 20 = %v", lp, -math.Log(20))
		}
	}
	stats, err := l.Agent.Learn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	l.Stats = stats
	if got := l.Stat("entropy"); math.Abs(got-math.Log(20)) > 1e-5 {
		t.Errorf("entropy %v, want ln 20 = %v", got, math.Log(20))
	}
}

// The gradient of a minibatch is the mean over its steps, for any number of shards.
func TestShardsAddUp(t *testing.T) {
	var grads [][]float32
	for _, shards := range []int{1, 3, 64} { // with 64 of them some are empty
		cfg := small()
		cfg.Shards, cfg.Steps, cfg.Minibatches, cfg.Epochs = shards, 10, 1, 1
		l := newLoop(t, "ProbeMaskedContext-v1", 5, 1, vec.SameStep, cfg, 11, 1<<20)
		fill(t, l)
		if err := l.Agent.roll.Advantages(l.Agent.last, 0.9, 1); err != nil {
			t.Fatal(err)
		}
		index := make([]int, 50)
		for i := range index {
			index[i] = i
		}
		grad, _, _, err := gradientOf(l.Agent, index)
		if err != nil {
			t.Fatal(err)
		}
		grads = append(grads, slices.Clone(grad.Data))
	}
	var norm float64
	for _, g := range grads[0] {
		norm += float64(g) * float64(g)
	}
	for k, g := range grads[1:] {
		var diff float64
		for i := range g {
			diff += float64(g[i]-grads[0][i]) * float64(g[i]-grads[0][i])
		}
		if norm == 0 || math.Sqrt(diff/norm) > 1e-5 {
			t.Errorf("case %d: the gradient differs by %v of its norm", k+1, math.Sqrt(diff/norm))
		}
	}
}

// Sampling follows the policy's probabilities, never leaves the mask, and a row draws from its own stream only.
func TestSamplingFollowsTheDistribution(t *testing.T) {
	cfg := small()
	l := newLoop(t, "ProbeMaskedContext-v1", 1, 1, vec.SameStep, cfg, 3, 1<<20)
	spec := l.Vec.Spec()
	p := l.Agent.Greedy().(*Policy).Sampling()
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range l.Agent.Params().Data {
		l.Agent.Params().Data[i] += float32(0.3 * rng.NormFloat64())
	}
	const n = 3
	b, act := env.NewBatch(spec, n), env.NewActions(spec, n)
	src := make([]*rand.Rand, n)
	for i := range src {
		b.Obs[i] = float32(i) - 1
		copy(b.Mask[4*i:], []bool{i != 0, true, i != 1, true})
		src[i] = rand.New(rand.NewPCG(1, uint64(i)))
	}
	var count [n][4]float64
	const draws = 50_000
	for range draws {
		if err := p.Act(context.Background(), b, act, src); err != nil {
			t.Fatal(err)
		}
		for i := range count {
			count[i][act.Disc[i]]++
		}
	}
	logits := make([]float32, n*4)
	if err := l.Agent.fwd.Run(context.Background(), b.Obs, n, logits, nil); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		total := 0.0
		for k, legal := range b.Mask[4*i : 4*i+4] {
			if legal {
				total += math.Exp(float64(logits[4*i+k]))
			}
		}
		for k, legal := range b.Mask[4*i : 4*i+4] {
			want := math.Exp(float64(logits[4*i+k])) / total
			if !legal {
				want = 0
			}
			// Four standard deviations, and exactly 0 where illegal.
			if got := count[i][k] / draws; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/draws) {
				t.Errorf("row %d action %d: frequency %.4f, want %.4f", i, k, got, want)
			}
		}
	}

	// The same row with the same stream, alone.
	one, got := env.NewBatch(spec, 1), env.NewActions(spec, 1)
	copy(one.Obs, b.Obs[2:])
	copy(one.Mask, b.Mask[8:])
	again := rand.New(rand.NewPCG(1, 2))
	for i := range src {
		src[i] = rand.New(rand.NewPCG(1, uint64(i)))
	}
	for k := range 200 {
		if err := errors.Join(p.Act(context.Background(), b, act, src),
			p.Act(context.Background(), one, got, []*rand.Rand{again})); err != nil {
			t.Fatal(err)
		}
		if act.Disc[2] != got.Disc[0] {
			t.Fatalf("draw %d: action %d among others, %d alone", k, act.Disc[2], got.Disc[0])
		}
	}
}

// A step without any legal action is an error that names the row, unless the row has ended and nothing is decided.
func TestNoLegalAction(t *testing.T) {
	l := newLoop(t, "ProbeAction-v1", 2, 1, vec.SameStep, small(), 3, 1<<20)
	l.NeedsLegalActions(t,
		map[string]agents.Policy{"agent": l.Agent, "greedy": l.Agent.Greedy(),
			"sampling": l.Agent.Greedy().(*Policy).Sampling()})
}

// An update stops before the step whose KL has passed 1.5 times the target.
func TestTargetKLEndsAnUpdate(t *testing.T) {
	run := func(target float64) *loop {
		cfg := small()
		cfg.LR, cfg.Epochs, cfg.TargetKL = 0.05, 10, target
		l := newLoop(t, "ProbeContext-v1", 8, 1, vec.SameStep, cfg, 2, 1<<20)
		l.Update()
		return l
	}
	free, held := run(0), run(0.01)
	if free.Stat("epochs") != 10 || free.Stat("n_updates") != 40 {
		t.Errorf("without a target: %v epochs and %v updates, want 10 and 40", free.Stat("epochs"), free.Stat("n_updates"))
	}
	if held.Stat("epochs") >= 10 || held.Stat("n_updates") >= 40 || held.Stat("n_updates") < 1 {
		t.Errorf("with a target: %v epochs and %v updates, want fewer", held.Stat("epochs"), held.Stat("n_updates"))
	}
}

// Rates follow the share of training that was done when the rollout began: the first update runs at the full rate,
// the last not at 0.
func TestSchedules(t *testing.T) {
	cfg := small()
	cfg.LR, cfg.AnnealLR, cfg.AnnealClip = 1e-3, true, true
	l := newLoop(t, "ProbeContext-v1", 8, 1, vec.SameStep, cfg, 2, 4*8*32)
	for k := 0; k < 4; k++ {
		l.Update()
		share := 1 - float64(k)/4
		if lr, clip := l.Stat("learning_rate"), l.Stat("clip_range"); math.Abs(lr-1e-3*share) > 1e-12 ||
			math.Abs(clip-0.2*share) > 1e-12 {
			t.Errorf("update %d: rate %v and clip %v, want %v and %v", k, lr, clip, 1e-3*share, 0.2*share)
		}
	}
}

// Scaled rewards make learning independent of their unit: rewards in thousandths and in thousands teach the same.
func TestRewardScaleCancelsTheUnit(t *testing.T) {
	run := func(unit float64) (*loop, float64) {
		cfg := small()
		cfg.RewardScale = true
		l := newLoop(t, "ProbeContext-v1", 8, 1, vec.SameStep, cfg, 2, 6000)
		l.Reward = unit
		l.Train()
		return l, agenttest.Evaluate(t, "ProbeContext-v1", l.Agent.Greedy(), 100)
	}
	for _, unit := range []float64{1.0 / 1024, 1, 4096} { // powers of two: the scaled numbers are equal bit for bit
		l, got := run(unit)
		if got != 1 {
			t.Errorf("unit %v: greedy play returns %v, want 1", unit, got)
		}
		if s := l.Stat("reward_scale") / unit; s < 0.1 || s > 1.1 {
			t.Errorf("unit %v: the scale is %v units", unit, s)
		}
	}
}

func TestNewRefusesWhatItCannotDo(t *testing.T) {
	blind, idle := agenttest.Plain(), agenttest.Plain()
	blind.Obs, idle.Action = nil, env.ActionSpec{}
	for want, s := range map[string]env.Spec{"no observation": blind, "no actions": idle} {
		_, err := New(DefaultConfig(), s, 4, 1, 1)
		_, perr := NewPolicy(DefaultConfig(), s, strings.NewReader(""))
		for _, err := range []error{err, perr} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %q", err, want)
			}
		}
	}
	good := agenttest.Plain()
	if _, err := New(DefaultConfig(), good, 0, 1, 1); err == nil {
		t.Error("no rows: no error")
	}
	cfg := DefaultConfig()
	cfg.Steps, cfg.Minibatches = 2, 9
	if _, err := New(cfg, good, 4, 1, 1); err == nil {
		t.Error("more minibatches than steps: no error")
	}
	bad := Config{Clip: 1, Gamma: math.NaN(), LR: -1, Lambda: 2, EntCoef: -1, Network: DefaultConfig().Network}
	bad.Network.Activation = "sine"
	keys := map[string]bool{}
	for _, f := range fault.All(bad.Validate()) {
		keys[f.Key] = true
	}
	for _, k := range []string{"steps", "epochs", "minibatches", "shards", "lr", "adam_eps", "gamma", "lambda", "clip",
		"ent_coef", "network.activation"} {
		if !keys[k] {
			t.Errorf("no fault named %s in %v", k, keys)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}

func TestOrderOfCalls(t *testing.T) {
	l := newLoop(t, "ProbeAction-v1", 2, 1, vec.SameStep, small(), 3, 1<<20)
	if err := l.Agent.Observe(l.Batch, l.Actions, l.Next); !errors.Is(err, ErrOrder) {
		t.Errorf("Observe first: got %v, want ErrOrder", err)
	}
	if _, err := l.Agent.Learn(context.Background()); !errors.Is(err, agents.ErrNotReady) {
		t.Errorf("Learn first: got %v, want ErrNotReady", err)
	}
	fill(t, l)
	ctx := context.Background()
	if err := errors.Join(l.Agent.Act(ctx, l.Batch, l.Actions, l.Streams), l.Vec.Step(ctx, nil, l.Actions, l.Next)); err !=
		nil {
		t.Fatal(err)
	}
	if err := l.Agent.Observe(l.Batch, l.Actions, l.Next); !errors.Is(err, replay.ErrFull) {
		t.Errorf("a full rollout: got %v, want ErrFull", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.Agent.Learn(done); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if _, err := l.Agent.Learn(ctx); err != nil {
		t.Errorf("and then: %v", err)
	}
}
