package onnx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/nets/onnx"
)

// spec is an environment of two fields and three actions, of which the last does nothing.
func spec() env.Spec {
	return env.Spec{
		ID: "Three-v1",
		Obs: []env.Field{{Name: "a", Shape: []int{2}, Low: -9, High: 9},
			{Name: "b", Shape: []int{1, 3}, Low: 0, High: 200}},
		Action: env.ActionSpec{Sizes: []int{3}}, NoOp: 2,
	}
}

func input(name string, typ onnx.Type, shape ...int) onnx.Value {
	return onnx.Value{Name: name, Type: typ, Known: true, Shape: shape}
}

func node(op, out string, in ...string) onnx.Node {
	return onnx.Node{Op: op, Inputs: in, Outputs: []string{out}}
}

func argMax(out, in string) onnx.Node {
	n := node("ArgMax", out, in)
	n.Attributes = []onnx.Attribute{{Name: "axis", Kind: onnx.KindInt, Int: 1}, {Name: "keepdims", Kind: onnx.KindInt}}
	return n
}

func model(in []onnx.Value, out []string, nodes ...onnx.Node) *onnx.Model {
	m := &onnx.Model{IR: 8, Opset: 17}
	m.Graph.Inputs, m.Graph.Nodes = in, nodes
	for _, name := range out {
		m.Graph.Outputs = append(m.Graph.Outputs, onnx.Value{Name: name, Type: onnx.Float32})
	}
	return m
}

// act plays a model on rows of an observation and a mask.
func act(t *testing.T, m *onnx.Model, s env.Spec, obs []float32, mask []bool) *env.Actions {
	t.Helper()
	p, err := New(m, s)
	if err != nil {
		t.Fatal(err)
	}
	n := len(obs) / s.ObsLen()
	b, a := env.NewBatch(s, n), env.NewActions(s, n)
	copy(b.Obs, obs)
	copy(b.Mask, mask)
	for i := range b.Kind {
		b.Kind[i] = env.Mid
	}
	if err := p.Act(context.Background(), b, a, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestInputsAndOutputsAreFoundByHand(t *testing.T) {
	s := spec()
	obs := []float32{0, 0, 5, 7, 6, 0, 0, 1, 2, 3}
	mask := []bool{true, false, true, false, true, false}
	whole, a, b := input("x", onnx.Float32, -1, 5), input("a", onnx.Float32, -1, 2), input("obs.b", onnx.Float32, -1, 3)
	slice := columns("logits", "x", 2, 5)
	choice := append(slices.Clone(slice), argMax("action", "logits"))
	for name, c := range map[string]struct {
		m    *onnx.Model
		want []int32
	}{
		// Scores 5 7 6 with the middle one illegal, and 1 2 3 where it alone is legal.
		"scores of a flat observation": {model([]onnx.Value{whole}, []string{"logits"}, slice...), []int32{2, 1}},
		"a field by its name": {model([]onnx.Value{b}, []string{"q"}, node("Identity", "q", "obs.b")),
			[]int32{2, 1}},
		"the only output": {model([]onnx.Value{b, a}, []string{"strange"}, node("Relu", "strange", "obs.b")),
			[]int32{2, 1}},
		// Its own actions are 1 and 2, both illegal: doing nothing is 2, which is illegal in the second row too.
		"an action that may be illegal": {model([]onnx.Value{whole}, []string{"logits", "action"}, choice...), []int32{2, 1}},
		"a mask of its own": {model([]onnx.Value{b, input("action_mask", onnx.Bool, -1, 3)}, []string{"action"},
			cast("m", "action_mask",
				onnx.Float32), node("Mul", "masked", "m", "obs.b"), argMax("action", "masked")), []int32{2, 1}},
		"made for a single row": {model([]onnx.Value{input("x", onnx.Float32, 1, 5)}, []string{"logits"}, slice...),
			[]int32{2, 1}},
		"made for more rows": {model([]onnx.Value{input("x", onnx.Float32, 7, 5)}, []string{"logits"}, slice...),
			[]int32{2, 1}},
	} {
		if got := act(t, c.m, s, obs, mask).Disc; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// two is an environment of two factors, of 2 and 3 actions, over an observation that has a number for each.
func two() env.Spec {
	return env.Spec{ID: "Two-v1", Obs: []env.Field{{Name: "o", Shape: []int{5}}},
		Action: env.ActionSpec{Sizes: []int{2, 3}}, NoOp: -1}
}

func cast(out, in string, to onnx.Type) onnx.Node {
	n := node("Cast", out, in)
	n.Attributes = []onnx.Attribute{{Name: "to", Kind: onnx.KindInt, Int: int64(to)}}
	return n
}

// columns is the node that keeps the columns [from, to) of a matrix, with its constants.
func columns(out, in string, from, to int64) []onnx.Node {
	var nodes []onnx.Node
	names := []string{in}
	for i, x := range []int64{from, to, 1} {
		name := out + string(rune('a'+i))
		n := node("Constant", name)
		n.Attributes = []onnx.Attribute{{Name: "value_ints", Kind: onnx.KindInts, Ints: []int64{x}}}
		nodes, names = append(nodes, n), append(names, name)
	}
	return append(nodes, node("Slice", out, names...))
}

func TestEachFactorIsChosenAlone(t *testing.T) {
	obs := input("obs", onnx.Float32, -1, 5)
	scores := model([]onnx.Value{obs}, []string{"logits"}, node("Identity", "logits", "obs"))
	mask := []bool{true, false, false, true, true}
	if got := act(t, scores, two(), []float32{1, 5, 9, 2, 3}, mask).Disc; !slices.Equal(got, []int32{0, 2}) {
		t.Errorf("by scores %v, want [0 2]", got)
	}
	indices := model([]onnx.Value{obs}, []string{"action"},
		append(columns("two", "obs", 0, 2), cast("action", "two", onnx.Int64))...)
	for _, c := range []struct {
		obs  []float32
		want []int32
		// the second is illegal in both
	}{{[]float32{0, 1, 0, 0, 0}, []int32{0, 1}}, {[]float32{1, 0, 0, 0, 0}, []int32{0, 1}}} {
		if got := act(t, indices, two(), c.obs, mask).Disc; !slices.Equal(got, c.want) {
			t.Errorf("by the indices %v: %v, want %v", c.obs[:2], got, c.want)
		}
	}
}

func TestActionsThatCannotBeTakenAreNamed(t *testing.T) {
	nan, all, none := float32(math.NaN()), []bool{true, true, true, true, true}, make([]bool, 5)
	obs := input("obs", onnx.Float32, -1, 5)
	scores := model([]onnx.Value{obs}, []string{"logits"}, node("Identity", "logits", "obs"))
	indices := model([]onnx.Value{obs}, []string{"action"},
		append(columns("two", "obs", 0, 2), cast("action", "two", onnx.Int64))...)
	for _, c := range []struct {
		m    *onnx.Model
		obs  []float32
		mask []bool
		kind env.Kind
		want string
	}{
		{scores, []float32{0, 0, 0, nan, 0}, all, env.Mid, `row 0: a number of the output "logits" is NaN`},
		{scores, []float32{0, nan, 0, 0, 0}, []bool{true, false, true, true, true}, env.Mid, ""}, // it is illegal
		{scores, make([]float32, 5), none, env.Mid, "row 0 has no legal action in factor 0"},
		{scores, make([]float32, 5), none, env.Terminated, ""}, // the action is ignored
		{indices, []float32{0, 3, 0, 0, 0}, all, env.Mid, `row 0: the output "action" chooses action 3 of 3`},
		{indices, []float32{-1, 0, 0, 0, 0}, all, env.Mid, `row 0: the output "action" chooses action -1 of 2`},
		{indices, make([]float32, 5), none, env.Mid, "row 0 has no legal action in factor 0"},
	} {
		p, err := New(c.m, two())
		if err != nil {
			t.Fatal(err)
		}
		b := &env.Batch{N: 1, Obs: c.obs, Mask: c.mask, Kind: []env.Kind{c.kind}}
		err = p.Act(context.Background(), b, env.NewActions(two(), 1), nil)
		if got := fmt.Sprint(err); err == nil && c.want != "" || err != nil && got != c.want {
			t.Errorf("%v, legal %v: %v, want %q", c.obs, c.mask, err, c.want)
		}
	}
	box := env.Spec{ID: "Box-v1", Obs: []env.Field{{Name: "o", Shape: []int{1}}},
		Action: env.ActionSpec{Low: []float32{-1}, High: []float32{1}}, NoOp: -1}
	p, err := New(model([]onnx.Value{input("obs", onnx.Float32, -1, 1)}, []string{"action"}, node("Neg", "action", "obs")),
		box)
	if err != nil {
		t.Fatal(err)
	}
	b := &env.Batch{N: 1, Obs: []float32{nan}, Kind: []env.Kind{env.Mid}}
	if err := p.Act(context.Background(), b, env.NewActions(box, 1), nil); fmt.Sprint(err) !=
		"row 0: number 0 of the action is NaN" {
		t.Error(err)
	}
}

func TestNumbersAreCutToTheirBounds(t *testing.T) {
	s := env.Spec{ID: "Box-v1", Obs: []env.Field{{Name: "o", Shape: []int{2}}},
		Action: env.ActionSpec{Low: []float32{-1, 0}, High: []float32{1, 5}}, NoOp: -1}
	m := model([]onnx.Value{input("obs", onnx.Float32, -1, 2)}, []string{"action"}, node("Neg", "action", "obs"))
	if got, want := act(t, m, s, []float32{3, -2, 0.5, 1}, nil).Cont, []float32{-1, 2, -0.5, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWhatDoesNotFitIsOneSentence(t *testing.T) {
	whole := input("x", onnx.Float32, -1, 5)
	for name, c := range map[string]struct {
		m    *onnx.Model
		want string
	}{
		"width": {model([]onnx.Value{input("x", onnx.Float32, -1, 4)}, []string{"q"}, node("Relu", "q", "x")),
			"input x float32 [N 4] has 4 numbers a row, and an observation of Three-v1 has 5"},
		"field": {model([]onnx.Value{input("a", onnx.Float32, -1, 3)}, []string{"q"}, node("Relu", "q", "a")),
			"input a float32 [N 3] does not fit the field a of Three-v1, whose shape is [2]"},
		"mask": {model([]onnx.Value{whole, input("action_mask", onnx.Bool, -1, 2)}, []string{"q"},
			node("Relu", "q", "x")), "input action_mask bool [N 2] has 2 numbers a row, and Three-v1 has 3 discrete actions"},
		"unknown": {model([]onnx.Value{input("a", onnx.Float32, -1, 2), input("h", onnx.Float32, -1, 8)}, []string{"q"},
			node("Relu", "q",
				"a")),
			"the inputs a float32 [N 2], h float32 [N 8] are neither one observation nor its fields (a, b) and action_mask"},
		"scores": {model([]onnx.Value{whole}, []string{"q"}, node("Relu", "q", "x")),
			"output q float32 [1 5], want float32 [1 3]: a score for each discrete action of Three-v1"},
		"several": {model([]onnx.Value{whole}, []string{"u", "v"}, node("Relu", "u", "x"), node("Relu", "v", "x")),
			"none of the outputs u float32, v float32 is called action, logits, probabilities or q"},
		"float action": {model([]onnx.Value{whole}, []string{"action"}, node("Relu", "action", "x")),
			"output action float32 [1 5], want int64 [1 1]: the index of each factor of Three-v1"},
		"bytes": {model([]onnx.Value{input("x", onnx.Uint8, -1, 5)}, []string{"q"}, node("Identity", "q", "x")),
			"input x uint8 [N 5] is of type uint8, want float32, as observations are"},
		"operator": {model([]onnx.Value{whole}, []string{"q"}, node("NonZero", "q", "x")), "this operator is not known"},
		"environment": {func() *onnx.Model {
			m := model([]onnx.Value{whole}, []string{"q"})
			m.Metadata = []onnx.Property{{Key: KeyEnv, Value: "Four-v1"}}
			return m
		}(), "the model is for Four-v1, and this is Three-v1"},
		"specification": {func() *onnx.Model {
			m := model([]onnx.Value{whole}, []string{"q"})
			m.Metadata = []onnx.Property{{Key: KeySpec, Value: strings.Repeat("0", 64)}}
			return m
		}(), "the model is for Three-v1 with other fields or actions"},
	} {
		_, err := New(c.m, spec())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestActDoesNotAllocate(t *testing.T) {
	s := spec()
	p, err := New(model([]onnx.Value{input("obs.b", onnx.Float32, -1, 3)}, []string{"q"}, node("Relu", "q", "obs.b")), s)
	if err != nil {
		t.Fatal(err)
	}
	b, a := env.NewBatch(s, 70), env.NewActions(s, 70)
	for i := range b.Mask {
		b.Mask[i] = true
	}
	if n := testing.AllocsPerRun(10, func() {
		if err := p.Act(context.Background(), b, a, nil); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Act allocates %v times", n)
	}
}

// The hash is what docs/reference/onnx.md says, so that other programs can compute it.
func TestTheHashOfASpecificationByHand(t *testing.T) {
	const text = `{"id":"Three-v1","obs":[{"name":"a","shape":[2]},{"name":"b","shape":[1,3]}],"sizes":[3],"numbers":0}`
	if got, want := SpecHash(spec()), sum(text); got != want {
		t.Errorf("%s, want the hash of %s, %s", got, text, want)
	}
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func New(m *onnx.Model, s env.Spec) (*Policy, error) {
	return NewContext(context.Background(), m, s, "")
}
