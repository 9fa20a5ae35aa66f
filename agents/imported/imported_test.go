package imported

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/nets/onnx"
)

// spec is an environment of two fields and three actions, of which the last does nothing.
func spec() env.Spec {
	return env.Spec{
		ID:     "Three-v1",
		Obs:    []env.Field{{Name: "a", Shape: []int{2}, Low: -9, High: 9}, {Name: "b", Shape: []int{1, 3}, Low: 0, High: 200}},
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
	last := node("Slice", "logits", "x", "two", "five", "one")
	constant := func(name string, v int64) onnx.Node {
		n := node("Constant", name)
		n.Attributes = []onnx.Attribute{{Name: "value_ints", Kind: onnx.KindInts, Ints: []int64{v}}}
		return n
	}
	slice := []onnx.Node{constant("two", 2), constant("five", 5), constant("one", 1), last}
	choice := append(slices.Clone(slice), argMax("action", "logits"))
	for name, c := range map[string]struct {
		m    *onnx.Model
		want []int32
	}{
		// Scores 5 7 6 with the middle one illegal, and 1 2 3 where it alone is legal.
		"scores of a flat observation": {model([]onnx.Value{whole}, []string{"logits"}, slice...), []int32{2, 1}},
		"a field by its name":          {model([]onnx.Value{b}, []string{"q"}, node("Identity", "q", "obs.b")), []int32{2, 1}},
		"the only output":              {model([]onnx.Value{b, a}, []string{"strange"}, node("Relu", "strange", "obs.b")), []int32{2, 1}},
		// Its own actions are 1 and 2, both illegal: doing nothing is 2, which is illegal in the second row too.
		"an action that may be illegal": {model([]onnx.Value{whole}, []string{"logits", "action"}, choice...), []int32{2, 1}},
		"a mask of its own": {model([]onnx.Value{b, input("action_mask", onnx.Bool, -1, 3)}, []string{"action"},
			func() onnx.Node {
				n := node("Cast", "m", "action_mask")
				n.Attributes = []onnx.Attribute{{Name: "to", Kind: onnx.KindInt, Int: 1}}
				return n
			}(), node("Mul", "masked", "m", "obs.b"), argMax("action", "masked")), []int32{2, 1}},
		"made for a single row": {model([]onnx.Value{input("x", onnx.Float32, 1, 5)}, []string{"logits"}, slice...), []int32{2, 1}},
		"made for more rows":    {model([]onnx.Value{input("x", onnx.Float32, 7, 5)}, []string{"logits"}, slice...), []int32{2, 1}},
	} {
		if got := act(t, c.m, s, obs, mask).Disc; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestNumbersAreCutToTheirBounds(t *testing.T) {
	s := env.Spec{ID: "Box-v1", Obs: []env.Field{{Name: "o", Shape: []int{2}}}, Action: env.ActionSpec{Low: []float32{-1, 0}, High: []float32{1, 5}}, NoOp: -1}
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
		"width":        {model([]onnx.Value{input("x", onnx.Float32, -1, 4)}, []string{"q"}, node("Relu", "q", "x")), "input x float32 [N 4] has 4 numbers a row, and an observation of Three-v1 has 5"},
		"field":        {model([]onnx.Value{input("a", onnx.Float32, -1, 3)}, []string{"q"}, node("Relu", "q", "a")), "input a float32 [N 3] does not fit the field a of Three-v1, whose shape is [2]"},
		"mask":         {model([]onnx.Value{whole, input("action_mask", onnx.Bool, -1, 2)}, []string{"q"}, node("Relu", "q", "x")), "input action_mask bool [N 2] has 2 numbers a row, and Three-v1 has 3 discrete actions"},
		"unknown":      {model([]onnx.Value{input("a", onnx.Float32, -1, 2), input("h", onnx.Float32, -1, 8)}, []string{"q"}, node("Relu", "q", "a")), "the inputs a float32 [N 2], h float32 [N 8] are neither one observation nor its fields (a, b) and action_mask"},
		"scores":       {model([]onnx.Value{whole}, []string{"q"}, node("Relu", "q", "x")), `output "q" of q is float32 [1 5] for 1 rows, and Three-v1 wants float32: 3 actions`},
		"several":      {model([]onnx.Value{whole}, []string{"u", "v"}, node("Relu", "u", "x"), node("Relu", "v", "x")), "none of the outputs u float32, v float32 is called action, logits or q"},
		"float action": {model([]onnx.Value{whole}, []string{"action"}, node("Relu", "action", "x")), `output "action" of action is float32 [1 5] for 1 rows, and Three-v1 wants int64: an index for each of 1 factors`},
		"bytes":        {model([]onnx.Value{input("x", onnx.Uint8, -1, 5)}, []string{"q"}, node("Identity", "q", "x")), "has a type that does not hold the field a, whose numbers are from -9 to 9"},
		"operator":     {model([]onnx.Value{whole}, []string{"q"}, node("NonZero", "q", "x")), "this operator is not known"},
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

// The hash is what docs/onnx.md says, so that other programs can compute it.
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
