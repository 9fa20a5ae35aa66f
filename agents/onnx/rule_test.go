package onnx

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/nets/onnx"
)

// played returns the actions of a model by a rule, and the rule that it follows.
func played(t *testing.T, m *onnx.Model, s env.Spec, r agents.Rule, obs []float32, mask []bool) ([]int32, agents.Rule) {
	t.Helper()
	p, err := NewContext(t.Context(), m, s, r)
	if err != nil {
		t.Fatal(err)
	}
	n := len(obs) / s.ObsLen()
	b, a := env.NewBatch(s, n), env.NewActions(s, n)
	copy(b.Obs, obs)
	copy(b.Mask, mask)
	if err := p.Act(t.Context(), b, a, []*rand.Rand{rng.Stream(1, "test")}[:n]); err != nil {
		t.Fatal(err)
	}
	return a.Disc, p.Rule()
}

// The last three numbers of an observation are what a model weighs: 0.3, 0.25 and 0.45 to wait, as logits.
func TestModelsAreChosenFromByTheRuleWhereTheyWeigh(t *testing.T) {
	s := spec()
	whole := input("x", onnx.Float32, -1, 5)
	of := func(name string) []onnx.Node { return columns(name, "x", 2, 5) }
	index := func(name string) onnx.Node { return argMax("action", name) }
	softmax := node("Softmax", "p", "logits")
	for _, c := range []struct {
		name string
		out  []string
		add  []onnx.Node
		from string // the output that is cut from the observation
		// what each rule amounts to, and the actions by share and argmax
		share, argMax   agents.Rule
		shared, largest int32
	}{
		{"logits", []string{"logits"}, nil, "logits", agents.ByShare, agents.ByArgMax, 0, 2},
		{"logits next to an action", []string{"action", "logits"}, []onnx.Node{index("logits")}, "logits", agents.ByShare,
			agents.ByArgMax, 0, 2},
		{"probabilities by their name", []string{"probs"}, []onnx.Node{node("Softmax", "probs", "logits")}, "logits",
			agents.ByShare, agents.ByArgMax, 0, 2},
		{"probabilities by their operator", []string{"p"}, []onnx.Node{softmax}, "logits", agents.ByShare, agents.ByArgMax,
			0, 2},
		{"logits by their operator", []string{"y"}, []onnx.Node{node("LogSoftmax", "p", "logits"),
			node("Identity", "y", "p")}, "logits", agents.ByShare, agents.ByArgMax, 0, 2},
		{"values", []string{"q"}, nil, "q", agents.ByArgMax, agents.ByArgMax, 2, 2},
		{"numbers without a meaning", []string{"y"}, nil, "y", agents.ByArgMax, agents.ByArgMax, 2, 2},
		{"values next to an action", []string{"q", "action"}, []onnx.Node{index("q")}, "q", agents.AsGiven, agents.AsGiven,
			2, 2},
		{"an action", []string{"action"}, []onnx.Node{index("logits")}, "logits", agents.AsGiven, agents.AsGiven, 2, 2},
		{"logits of something else", []string{"logits", "action"}, []onnx.Node{index("y"), node("Relu", "logits", "x")}, "y",
			agents.AsGiven, agents.AsGiven, 2, 2},
	} {
		m := model([]onnx.Value{whole}, c.out, append(of(c.from), c.add...)...)
		obs, all := []float32{0, 0, -1.204, -1.386, -0.799}, []bool{true, true, true}
		for _, r := range []struct {
			rule, follows agents.Rule
			want          int32
		}{{"", c.share, c.shared}, {agents.ByShare, c.share, c.shared}, {agents.ByArgMax, c.argMax, c.largest}} {
			got, follows := played(t, m, s, r.rule, obs, all)
			if got[0] != r.want || follows != r.follows {
				t.Errorf("%s by %q: action %d by %q, want %d by %q", c.name, r.rule, got[0], follows, r.want, r.follows)
			}
		}
		// The wait is illegal, and an action that is illegal becomes the first legal one.
		want := int32(1)
		if got, _ := played(t, m, s, "", []float32{0, 0, -3, -2, 0}, []bool{true, true, false}); c.share == agents.AsGiven {
			want = 0
			if got[0] != want {
				t.Errorf("%s with a mask: action %d, want %d", c.name, got[0], want)
			}
		} else if got[0] != want {
			t.Errorf("%s with a mask: action %d, want %d", c.name, got[0], want)
		}
	}
}

// A model as it was played before there were rules: its own action where it gives one, else the largest number.
func TestModelsAsTheyAreGiven(t *testing.T) {
	s := spec()
	whole := input("x", onnx.Float32, -1, 5)
	logits := columns("logits", "x", 2, 5)
	both := model([]onnx.Value{whole}, []string{"logits", "action"},
		append(slices.Clone(logits), argMax("action", "logits"))...)
	obs, mask := []float32{0, 0, 1, 3, 2}, []bool{true, false, true}
	if got, r := played(t, both, s, agents.AsGiven, obs, mask); got[0] != 2 || r != agents.AsGiven {
		t.Errorf("action %d by %q, want the wait in place of the illegal action", got[0], r)
	}
	alone := model([]onnx.Value{whole}, []string{"logits"}, logits...)
	if got, r := played(t, alone, s, agents.AsGiven, []float32{0, 0, 1, 1, 1.2}, []bool{true, true, true}); got[0] != 2 ||
		r != agents.ByArgMax {
		t.Errorf("action %d by %q, want the largest", got[0], r)
	}
}

// A model of two factors has no action that does nothing.
func TestFactorsHaveNoShares(t *testing.T) {
	s := two()
	s.NoOp = 1
	m := model([]onnx.Value{input("obs", onnx.Float32, -1, 5)}, []string{"logits"}, node("Identity", "logits", "obs"))
	got, _ := played(t, m, s, agents.ByShare, []float32{0, .1, 0, .1, 0}, []bool{true, true, true, true, true})
	if !slices.Equal(got, []int32{1, 1}) {
		t.Errorf("%v, want [1 1]", got)
	}
}

func TestModelsDrawFromTheirStreams(t *testing.T) {
	seed := testseed.Or(45)
	t.Logf("seed %d", seed)
	s := spec()
	m := model([]onnx.Value{input("x", onnx.Float32, -1, 5)}, []string{"logits"}, columns("logits", "x", 2, 5)...)
	p, err := NewContext(t.Context(), m, s, agents.BySample)
	if err != nil || p.Rule() != agents.BySample {
		t.Fatal(p.Rule(), err)
	}
	const n = 70 // more than the executor computes at a time
	b, a := env.NewBatch(s, n), env.NewActions(s, n)
	r := rng.Stream(seed, "test/numbers")
	for i := range b.Obs {
		b.Obs[i] = float32(r.NormFloat64())
	}
	for i := range b.Mask {
		b.Mask[i] = i%3 == 2 || r.IntN(2) == 0
	}
	streams := func() (src []*rand.Rand) {
		for i := range n {
			src = append(src, rng.Stream(seed+uint64(i), "test/draws"))
		}
		return src
	}
	if err := p.Act(t.Context(), b, a, streams()); err != nil {
		t.Fatal(err)
	}
	for i, src := range streams() {
		x := b.Obs[5*i+2 : 5*i+5]
		if want := agents.Choose(agents.BySample, agents.Logits, x, b.Mask[3*i:3*i+3], 2, src); int(a.Disc[i]) != want {
			t.Errorf("row %d: action %d, want %d", i, a.Disc[i], want)
		}
	}
	err = p.Act(t.Context(), b, a, nil)
	if want := "70 rows that draw from 0 streams"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without streams: %v", err)
	}
}

func TestNumbersThatAreNoProbabilitiesAreNamed(t *testing.T) {
	s, all := spec(), []bool{true, true, true}
	m := model([]onnx.Value{input("x", onnx.Float32, -1, 5)}, []string{"probs"}, columns("probs", "x", 2, 5)...)
	p, err := NewContext(t.Context(), m, s, "")
	if err != nil {
		t.Fatal(err)
	}
	b := &env.Batch{N: 1, Obs: []float32{0, 0, 0.5, -0.1, 0.6}, Mask: all, Kind: []env.Kind{env.Mid}}
	const want = `row 0: a number of the output "probs" is no probability`
	if err := p.Act(context.Background(), b, env.NewActions(s, 1), nil); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestNoRuleAllocates(t *testing.T) {
	s := spec()
	m := model([]onnx.Value{input("x", onnx.Float32, -1, 5)}, []string{"logits"}, columns("logits", "x", 2, 5)...)
	src := make([]*rand.Rand, 70)
	for i := range src {
		src[i] = rng.Stream(uint64(i), "test")
	}
	for _, r := range agents.Rules() {
		p, err := NewContext(t.Context(), m, s, r)
		if err != nil {
			t.Fatal(err)
		}
		b, a := env.NewBatch(s, 70), env.NewActions(s, 70)
		for i := range b.Mask {
			b.Mask[i] = true
		}
		if n := testing.AllocsPerRun(10, func() {
			if err := p.Act(context.Background(), b, a, src); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("Act by %s allocates %v times", r, n)
		}
	}
}
