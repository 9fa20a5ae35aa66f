package ppo

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/rng"
)

// Ten like jobs share what the policy gives to starting one; a wait that is likelier than each of them alone must
// not win against all of them together.
func TestGreedyWaitsOnlyWhereWaitingIsLikelierThanActing(t *testing.T) {
	for _, c := range []struct {
		name   string
		noop   int
		logits []float32
		mask   []bool
		want   int32
	}{
		{"a split vote", 3, []float32{1, 1.1, 1, 1.5}, []bool{true, true, true, true}, 1},
		{"a clear wait", 3, []float32{1, 1.1, 1, 4}, []bool{true, true, true, true}, 3},
		{"two actions are compared as they are", 3, []float32{1, 0, 0, 1.5}, []bool{true, false, false, true}, 3},
		{"the wait is masked", 3, []float32{1, 0, 2, 9}, []bool{true, true, false, false}, 0},
		{"only the wait is legal", 3, []float32{1, 0, 2, -9}, []bool{false, false, false, true}, 3},
		{"no action does nothing", -1, []float32{1, 1.1, 1, 1.5}, []bool{true, true, true, true}, 3},
	} {
		s := env.Spec{ID: "test", Action: env.ActionSpec{Sizes: []int{4}}, NoOp: c.noop}
		a := newActor(DefaultConfig(), s, nil, nil)
		b := env.NewBatch(s, 1)
		copy(b.Mask, c.mask)
		act := env.NewActions(s, 1)
		if err := a.fit(b, act, nil, false); err != nil {
			t.Fatal(err)
		}
		copy(a.head, c.logits)
		if err := a.best(agents.ByShare, b, 0, act); err != nil || act.Disc[0] != c.want {
			t.Errorf("%s: got action %d (%v), want %d", c.name, act.Disc[0], err, c.want)
		}
	}
}

// A policy follows the rule that it is given: the largest logit, or the draws of Sampling.
func TestAPolicyChoosesByItsRule(t *testing.T) {
	const n = 200
	l := newLoop(t, "InvalidAction-v1", 4, 1, vec.SameStep, DefaultConfig(), 5, 100)
	p, s := l.Agent.Greedy().(*Policy), l.Vec.Spec()
	src, b := rng.Stream(5, "test"), env.NewBatch(s, n)
	for i := range b.Obs {
		b.Obs[i] = float32(3 * src.NormFloat64())
	}
	for i := range b.Mask {
		b.Mask[i] = i%s.MaskLen() == 1 || src.IntN(2) == 0
	}
	p.act.noop = 1 // this environment has none
	act := func(p *Policy) []int32 {
		dst, streams := env.NewActions(s, n), make([]*rand.Rand, n)
		for i := range streams {
			streams[i] = rng.Stream(uint64(i), "test")
		}
		if err := p.Act(t.Context(), b, dst, streams); err != nil {
			t.Fatal(err)
		}
		return dst.Disc
	}
	usual, drawn := act(p), act(p.Sampling())
	for _, c := range []struct {
		asked, want agents.Rule
	}{{agents.BySample, agents.BySample}, {agents.ByArgMax, agents.ByArgMax}, {agents.ByShare, agents.ByShare},
		{"", agents.ByShare}} {
		if got := p.By(c.asked); got != c.want {
			t.Errorf("%q amounts to %q, want %q", c.asked, got, c.want)
		}
		got := act(p)
		switch {
		case c.want == agents.BySample && !slices.Equal(got, drawn):
			t.Error("sample does not draw as Sampling does")
		case c.want == agents.ByShare && !slices.Equal(got, usual):
			t.Error("share is not what a new policy does")
		case c.want == agents.ByArgMax:
			for i, k := range got {
				at := i * s.MaskLen()
				if want := agents.Best(p.act.head[at:at+s.MaskLen()], b.Mask[at:at+s.MaskLen()]); int(k) != want {
					t.Errorf("row %d: action %d, want %d", i, k, want)
				}
			}
		}
	}
	one := env.NewBatch(s, 1)
	copy(one.Mask, b.Mask)
	dst, streams := env.NewActions(s, 1), []*rand.Rand{src}
	for _, r := range agents.Rules() {
		p.By(r)
		if k := testing.AllocsPerRun(20, func() {
			if err := p.Act(context.Background(), one, dst, streams); err != nil {
				t.Fatal(err)
			}
		}); k != 0 {
			t.Errorf("Act by %s allocates %v times", r, k)
		}
	}
}
