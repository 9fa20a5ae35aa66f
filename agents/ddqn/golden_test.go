package ddqn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/fault"
)

// table is an agent whose networks are tables: two one-hot observations, three actions, Q = the weights.
func table(t *testing.T, cfg Config, online, target [2][3]float32) *Agent {
	t.Helper()
	cfg.Network.Hidden, cfg.Duelling, cfg.Shards = nil, false, 2
	spec := env.Spec{ID: "Table-v1", Obs: []env.Field{{Name: "s", Shape: []int{2}, High: 1}},
		Action: env.ActionSpec{Sizes: []int{3}}}
	a, err := New(cfg, spec, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for k, q := range [][2][3]float32{online, target} {
		p := a.net.Params()
		if k == 1 {
			p = a.target.Params()
		}
		clear(p.Data)
		for _, v := range p.Views {
			if len(v.Shape) == 2 && v.Shape[0] == 2 && v.Shape[1] == 3 {
				copy(v.Data, append(q[0][:], q[1][:]...))
			}
		}
	}
	for s := range 2 {
		obs := []float32{0, 0}
		obs[s] = 1
		for k, got := range valuesOf(t, a, obs...) {
			if got != float64(online[s][k]) {
				t.Fatalf("the table says Q(%d, %d) = %v, want %v", s, k, got, online[s][k])
			}
		}
	}
	return a
}

// Targets worked by hand. The online network prefers action 2 then 0 in state 0, and 1 then 2 in state 1.
func TestTargetsByHand(t *testing.T) {
	online := [2][3]float32{{2, 1, 3}, {-5, 4, 0}}
	target := [2][3]float32{{10, 40, 20}, {-1, -2, -4}}
	rows := []struct {
		state          int
		mask           [3]bool
		reward         float32
		discount       float32
		double, single float32
	}{
		{0, [3]bool{true, true, true}, 1, 0.5, 1 + 0.5*20, 1 + 0.5*40},   // online says 2; the target alone says 1
		{0, [3]bool{true, true, false}, 1, 0.5, 1 + 0.5*10, 1 + 0.5*40},  // 2 is illegal next: online says 0
		{0, [3]bool{true, false, true}, 1, 1, 1 + 20, 1 + 20},            // 1 is illegal next
		{1, [3]bool{true, true, true}, -2, 0.25, -2 - 0.5, -2 - 0.25},    // online says 1; the target says 0
		{1, [3]bool{false, false, true}, 0, 0.5, -2, -2},                 // one action left
		{1, [3]bool{true, true, true}, 7, 0, 7, 7},                       // terminated
		{1, [3]bool{false, false, false}, 7, 0, 7, 7},                    // terminated, nothing legal
		{0, [3]bool{false, true, false}, 3, 0.125, 3 + 5, 3 + 0.125*40.}, // and once more
	}
	for _, double := range []bool{true, false} {
		cfg := DefaultConfig()
		cfg.Double, cfg.Batch, cfg.RewardFactor = double, len(rows), 1
		a := table(t, cfg, online, target)
		for i, r := range rows {
			a.batch.Obs[2*i] = 1
			clear(a.batch.NextObs[2*i : 2*i+2])
			a.batch.NextObs[2*i+r.state] = 1
			copy(a.batch.NextMask[3*i:], r.mask[:])
			copy(a.batch.Mask[3*i:], []bool{true, true, true})
			a.batch.Reward[i], a.batch.Discount[i], a.batch.Weight[i], a.batch.Action.Disc[i] = r.reward, r.discount, 1, 2
		}
		for _, factor := range []float64{1, 0.5} {
			a.reward = factor
			for i := range a.shards {
				if err := a.workShard(0, i); err != nil {
					t.Fatal(err)
				}
			}
			for i, r := range rows {
				want := r.single
				if double {
					want = r.double
				}
				want += float32(factor-1) * r.reward
				if got := a.wanted[i]; got != want {
					t.Errorf("double %v, factor %v, row %d: target %v, want %v", double, factor, i, got, want)
				}
				if got := a.delta[i]; got != 3-want { // Q(0, action 2) = 3
					t.Errorf("double %v, factor %v, row %d: error %v, want %v", double, factor, i, got, 3-want)
				}
			}
		}
	}
}

// Two-step targets from what was played, worked by hand with gamma 1/2: through the middle of an episode, up to its
// truncation, from the step before that, and at a termination.
func TestTwoStepTargetsByHand(t *testing.T) {
	online := [2][3]float32{{2, 1, 3}, {-5, 4, 0}}
	target := [2][3]float32{{10, 40, 20}, {-1, -2, -4}}
	played := []struct {
		state, action, next int
		reward              float64
		kind                env.Kind
		mask                [3]bool // at next
	}{
		{0, 0, 1, 1, env.Mid, [3]bool{true, true, true}},
		{1, 1, 0, 2, env.Mid, [3]bool{true, true, false}},
		{0, 2, 1, 4, env.Truncated, [3]bool{true, false, true}},
		{1, 0, 0, 8, env.Terminated, [3]bool{false, false, false}},
	}
	for double, want := range map[bool][4]float32{
		true: {
			1 + 2./2 + 10./4, // in state 0 action 2 is illegal; online prefers 0 of the others
			2 + 4./2 - 4./4,  // in state 1 action 1 is illegal; online prefers 2
			4 - 4./2,         // one step is left
			8,
		},
		false: {1 + 2./2 + 40./4, 2 + 4./2 - 1./4, 4 - 1./2, 8},
	} {
		cfg := DefaultConfig()
		cfg.Double, cfg.Prioritized, cfg.NStep, cfg.Gamma, cfg.Batch = double, false, 2, 0.5, len(played)
		a := table(t, cfg, online, target)
		b, next, act := env.NewBatch(a.spec, 1), env.NewBatch(a.spec, 1), env.NewActions(a.spec, 1)
		for i, p := range played {
			b.Kind[0] = env.Mid
			if i == 0 || played[i-1].kind.Last() {
				b.Kind[0] = env.First
			}
			clear(b.Obs)
			b.Obs[p.state] = 1
			copy(b.Mask, []bool{true, true, true})
			clear(next.Obs)
			next.Reward[0], next.Kind[0], act.Disc[0] = p.reward, p.kind, int32(p.action)
			next.FinalRows, next.FinalObs, next.FinalMask = nil, nil, nil
			if p.kind.Last() { // the row goes on elsewhere, which must not matter
				next.Obs[1-p.next] = 1
				next.FinalRows, next.FinalObs, next.FinalMask = []int{0}, []float32{0, 0}, p.mask[:]
				next.FinalObs[p.next] = 1
			} else {
				next.Obs[p.next] = 1
				copy(next.Mask, p.mask[:])
			}
			if err := a.Observe(b, act, next); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		seen := map[int]bool{}
		a.reward = 1
		for range 50 {
			if err := a.uniform.Sample(a.draws, a.batch); err != nil {
				t.Fatal(err)
			}
			for i := range a.shards {
				if err := a.workShard(0, i); err != nil {
					t.Fatal(err)
				}
			}
			for i, slot := range a.batch.Index {
				if got := a.wanted[i]; got != want[slot] {
					t.Fatalf("double %v: target of transition %d is %v, want %v", double, slot, got, want[slot])
				}
				if got := a.delta[i]; got != online[played[slot].state][played[slot].action]-want[slot] {
					t.Fatalf("double %v: error of transition %d is %v", double, slot, got)
				}
				seen[slot] = true
			}
		}
		if len(seen) != len(played) {
			t.Errorf("double %v: drew transitions %v", double, seen)
		}
	}
}

// Random actions are uniform over the legal ones, greedy actions are the best legal ones, and epsilon is the share of
// random actions.
func TestActionsFollowEpsilonAndMask(t *testing.T) {
	cfg := DefaultConfig()
	cfg.EpsStart, cfg.EpsEnd, cfg.EpsShare, cfg.WarmupRandom = 0.75, 0.25, 0.5, false
	a := table(t, cfg, [2][3]float32{{1, 2, 3}, {0, 0, 0}}, [2][3]float32{})
	b, act := env.NewBatch(a.spec, 1), env.NewActions(a.spec, 1)
	src := []*rand.Rand{rand.New(rand.NewPCG(1, 2))}
	b.Obs[0] = 1
	const draws = 40_000
	for _, c := range []struct {
		progress, eps float64
		mask          [3]bool
		best          int
	}{
		{0, 0.75, [3]bool{true, true, true}, 2}, {0.25, 0.5, [3]bool{true, true, false}, 1},
		{0.5, 0.25, [3]bool{true, false, true}, 2},
		{1, 0.25, [3]bool{true, false, false}, 0},
	} {
		a.Progress(c.progress)
		copy(b.Mask, c.mask[:])
		legal := 0.0
		for _, ok := range c.mask {
			if ok {
				legal++
			}
		}
		var count [3]float64
		for range draws {
			if err := a.Act(context.Background(), b, act, src); err != nil {
				t.Fatal(err)
			}
			count[act.Disc[0]]++
		}
		for k, ok := range c.mask {
			want := 0.0
			if ok {
				want = c.eps / legal
			}
			if k == c.best {
				want += 1 - c.eps
			}
			// Four standard deviations, and exactly 0 where illegal.
			if got := count[k] / draws; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/draws) {
				t.Errorf("progress %v, action %d: frequency %.4f, want %.4f", c.progress, k, got, want)
			}
		}
		if err := a.Greedy().Act(context.Background(), b, act, nil); err != nil || int(act.Disc[0]) != c.best {
			t.Errorf("progress %v: greedy action %d (%v), want %d", c.progress, act.Disc[0], err, c.best)
		}
	}
}

// Before learning starts every action is random, regardless of epsilon, unless that is switched off.
func TestWarmup(t *testing.T) {
	for _, random := range []bool{true, false} {
		cfg := small()
		cfg.LearningStarts, cfg.EpsStart, cfg.EpsEnd, cfg.WarmupRandom = 40, 0.5, 0.25, random
		l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, cfg, 3, 1<<20)
		for l.Steps < 100 {
			want := 0.5
			if random && l.Steps < 40 {
				want = 1
			}
			if got := l.Agent.epsilon(); math.Abs(got-want) > 1e-3 {
				t.Fatalf("warmup_random %v: epsilon is %v after %d steps, want %v", random, got, l.Steps, want)
			}
			l.Step()
		}
	}
}

// With gradient_steps -1 there are as many gradient steps as environment steps.
func TestAsManyGradientStepsAsSteps(t *testing.T) {
	for _, rows := range []int{1, 8} {
		cfg := small()
		cfg.LearningStarts, cfg.TrainEvery, cfg.GradientSteps, cfg.Batch = 64, 16, -1, 16
		l := newLoop(t, "ProbeContext-v1", rows, 1, vec.SameStep, cfg, 3, 1<<20)
		for l.Steps < 320 {
			l.Step()
		}
		if want := int64(320 - 64 + 16); l.Agent.updates != want {
			t.Errorf("%d rows: %d gradient steps after 320 environment steps, 64 of them before learning, want %d", rows,
				l.Agent.updates, want)
		}
	}
}

// The learning rate is constant, or falls linearly to 0.
func TestLearningRate(t *testing.T) {
	for _, anneal := range []bool{false, true} {
		cfg := small()
		cfg.LR, cfg.AnnealLR = 0.5, anneal
		a := table(t, cfg, [2][3]float32{}, [2][3]float32{})
		for progress, falling := range map[float64]float64{0: 0.5, 0.25: 0.375, 0.5: 0.25, 1: 0} {
			a.Progress(progress)
			want := 0.5
			if anneal {
				want = falling
			}
			if got := a.rate(); got != want {
				t.Errorf("anneal_lr %v, progress %v: learning rate %v, want %v", anneal, progress, got, want)
			}
		}
	}
}

// Moves of the target that are due between two updates are made at once: three moves of tau 0.5 leave an eighth of
// the difference.
func TestTargetMovesSeveralTimes(t *testing.T) {
	cfg := small()
	cfg.Tau = 0.5
	a := table(t, cfg, [2][3]float32{{16, -8, 0}, {0, 0, 2}}, [2][3]float32{{0, 8, 8}, {0, 0, 2}})
	if err := a.moveTarget(3); err != nil {
		t.Fatal(err)
	}
	got := a.target.Params()
	for _, v := range got.Views {
		if len(v.Shape) == 2 {
			for k, want := range []float32{14, -6, 1, 0, 0, 2} {
				if v.Data[k] != want {
					t.Errorf("weight %d of the target is %v, want %v", k, v.Data[k], want)
				}
			}
		}
	}
}

// A soft target moves once at the first update, however long the warm-up was, and afterwards as often as the steps
// require.
func TestSoftTargetFollowsSteps(t *testing.T) {
	cfg := small()
	cfg.LearningStarts, cfg.TrainEvery, cfg.TargetEvery, cfg.Tau, cfg.Batch = 100, 20, 10, 0.5, 16
	l := newLoop(t, "ProbeContext-v1", 1, 1, vec.SameStep, cfg, 3, 1<<20)
	for _, left := range []float64{0.5, 0.25, 0.25} { // of what the target was
		before := append([]float32(nil), l.Agent.target.Params().Data...)
		l.Update()
		for i, v := range l.Agent.target.Params().Data {
			if want := left*float64(before[i]) + (1-left)*float64(l.Agent.Params().Data[i]); math.Abs(float64(v)-want) > 1e-6 {
				t.Fatalf("after %d steps parameter %d of the target is %v, want %v", l.Steps, i, v, want)
			}
		}
	}
}

// A step without any legal action is an error that names the row, unless the row has ended and nothing is decided.
func TestNoLegalAction(t *testing.T) {
	for _, eps := range []float64{0, 1} {
		cfg := small()
		cfg.EpsStart, cfg.EpsEnd = eps, eps
		l := newLoop(t, "ProbeAction-v1", 2, 1, vec.SameStep, cfg, 3, 1<<20)
		l.NeedsLegalActions(t,
			map[string]agents.Policy{fmt.Sprintf("agent, epsilon %v", eps): l.Agent, "greedy": l.Agent.Greedy()})
	}
}

// Updates and target copies follow environment steps over all rows, for any number of rows.
func TestUpdatesFollowSteps(t *testing.T) {
	for _, rows := range []int{1, 3, 8, 20} {
		cfg := small()
		cfg.LearningStarts, cfg.TrainEvery, cfg.GradientSteps, cfg.TargetEvery, cfg.Batch = 100, 7, 2, 50, 16
		l := newLoop(t, "ProbeContext-v1", rows, 1, vec.SameStep, cfg, 3, 1<<20)
		for l.Steps < 600 {
			before := append([]float32(nil), l.Agent.target.Params().Data...)
			learnt := l.Step()
			if want := l.Steps >= 100 && (l.Steps-100)/7 != (l.Steps-rows-100)/7 ||
				l.Steps >= 100 && l.Steps-rows < 100; learnt != want {
				t.Fatalf("%d rows: after %d steps learnt %v, want %v", rows, l.Steps, learnt, want)
			}
			if want := int64(max(0, (l.Steps-100)/7+1) * 2); l.Steps >= 100 && l.Agent.updates != want {
				t.Fatalf("%d rows: %d gradient steps after %d steps, want %d", rows, l.Agent.updates, l.Steps, want)
			}
			copied := true
			for i, v := range l.Agent.Params().Data {
				copied = copied && l.Agent.target.Params().Data[i] == v
			}
			same := true
			for i, v := range before {
				same = same && l.Agent.target.Params().Data[i] == v
			}
			if learnt && !copied && !same {
				t.Fatalf("%d rows: after %d steps the target is neither a copy nor what it was", rows, l.Steps)
			}
		}
		if want := int64(l.Steps / 50); l.Agent.targets < want-1 {
			t.Errorf("%d rows: the target was copied up to interval %d of %d", rows, l.Agent.targets, want)
		}
	}
}

// With tau below 1 the target follows by that share after each gradient step.
func TestSoftTarget(t *testing.T) {
	cfg := small()
	cfg.LearningStarts, cfg.TrainEvery, cfg.TargetEvery, cfg.Tau, cfg.Batch = 32, 1, 0, 0.25, 16
	l := newLoop(t, "ProbeContext-v1", 1, 1, vec.SameStep, cfg, 3, 1<<20)
	for range 60 {
		before := append([]float32(nil), l.Agent.target.Params().Data...)
		if !l.Step() {
			continue
		}
		for i, v := range l.Agent.target.Params().Data {
			if want := 0.75*float64(before[i]) + 0.25*float64(l.Agent.Params().Data[i]); math.Abs(float64(v)-want) > 1e-6 {
				t.Fatalf("parameter %d of the target is %v, want %v", i, v, want)
			}
		}
	}
	if l.Agent.updates == 0 {
		t.Error("nothing was learnt")
	}
}

// What a step reports: for a network of zeros Q is 0, so the mean error is the mean target's size and so on.
func TestStatistics(t *testing.T) {
	cfg := plain()
	cfg.LearningStarts, cfg.Batch, cfg.Huber, cfg.LR = 0, 64, 0, 1e-12
	l := newLoop(t, "ProbeConstant-v1", 64, 1, vec.SameStep, cfg, 3, 1<<20)
	clear(l.Agent.Params().Data)
	clear(l.Agent.target.Params().Data)
	if !l.Step() {
		t.Fatal("nothing was learnt")
	}
	for name, want := range map[string]float64{
		"loss": 1, "td_error_mean": 1, "q_mean": 0, "target_mean": 1, "replay_size": 64, "reward_scale": 1,
		"learning_rate": 1e-12,
		"n_updates":     64/4 + 1, // at steps 0, 4, …, 64, all caught up with by one call
	} {
		if got := l.Stat(name); math.Abs(got-want) > 1e-5 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, s := range l.Stats {
		if s.Name == "beta" {
			t.Error("beta is reported without prioritised replay")
		}
	}
}

// Scaled rewards make learning independent of their unit.
func TestRewardScaleCancelsTheUnit(t *testing.T) {
	for _, unit := range []float64{1.0 / 1024, 4096} {
		cfg := small()
		cfg.RewardScale = true
		l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, cfg, 2, 5000)
		l.Reward = unit
		l.Train()
		if got := agenttest.Evaluate(t, "ProbeContext-v1", l.Agent.Greedy(), 100); got != 1 {
			t.Errorf("unit %v: greedy play returns %v, want 1", unit, got)
		}
		if s := l.Stat("reward_scale") / unit; s < 0.1 || s > 1.1 {
			t.Errorf("unit %v: the scale is %v units", unit, s)
		}
	}
}

func TestNewRefusesWhatItCannotDo(t *testing.T) {
	agenttest.RefusesSpecs(t, "agent", func(s env.Spec) error { _, err := New(DefaultConfig(), s, 4, 1, 1); return err })
	agenttest.RefusesSpecs(t, "policy", func(s env.Spec) error {
		_, err := NewPolicy(DefaultConfig(), s, strings.NewReader(""))
		return err
	})
	good := agenttest.Plain()
	if _, err := New(DefaultConfig(), good, 0, 1, 1); err == nil {
		t.Error("no rows: no error")
	}
	bad := Config{Gamma: math.NaN(), LR: -1, Beta: 2, LearningStarts: -1, Tau: 0, EpsStart: -1, TargetEvery: -1,
		GradientSteps: -2, Network: DefaultConfig().Network}
	bad.Network.Activation = "sine"
	keys := map[string]bool{}
	for _, f := range fault.All(bad.Validate()) {
		keys[f.Key] = true
	}
	for _, k := range []string{"n_step", "gamma", "reward_factor", "buffer", "priority.eps", "beta", "lr", "adam_eps",
		"batch", "shards",
		"learning_starts", "train_every", "gradient_steps", "target_every", "tau", "eps_start", "network.activation"} {
		if !keys[k] {
			t.Errorf("no fault named %s in %v", k, keys)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}
