package ppo

import (
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/agents"
	"clustergym/env"
)

// Scores are the probabilities from which a sampling policy draws; what is not legal has none, and asking changes
// nothing.
func TestScoresAreTheProbabilities(t *testing.T) {
	s := env.Spec{ID: "Toy-v1", Obs: []env.Field{{Name: "x", Shape: []int{3}, Low: -1, High: 1}},
		Action: env.ActionSpec{Sizes: []int{4}}, NoOp: 3}
	cfg := DefaultConfig()
	cfg.Network.Hidden = []int{8}
	net, err := newNet(cfg, s, 5)
	if err != nil {
		t.Fatal(err)
	}
	p := newPolicy(cfg, net, s, newObsScale(cfg, s), 1)
	src := rand.New(rand.NewPCG(1, 2))
	const n = 5
	b, act, again := env.NewBatch(s, n), env.NewActions(s, n), env.NewActions(s, n)
	for i := range b.Obs {
		b.Obs[i] = float32(src.NormFloat64())
	}
	for i := range b.Mask {
		b.Mask[i] = src.IntN(3) > 0 || i%4 == 3
	}
	for i := range b.Kind {
		b.Kind[i] = env.Mid
	}
	if err := p.Act(t.Context(), b, act, nil); err != nil {
		t.Fatal(err)
	}
	scores := make([]float32, n*4)
	kind, err := p.Scores(t.Context(), b, scores)
	if err != nil || kind != agents.Probabilities {
		t.Fatalf("%q, error %v", kind, err)
	}
	for i := range n {
		sum := 0.0
		for k, v := range scores[4*i : 4*i+4] {
			if sum += float64(v); (v > 0) != b.Mask[4*i+k] {
				t.Errorf("row %d: action %d has score %v, legal %v", i, k, v, b.Mask[4*i+k])
			}
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Errorf("row %d: the scores sum to %v", i, sum)
		}
		want := agents.Choose(agents.ByShare, agents.Logits, p.act.head[4*i:4*i+4], b.Mask[4*i:4*i+4], s.NoOp, nil)
		if int(act.Disc[i]) != want {
			t.Errorf("row %d: action %d, want %d", i, act.Disc[i], want)
		}
	}
	if err := p.Act(t.Context(), b, again, nil); err != nil {
		t.Fatal(err)
	}
	for i := range act.Disc {
		if act.Disc[i] != again.Disc[i] {
			t.Errorf("row %d: asking for scores changes the action", i)
		}
	}
	if _, err := p.Scores(t.Context(), b, scores[:3]); err == nil {
		t.Error("too little room is no error")
	}
}
