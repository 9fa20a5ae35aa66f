package ppo

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
)

// groupSpec has one number as observation and two actions.
func groupSpec() env.Spec {
	return env.Spec{ID: "Test", Obs: []env.Field{{Name: "o", Shape: []int{1}}}, Action: env.ActionSpec{Sizes: []int{2}},
		NoOp: -1, Tau: time.Second}
}

// groupStep is one step of a row: reward, seconds, and how it ends.
type groupStep struct {
	reward, seconds float64
	kind            env.Kind
}

// fed is an agent whose rollout holds the steps [step][row].
func fed(t *testing.T, cfg Config, rows int, steps [][]groupStep) *Agent {
	t.Helper()
	s := groupSpec()
	cfg.Steps = len(steps)
	a, err := New(cfg, s, rows, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	feed(t, a, s, rows, steps)
	return a
}

func feed(t *testing.T, a *Agent, s env.Spec, rows int, steps [][]groupStep) {
	t.Helper()
	b, next, act := env.NewBatch(s, rows), env.NewBatch(s, rows), env.NewActions(s, rows)
	for i := range b.Mask {
		b.Mask[i] = true
	}
	src := streams(rows)
	for _, row := range steps {
		for i, x := range row {
			next.Reward[i], next.Elapsed[i], next.Kind[i] = x.reward, time.Duration(x.seconds*1e9), x.kind
		}
		if err := a.Act(t.Context(), b, act, src); err != nil {
			t.Fatal(err)
		}
		if err := a.Observe(b, act, next); err != nil {
			t.Fatal(err)
		}
	}
}

// Two rows of a group, gamma 1, lambda 1; the critic says 0 everywhere.
//
//	row 0: reward 6 in 0–3 s, 2 in 3–4 s and the end; then 5 in 0–1 s of the next episode
//	row 1: reward 4 in 0–2 s, 1 in 2–4 s, 7 in 4–6 s, which is not the end
//
// Returns: row 0: 8, 2, 5; row 1: 12, 8, 7. The peer's return at row 0's times 0 and 3 is 12 and ½·1 + 7 = 7.5; the
// second episode has no peer. At row 1's times 0 and 2 it is 8 and ⅓·6 + 2 = 4; at 4 row 0 had just ended: 0·2 + 0.
func TestGroupBaselinesByHand(t *testing.T) {
	cfg := small()
	cfg.Gamma, cfg.Lambda, cfg.Baseline, cfg.Group, cfg.Minibatches = 1, 1, ByGroup, 2, 1
	cfg.Network.Hidden = nil
	a := fed(t, cfg, 2, [][]groupStep{
		{{6, 3, env.Mid}, {4, 2, env.Mid}},
		{{2, 1, env.Terminated}, {1, 2, env.Mid}},
		{{5, 1, env.Mid}, {7, 2, env.Mid}},
	})
	zero := func(x []float32) { clear(x) }
	zero(a.roll.Value)
	zero(a.last)
	if err := a.roll.Advantages(a.last, 1, 1); err != nil {
		t.Fatal(err)
	}
	if share := a.baselines(1); share != 5.0/6 {
		t.Errorf("a share of %v of the steps has a peer, want 5 of 6", share)
	}
	for k, want := range []float32{8 - 12, 12 - 8, 2 - 7.5, 8 - 4, 5, 7} {
		if got := a.roll.Advantage[k]; math.Abs(float64(got-want)) > 1e-6 {
			t.Errorf("step %d of row %d: the advantage is %v, want %v", k/2, k%2, got, want)
		}
	}
	// Gamma ½ per second: at 3 s row 1 is half through a step of 2 s with reward 1, discount ¼ and 7 after it.
	a.roll.Discount[3] = 0.25
	a.roll.Return[5] = 7
	if got, ok := a.returnAt(1, 0, 3, 1); !ok || got != 0.5+0.5*7 {
		t.Errorf("discounted, the peer's return is %v %v, want 4", got, ok)
	}
	if _, ok := a.returnAt(1, 0, 6.5, 1); ok {
		t.Error("a time after the rollout has a return")
	}
}

// What rows of a group have in common cancels: with rewards that are a common series of the episode plus a part of the
// row's own, the advantages' spread is that of the own part, wherever rollouts begin and end.
func TestGroupBaselinesCancelWhatIsCommon(t *testing.T) {
	seed := testseed.Or(81)
	t.Logf("seed %d", seed)
	r := rng.Stream(seed, "common")
	const rows, steps = 4, 16
	cfg := small()
	cfg.Gamma, cfg.Lambda, cfg.Baseline, cfg.Group, cfg.Minibatches, cfg.NormAdvantage = 1, 1, ByGroup, rows, 1, false
	series := make([]float64, steps)
	for i := range series {
		series[i] = 100 * r.NormFloat64()
	}
	play := make([][]groupStep, steps)
	for t := range play {
		for range rows {
			kind := env.Mid
			if t == steps-1 {
				kind = env.Terminated
			}
			play[t] = append(play[t], groupStep{series[t] + r.NormFloat64(), 1, kind})
		}
	}
	a := fed(t, cfg, rows, play)
	if err := a.roll.Advantages(a.last, 1, 1); err != nil {
		t.Fatal(err)
	}
	a.baselines(1)
	for k, x := range a.roll.Advantage {
		if math.Abs(float64(x)) > 40 { // own parts sum to a deviation of 4, the common ones to 400
			t.Errorf("step %d: the advantage is %v", k, x)
		}
	}
	if stats, err := a.Learn(t.Context()); err != nil || stats[len(stats)-1].Name != "ppo/group_share" ||
		stats[len(stats)-1].Value != 1 {
		t.Errorf("%v %v", stats, err)
	}
}

func TestGroupsNeedRows(t *testing.T) {
	cfg := small()
	cfg.Baseline = ByGroup
	for _, size := range []int{0, 1, 3} {
		cfg.Group = size
		if _, err := New(cfg, groupSpec(), 4, 1, 1); err == nil {
			t.Errorf("groups of %d of 4 rows were accepted", size)
		}
	}
}

func streams(rows int) []*rand.Rand {
	var src []*rand.Rand
	for i := range rows {
		src = append(src, rng.Stream(uint64(i), "act"))
	}
	return src
}
