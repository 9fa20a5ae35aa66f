package ppo

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
)

// locks is a problem of one step with two factors of actions and one number: the observation says which of three keys
// fits which of two locks, and how far to turn. Each right choice pays 1/4, the turn up to 1/2, by how near it is. One
// key and, for it, no lock is masked; masks differ by observation.
type locks struct {
	rng  *rand.Rand
	mode int // 0 to 5: the right key and lock
	over bool
}

func locksSpec() env.Spec {
	return env.Spec{
		ID:     "Locks-v0",
		Obs:    []env.Field{{Name: "mode", Shape: []int{6}, High: 1}},
		Action: env.ActionSpec{Sizes: []int{3, 2}, Low: []float32{-2}, High: []float32{4}},
		NoOp:   -1, Solved: math.NaN(),
	}
}

func (l *locks) Spec() env.Spec { return locksSpec() }

func (l *locks) Reset(_ context.Context, ep env.Episode, ts *env.TimeStep) error {
	l.rng = rand.New(rand.NewPCG(ep.Seed, 1))
	l.mode, l.over = l.rng.IntN(6), false
	l.fill(ts, 0, env.First)
	return nil
}

// turn is the right number, inside the box.
func (l *locks) turn() float64 { return float64(l.mode) - 1.5 }

// masked is the key that does not exist in this mode.
func (l *locks) masked() int { return (l.mode/2 + 1) % 3 }

func (l *locks) Step(_ context.Context, a env.Action, ts *env.TimeStep) error {
	if l.over {
		return env.ErrResetNeeded
	}
	s := locksSpec().Action
	if int(a.Disc[0]) == l.masked() || !(a.Cont[0] >= s.Low[0] && a.Cont[0] <= s.High[0]) {
		return env.ErrIllegalAction
	}
	reward := max(0, 0.5-math.Abs(float64(a.Cont[0])-l.turn())/2)
	if int(a.Disc[0]) == l.mode/2 {
		reward += 0.25
	}
	if int(a.Disc[1]) == l.mode%2 {
		reward += 0.25
	}
	l.over = true
	l.fill(ts, reward, env.Terminated)
	return nil
}

func (l *locks) fill(ts *env.TimeStep, reward float64, kind env.Kind) {
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, 0
	clear(ts.Obs)
	ts.Obs[l.mode] = 1
	for k := range ts.Mask {
		ts.Mask[k] = k != l.masked()
	}
}

func (l *locks) Close() error { return nil }

// player plays an agent in any environments.
type player struct {
	t       testing.TB
	a       *Agent
	v       *vec.Vec
	b, next *env.Batch
	act     *env.Actions
	src     []*rand.Rand
	steps   int
}

func newPlayer(t testing.TB, cfg Config, seed uint64, envs ...env.Env) *player {
	t.Helper()
	v, err := vec.New(vec.Config{Workers: 1, Autoreset: vec.SameStep}, envs...)
	if err != nil {
		t.Fatal(err)
	}
	v.Seed(seed)
	a, err := New(cfg, v.Spec(), v.Len(), 1, seed)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, a: a, v: v, b: env.NewBatch(v.Spec(), v.Len()), next: env.NewBatch(v.Spec(), v.Len()),
		act: env.NewActions(v.Spec(), v.Len())}
	for i := range v.Len() {
		p.src = append(p.src, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	if err := v.Reset(context.Background(), nil, nil, p.b); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *player) rollout() {
	p.t.Helper()
	ctx := context.Background()
	for !p.a.roll.Full() {
		if err := p.a.Act(ctx, p.b, p.act, p.src); err != nil {
			p.t.Fatal(err)
		}
		if err := p.v.Step(ctx, nil, p.act, p.next); err != nil {
			p.t.Fatal(err)
		}
		if err := p.a.Observe(p.b, p.act, p.next); err != nil {
			p.t.Fatal(err)
		}
		p.b, p.next = p.next, p.b
		p.steps += p.b.N
	}
}

func (p *player) train(steps int) {
	p.t.Helper()
	for p.steps < steps {
		p.rollout()
		if _, err := p.a.Learn(context.Background()); err != nil {
			p.t.Fatal(err)
		}
	}
}

// greedy is the mean reward of a step of greedy play.
func (p *player) greedy(steps int) float64 {
	p.t.Helper()
	ctx, g, sum := context.Background(), p.a.Greedy(), 0.0
	if err := p.v.Reset(ctx, nil, nil, p.b); err != nil {
		p.t.Fatal(err)
	}
	for range steps {
		if err := g.Act(ctx, p.b, p.act, nil); err != nil {
			p.t.Fatal(err)
		}
		if err := p.v.Step(ctx, nil, p.act, p.b); err != nil {
			p.t.Fatal(err)
		}
		for _, r := range p.b.Reward {
			sum += r
		}
	}
	return sum / float64(steps*p.b.N)
}

func eightLocks() []env.Env {
	var all []env.Env
	for range 8 {
		all = append(all, &locks{})
	}
	return all
}

func locksConfig() Config {
	c := small()
	c.LogStd, c.EntCoef = 0, 0.001
	c.ScaleActions = true
	return c
}

// Two masked factors and a number, chosen at once and learnt together.
func TestFactorsAndNumbersAreLearntTogether(t *testing.T) {
	p := newPlayer(t, locksConfig(), 3, eightLocks()...)
	p.train(30_000)
	if got := p.greedy(100); got < 0.9 {
		t.Errorf("greedy play is paid %.3f a step, want at least 0.9 of 1", got)
	}
}

// In the first minibatch of the first epoch the ratio is 1 for every kind of action, so KL and clip fraction are
// exactly 0. The entropy is that of uniform factors and a standard normal number, because the head begins close to 0.
func TestFirstMinibatchSeesTheActingPolicyOfAnyKind(t *testing.T) {
	nav := agenttest.Envs(t, "Nav2D-v1", 1, vec.SameStep, 1).Spec()
	for _, c := range []struct {
		name    string
		envs    []env.Env
		entropy float64
	}{
		// Of three keys two are legal, and both locks; in units of the half box the deviation is 1.
		{"two factors and a number", eightLocks(), math.Log(2) + math.Log(2) + math.Log(2*math.Pi*math.E)/2},
		{"two numbers", []env.Env{mustMake(t, nav.ID)}, math.Log(2 * math.Pi * math.E)},
	} {
		for _, norm := range []bool{false, true} {
			cfg := locksConfig()
			cfg.NormObs, cfg.Epochs, cfg.Minibatches = norm, 1, 1
			p := newPlayer(t, cfg, 3, c.envs...)
			p.rollout()
			stats, err := p.a.Learn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range stats {
				if (s.Name == "approx_kl" || s.Name == "clip_fraction") && s.Value != 0 {
					t.Errorf("%s, norm_obs %v: %s is %v, want 0", c.name, norm, s.Name, s.Value)
				}
				if s.Name == "entropy" && math.Abs(s.Value-c.entropy) > 1e-3 {
					t.Errorf("%s, norm_obs %v: entropy %v, want %v", c.name, norm, s.Value, c.entropy)
				}
			}
		}
	}
}

func mustMake(t *testing.T, id string) env.Env {
	t.Helper()
	e, err := control.New(id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The environment gets numbers clipped to the box, the rollout keeps them as they were drawn, and an action that
// another policy chose is recorded as it is.
func TestNumbersAreCutForTheEnvironmentOnly(t *testing.T) {
	cfg := locksConfig()
	cfg.LogStd = 1.5 // most numbers are drawn outside the box
	p := newPlayer(t, cfg, 3, eightLocks()...)
	p.rollout()
	cut, squares := 0, 0.0
	for _, x := range p.a.roll.Action.Cont {
		squares += float64(x) * float64(x)
		if x < -1 || x > 1 { // in half widths from the middle
			cut++
		}
	}
	if share := float64(cut) / float64(len(p.a.roll.Action.Cont)); share < 0.5 || share > 0.95 {
		t.Errorf("%.2f of the numbers kept lie outside the box, want most of them", share)
	}
	deviation := math.Sqrt(squares / float64(len(p.a.roll.Action.Cont)))
	if math.Abs(deviation-math.Exp(1.5)) > 0.15*math.Exp(1.5) {
		t.Errorf("the numbers kept have deviation %.2f, want that of what was drawn, %.2f", deviation, math.Exp(1.5))
	}
	if b := p.a.act.box; b.action(0, 7) != 4 || b.action(0, -7) != -2 || b.action(0, 0.5) != 2.5 ||
		b.number(0, 2.5) != 0.5 {
		t.Errorf("a box from -2 to 4 makes %v, %v and %v of 7, -7 and 0.5", b.action(0, 7), b.action(0, -7), b.action(0, 0.5))
	}
	p.a.roll.Reset()
	if err := p.a.Act(context.Background(), p.b, p.act, p.src); err != nil {
		t.Fatal(err)
	}
	p.act.Cont[2] = 1 // the middle: 0 half widths from it
	if err := p.a.Observe(p.b, p.act, p.b); err != nil {
		t.Fatal(err)
	}
	if got := p.a.roll.Action.Cont[2]; got != 0 {
		t.Errorf("a foreign action of 1 is kept as %v, want 0", got)
	}
	// log p = log-probabilities of both factors − z²/2 − 1.5 − ln(2π)/2, with z = (0 − mean)/e^1.5.
	a := &p.a.act
	z := -float64(a.head[2*6+5]) / math.Exp(1.5)
	want := float64(a.logp[2*5+int(p.act.Disc[4])]) + float64(a.logp[2*5+3+int(p.act.Disc[5])]) - z*z/2 - 1.5 -
		math.Log(2*math.Pi)/2
	if got := float64(p.a.roll.LogProb[2]); math.Abs(got-want) > 1e-5 {
		t.Errorf("its log-probability is %v, want %v", got, want)
	}
}

// A point that always has the same goal learns where it is.
func TestContinuousActionsFindAGoal(t *testing.T) {
	var all []env.Env
	for range 8 {
		all = append(all, mustMake(t, "Nav2D-v1"))
	}
	cfg := DefaultConfig()
	cfg.LR, cfg.EntCoef, cfg.AnnealLR, cfg.ScaleActions, cfg.NormObs, cfg.RewardScale, cfg.Shards = 1e-3, 0, false, true,
		true, true, 1
	p := newPlayer(t, cfg, 1, all...)
	for i := range all {
		if err := p.v.SetTask(i, []float64{0.3, -0.4}); err != nil {
			t.Fatal(err)
		}
	}
	p.train(60_000)
	// Standing still costs 0.5 a step, 50 an episode; going straight to the goal 1.
	if got := 100 * p.greedy(100); got < -8 {
		t.Errorf("an episode of greedy play returns %.1f, want at least -8", got)
	}
}

// The scale that a policy needs to see observations as the agent does is saved beside the weights.
func TestScaleOfObservationsIsSavedWithTheWeights(t *testing.T) {
	cfg := locksConfig()
	cfg.NormObs = true
	p := newPlayer(t, cfg, 3, eightLocks()...)
	p.train(1000)
	weights := agenttest.State(t, p.a.Parts())["weights.safetensors"]
	policy, err := NewPolicy(cfg, p.v.Spec(), bytes.NewReader(weights))
	if err != nil {
		t.Fatal(err)
	}
	one, two := make([]float32, 6), make([]float32, 6)
	policy.act.scale.Apply(one, p.b.Obs, 1)
	p.a.act.scale.Apply(two, p.b.Obs, 1)
	if !slices.Equal(one, two) || slices.Equal(one, p.b.Obs[:6]) {
		t.Error("the policy scales otherwise than the agent")
	}
	cfg.NormObs = false
	if _, err := NewPolicy(cfg, p.v.Spec(), bytes.NewReader(weights)); err == nil ||
		!strings.Contains(err.Error(), "observation.") {
		t.Errorf("without norm_obs: error %v, want one that names the tensor", err)
	}
}

// SB3's way: a fixed number of steps in a minibatch, fewer in the last of a pass.
func TestBatchSaysHowLargeMinibatchesAre(t *testing.T) {
	cfg := small()
	cfg.Steps, cfg.Batch, cfg.Epochs, cfg.Minibatches = 10, 16, 2, 1
	l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, cfg, 2, 1<<20) // 40 steps: 16, 16 and 8
	l.Update()
	if got := l.Stat("n_updates"); got != 6 {
		t.Errorf("%v gradient steps, want 3 in each of 2 passes", got)
	}
	var sizes []int
	for k := range 3 {
		from, to := cfg.piece(k, 40)
		sizes = append(sizes, to-from)
	}
	if !slices.Equal(sizes, []int{16, 16, 8}) {
		t.Errorf("minibatches of %v", sizes)
	}
	if got := l.Agent.losses[0].cap; got != 4 { // 16 in 4 shards
		t.Errorf("shards hold %d steps, want 4", got)
	}
}
