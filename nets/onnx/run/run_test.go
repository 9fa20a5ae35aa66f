package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/nets/onnx"
)

// value is an input of a test: whole numbers, or numbers.
type value struct {
	typ   onnx.Type
	shape []int
	f     []float32
	i     []int64
}

func nums(shape []int, f ...float32) value { return value{onnx.Float32, shape, f, nil} }
func ints(shape []int, i ...int64) value   { return value{onnx.Int64, shape, nil, i} }
func bools(shape []int, i ...int64) value  { return value{onnx.Bool, shape, nil, i} }

func (v value) tensor(name string) onnx.Tensor {
	return onnx.Tensor{Name: name, Type: v.typ, Shape: v.shape, Floats: v.f, Ints: v.i}
}

// alone returns a model of one node, whose inputs are called in0, in1, ...; those of fixed are constants.
func alone(op string, set []onnx.Attribute, in []value, fixed ...int) *onnx.Model {
	m := &onnx.Model{IR: 8, Opset: 17}
	n := onnx.Node{Op: op, Name: "it", Outputs: []string{"out"}, Attributes: set}
	for k, v := range in {
		name := fmt.Sprint("in", k)
		if v.typ == 0 {
			n.Inputs = append(n.Inputs, "")
			continue
		}
		n.Inputs = append(n.Inputs, name)
		if slices.Contains(fixed, k) {
			m.Graph.Tensors = append(m.Graph.Tensors, v.tensor(name))
		} else {
			m.Graph.Inputs = append(m.Graph.Inputs, onnx.Value{Name: name, Type: v.typ, Known: true, Shape: v.shape})
		}
	}
	m.Graph.Nodes, m.Graph.Outputs = []onnx.Node{n}, []onnx.Value{{Name: "out"}}
	return m
}

func compute(m *onnx.Model, in []value) (Tensor, error) {
	p, err := New(m)
	if err != nil {
		return Tensor{}, err
	}
	i, err := p.For(max(1, p.Rows()))
	if err != nil {
		return Tensor{}, err
	}
	for k, v := range in {
		if t, ok := i.Input(fmt.Sprint("in", k)); ok {
			copy(t.Floats, v.f)
			copy(t.Ints, v.i)
		}
	}
	err = i.Run()
	out, _ := i.Output("out")
	return out, err
}

func set(name string, x ...int64) onnx.Attribute {
	return onnx.Attribute{Name: name, Kind: onnx.KindInts, Ints: x}
}

func one(name string, x int64) onnx.Attribute {
	return onnx.Attribute{Name: name, Kind: onnx.KindInt, Int: x}
}

func float(name string, x float32) onnx.Attribute {
	return onnx.Attribute{Name: name, Kind: onnx.KindFloat, Float: x}
}

func word(name, x string) onnx.Attribute {
	return onnx.Attribute{Name: name, Kind: onnx.KindString, Text: x}
}

// Every operator, worked by hand from the text of the format.
func TestOperatorsByHand(t *testing.T) {
	inf := float32(math.Inf(1))
	x23 := nums([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	none := value{}
	seen := map[string]bool{}
	for _, c := range []struct {
		op    string
		set   []onnx.Attribute
		in    []value
		fixed []int
		want  value
	}{
		{"Add", nil, []value{x23, nums([]int{3}, 10, 20, 30)}, []int{1}, nums([]int{2, 3}, 11, 22, 33, 14, 25, 36)},
		{"Add", nil, []value{x23, nums([]int{2, 1}, 10, 20)}, nil, nums([]int{2, 3}, 11, 12, 13, 24, 25, 26)},
		{"Add", nil, []value{{onnx.Uint8, []int{1}, nil, []int64{250}}, {onnx.Uint8, []int{1}, nil, []int64{10}}}, nil,
			value{onnx.Uint8, []int{1}, nil, []int64{4}}},
		{"Sub", nil, []value{nums([]int{1, 3}, 1, 2, 3), nums([]int{2, 1}, 1, 2)}, []int{0},
			nums([]int{2, 3}, 0, 1, 2, -1, 0, 1)},
		{"Mul", nil, []value{x23, nums([]int{}, 2)}, []int{1}, nums([]int{2, 3}, 2, 4, 6, 8, 10, 12)},
		{"Div", nil, []value{ints([]int{3}, 7, -7, 1), ints([]int{3}, 2, 2, 0)}, nil, ints([]int{3}, 3, -3, 0)},
		{"Div", nil, []value{nums([]int{2}, 1, 3), nums([]int{2}, 4, 2)}, nil, nums([]int{2}, 0.25, 1.5)},
		{"Pow", nil, []value{nums([]int{2}, 3, 2), nums([]int{2}, 2, -1)}, nil, nums([]int{2}, 9, 0.5)},
		{"Pow", nil, []value{nums([]int{2}, 3, -2), ints([]int{}, 2)}, []int{1}, nums([]int{2}, 9, 4)},
		{"Pow", nil, []value{nums([]int{2}, 3, -2), ints([]int{2}, 2, 3)}, nil, nums([]int{2}, 9, -8)},
		{"Mod", nil, []value{ints([]int{4}, 7, -7, 7, -7), ints([]int{4}, 3, 3, -3, -3)}, nil, ints([]int{4}, 1, 2, -2, -1)},
		{"Mod", []onnx.Attribute{one("fmod", 1)}, []value{nums([]int{2}, 5.5, -5.5), nums([]int{2}, 2, 2)}, nil,
			nums([]int{2}, 1.5, -1.5)},
		{"Max", nil, []value{x23, nums([]int{}, 3), nums([]int{3}, 0, 9, 0)}, []int{1, 2},
			nums([]int{2, 3}, 3, 9, 3, 4, 9, 6)},
		{"Min", nil, []value{x23, nums([]int{}, 3)}, []int{1}, nums([]int{2, 3}, 1, 2, 3, 3, 3, 3)},
		{"Sum", nil, []value{x23, x23, x23}, nil, nums([]int{2, 3}, 3, 6, 9, 12, 15, 18)},
		{"Equal", nil, []value{ints([]int{3}, 1, 2, 3), ints([]int{}, 2)}, []int{1}, bools([]int{3}, 0, 1, 0)},
		{"Greater", nil, []value{x23, nums([]int{}, 3)}, []int{1}, bools([]int{2, 3}, 0, 0, 0, 1, 1, 1)},
		{"GreaterOrEqual", nil, []value{x23, nums([]int{}, 3)}, []int{1}, bools([]int{2, 3}, 0, 0, 1, 1, 1, 1)},
		{"Less", nil, []value{x23, nums([]int{}, 3)}, []int{1}, bools([]int{2, 3}, 1, 1, 0, 0, 0, 0)},
		{"LessOrEqual", nil, []value{x23, nums([]int{}, 3)}, []int{1}, bools([]int{2, 3}, 1, 1, 1, 0, 0, 0)},
		{"And", nil, []value{bools([]int{4}, 0, 0, 1, 1), bools([]int{4}, 0, 1, 0, 1)}, nil, bools([]int{4}, 0, 0, 0, 1)},
		{"Or", nil, []value{bools([]int{4}, 0, 0, 1, 1), bools([]int{4}, 0, 1, 0, 1)}, nil, bools([]int{4}, 0, 1, 1, 1)},
		{"Xor", nil, []value{bools([]int{4}, 0, 0, 1, 1), bools([]int{4}, 0, 1, 0, 1)}, nil, bools([]int{4}, 0, 1, 1, 0)},
		{"Not", nil, []value{bools([]int{2}, 0, 1)}, nil, bools([]int{2}, 1, 0)},
		{"Where", nil, []value{bools([]int{2, 1}, 1, 0), x23, nums([]int{}, 9)}, []int{2},
			nums([]int{2, 3}, 1, 2, 3, 9, 9, 9)},
		{"Relu", nil, []value{nums([]int{3}, -1, 0, 2)}, nil, nums([]int{3}, 0, 0, 2)},
		{"Tanh", nil, []value{nums([]int{2}, 0, 100)}, nil, nums([]int{2}, 0, 1)},
		{"Abs", nil, []value{ints([]int{2}, -3, 3)}, nil, ints([]int{2}, 3, 3)},
		{"Neg", nil, []value{nums([]int{2}, -3, 3)}, nil, nums([]int{2}, 3, -3)},
		{"Sign", nil, []value{nums([]int{3}, -3, 0, 5)}, nil, nums([]int{3}, -1, 0, 1)},
		{"Exp", nil, []value{nums([]int{2}, 0, 1)}, nil, nums([]int{2}, 1, math.E)},
		{"Log", nil, []value{nums([]int{2}, 1, math.E)}, nil, nums([]int{2}, 0, 1)},
		{"Sqrt", nil, []value{nums([]int{2}, 4, 2)}, nil, nums([]int{2}, 2, math.Sqrt2)},
		{"Reciprocal", nil, []value{nums([]int{2}, 4, 0)}, nil, nums([]int{2}, 0.25, inf)},
		{"Sigmoid", nil, []value{nums([]int{2}, 0, 100)}, nil, nums([]int{2}, 0.5, 1)},
		{"Softplus", nil, []value{nums([]int{2}, 0, 100)}, nil, nums([]int{2}, math.Ln2, 100)},
		{"Softsign", nil, []value{nums([]int{2}, 1, -3)}, nil, nums([]int{2}, 0.5, -0.75)},
		{"Erf", nil, []value{nums([]int{2}, 0, 10)}, nil, nums([]int{2}, 0, 1)},
		{"Floor", nil, []value{nums([]int{2}, -1.5, 1.5)}, nil, nums([]int{2}, -2, 1)},
		{"Ceil", nil, []value{nums([]int{2}, -1.5, 1.5)}, nil, nums([]int{2}, -1, 2)},
		{"Elu", []onnx.Attribute{float("alpha", 2)}, []value{nums([]int{2}, 3, -1)}, nil, nums([]int{2}, 3, 2*(1/math.E-1))},
		{"LeakyRelu", []onnx.Attribute{float("alpha", 0.5)}, []value{nums([]int{2}, 3, -1)}, nil, nums([]int{2}, 3, -0.5)},
		{"Gelu", nil, []value{nums([]int{2}, 0, 10)}, nil, nums([]int{2}, 0, 10)},
		{"Gelu", []onnx.Attribute{word("approximate", "tanh")}, []value{nums([]int{2}, 0, 10)}, nil, nums([]int{2}, 0, 10)},
		{"Clip", nil, []value{x23, nums([]int{}, 2), nums([]int{}, 5)}, []int{1, 2}, nums([]int{2, 3}, 2, 2, 3, 4, 5, 5)},
		{"Clip", nil, []value{ints([]int{3}, 1, 5, 9), none, ints([]int{}, 5)}, []int{2}, ints([]int{3}, 1, 5, 5)},
		{"Cast", []onnx.Attribute{one("to", int64(onnx.Int64))}, []value{nums([]int{2}, 1.9, -1.9)}, nil,
			ints([]int{2}, 1, -1)},
		{"Cast", []onnx.Attribute{one("to", int64(onnx.Bool))}, []value{nums([]int{2}, 0, 0.5)}, nil, bools([]int{2}, 0, 1)},
		{"Cast", []onnx.Attribute{one("to", int64(onnx.Float32))}, []value{bools([]int{2}, 0, 1)}, nil, nums([]int{2}, 0, 1)},
		{"Gemm", nil, []value{x23, nums([]int{3, 1}, 1, 0, 2), nums([]int{1}, 5)}, []int{1, 2}, nums([]int{2, 1}, 12, 21)},
		{"Gemm", []onnx.Attribute{one("transB", 1), float("alpha", 2), float("beta", 3)},
			[]value{x23, nums([]int{1, 3}, 1, 0, 2), nums([]int{2, 1}, 1, 2)}, []int{1}, nums([]int{2, 1}, 17, 38)},
		{"Gemm", []onnx.Attribute{one("transA", 1)}, []value{x23, nums([]int{2, 1}, 1, 10)}, nil,
			nums([]int{3, 1}, 41, 52, 63)},
		{"MatMul", nil, []value{x23, nums([]int{3, 2}, 1, 0, 0, 1, 1, 1)}, []int{1}, nums([]int{2, 2}, 4, 5, 10, 11)},
		{"MatMul", nil, []value{nums([]int{2, 1, 2}, 1, 2, 3, 4), nums([]int{2, 2, 1}, 1, 1, 2, 0)}, nil,
			nums([]int{2, 1, 1}, 3, 6)},
		{"MatMul", nil, []value{nums([]int{2, 1, 2}, 1, 2, 3, 4), nums([]int{1, 2, 1}, 1, 10)}, []int{1},
			nums([]int{2, 1, 1}, 21, 43)},
		{"MatMul", nil, []value{nums([]int{3}, 1, 2, 3), nums([]int{3}, 1, 1, 2)}, []int{1}, nums([]int{}, 9)},
		{
			"Conv", []onnx.Attribute{set("kernel_shape", 2, 2)},
			[]value{nums([]int{1, 1, 3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9), nums([]int{1, 1, 2, 2}, 1, 0, 0, 1),
				nums([]int{1}, 100)},
			[]int{1, 2}, nums([]int{1, 1, 2, 2}, 106, 108, 112, 114),
		},
		{
			"Conv", []onnx.Attribute{set("pads", 1, 0, 0, 0), set("strides", 2, 1)},
			[]value{nums([]int{1, 2, 2, 1}, 1, 2, 3, 4), nums([]int{2, 2, 2, 1}, 1, 1, 1, 1, 0, 1, 0, 0)},
			[]int{1}, nums([]int{1, 2, 1, 1}, 4, 1),
		},
		{"Conv", []onnx.Attribute{set("pads", 1, 1)},
			[]value{nums([]int{1, 1, 3}, 1, 2, 3), nums([]int{1, 1, 3}, 1, 10, 100)}, []int{1},
			nums([]int{1, 1, 3}, 210, 321, 32)},
		{"Softmax", nil, []value{nums([]int{2, 2}, 0, 0, 0, float32(math.Log(3)))}, nil,
			nums([]int{2, 2}, 0.5, 0.5, 0.25, 0.75)},
		{"Softmax", []onnx.Attribute{one("axis", 0)}, []value{nums([]int{2, 2}, 0, 0, 0, float32(math.Log(3)))}, nil,
			nums([]int{2, 2}, 0.5, 0.25, 0.5, 0.75)},
		{"LogSoftmax", nil, []value{nums([]int{1, 2}, 0, 0)}, nil, nums([]int{1, 2}, -math.Ln2, -math.Ln2)},
		{"LayerNormalization", []onnx.Attribute{float("epsilon", 0)},
			[]value{nums([]int{1, 2}, 1, 3), nums([]int{2}, 2, 2), nums([]int{2}, 5, 5)}, []int{1, 2}, nums([]int{1, 2}, 3, 7)},
		{"LayerNormalization", nil, []value{nums([]int{1, 2}, 1000, 3000), nums([]int{2}, 2, 2)}, []int{1},
			nums([]int{1, 2}, -2, 2)},
		{"ReduceSum", nil, []value{x23, ints([]int{1}, 1)}, []int{1}, nums([]int{2, 1}, 6, 15)},
		{"ReduceSum", []onnx.Attribute{one("keepdims", 0)}, []value{x23, ints([]int{1}, 0)}, []int{1},
			nums([]int{3}, 5, 7, 9)},
		{"ReduceSum", []onnx.Attribute{one("noop_with_empty_axes", 1)}, []value{x23}, nil, x23},
		{"ReduceMean", []onnx.Attribute{set("axes", -1), one("keepdims", 0)}, []value{x23}, nil, nums([]int{2}, 2, 5)},
		{"ReduceMax", []onnx.Attribute{set("axes", 0)}, []value{x23}, nil, nums([]int{1, 3}, 4, 5, 6)},
		{"ReduceMax", []onnx.Attribute{set("axes", 0)}, []value{ints([]int{2}, -4, -9)}, nil, ints([]int{1}, -4)},
		{"ReduceSum", nil, []value{{onnx.Uint8, []int{2}, nil, []int64{250, 10}}}, nil,
			value{onnx.Uint8, []int{1}, nil, []int64{4}}},
		{"ReduceMin", nil, []value{x23}, nil, nums([]int{1, 1}, 1)},
		{"ReduceProd", []onnx.Attribute{set("axes", 1), one("keepdims", 0)}, []value{x23}, nil, nums([]int{2}, 6, 120)},
		{"ArgMax", []onnx.Attribute{one("axis", 1)}, []value{nums([]int{2, 3}, 1, 3, 3, 9, 0, 0)}, nil,
			ints([]int{2, 1}, 1, 0)},
		{"ArgMax", []onnx.Attribute{one("axis", 1), one("keepdims", 0), one("select_last_index", 1)},
			[]value{nums([]int{2, 3}, 1, 3, 3, 9, 0, 0)}, nil, ints([]int{2}, 2, 0)},
		{"ArgMin", []onnx.Attribute{one("axis", 0)}, []value{ints([]int{3}, 4, 2, 2)}, nil, ints([]int{1}, 1)},
		{"Identity", nil, []value{x23}, nil, x23},
		{"Dropout", nil, []value{x23}, nil, x23},
		{"Reshape", nil, []value{x23, ints([]int{2}, -1, 2)}, []int{1}, nums([]int{3, 2}, x23.f...)},
		{"Reshape", nil, []value{x23, ints([]int{3}, 0, 1, -1)}, []int{1}, nums([]int{2, 1, 3}, x23.f...)},
		{"Flatten", nil, []value{nums([]int{2, 3, 1}, x23.f...)}, nil, x23},
		{"Squeeze", nil, []value{nums([]int{2, 1, 3, 1}, x23.f...), ints([]int{1}, -1)}, []int{1},
			nums([]int{2, 1, 3}, x23.f...)},
		{"Squeeze", nil, []value{nums([]int{2, 1, 3, 1}, x23.f...)}, nil, x23},
		{"Unsqueeze", nil, []value{x23, ints([]int{2}, 0, -1)}, []int{1}, nums([]int{1, 2, 3, 1}, x23.f...)},
		{"Transpose", nil, []value{x23}, nil, nums([]int{3, 2}, 1, 4, 2, 5, 3, 6)},
		{"Transpose", []onnx.Attribute{set("perm", 0, 2, 1)}, []value{nums([]int{1, 2, 3}, x23.f...)}, nil,
			nums([]int{1, 3, 2}, 1, 4, 2, 5, 3, 6)},
		{"Slice", nil, []value{x23, ints([]int{1}, 1), ints([]int{1}, math.MaxInt64), ints([]int{1}, 1)}, []int{1, 2, 3},
			nums([]int{2, 2}, 2, 3, 5, 6)},
		{"Slice", nil, []value{x23, ints([]int{2}, 0, -1), ints([]int{2}, 1, math.MinInt64), ints([]int{2}, 0, 1),
			ints([]int{2}, 1, -2)}, []int{1, 2, 3, 4}, nums([]int{1, 2}, 3, 1)},
		{"Slice", nil, []value{x23, ints([]int{1}, 5), ints([]int{1}, 9), ints([]int{1}, 1)}, []int{1, 2, 3},
			nums([]int{2, 0})},
		{"Concat", []onnx.Attribute{one("axis", -1)}, []value{x23, nums([]int{2, 1}, 7, 8)}, nil,
			nums([]int{2, 4}, 1, 2, 3, 7, 4, 5, 6, 8)},
		{"Concat", []onnx.Attribute{one("axis", 0)}, []value{ints([]int{1}, 7), ints([]int{2}, 8, 9)}, []int{0},
			ints([]int{3}, 7, 8, 9)},
		{"Expand", nil, []value{nums([]int{2, 1}, 1, 2), ints([]int{3}, 2, 1, 3)}, []int{1},
			nums([]int{2, 2, 3}, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2)},
		{"Pad", nil, []value{nums([]int{1, 2}, 1, 2), ints([]int{4}, 0, 1, 1, 0), nums([]int{}, 9)}, []int{1, 2},
			nums([]int{2, 3}, 9, 1, 2, 9, 9, 9)},
		{"Pad", nil, []value{ints([]int{1, 2}, 1, 2), ints([]int{2}, 0, 1), none, ints([]int{1}, -1)}, []int{1, 3},
			ints([]int{1, 3}, 1, 2, 0)},
		{"Gather", []onnx.Attribute{one("axis", 1)}, []value{x23, ints([]int{2}, 2, -3)}, []int{1},
			nums([]int{2, 2}, 3, 1, 6, 4)},
		{"Gather", nil, []value{x23, ints([]int{2}, 1, 0)}, nil, nums([]int{2, 3}, 4, 5, 6, 1, 2, 3)},
		{"Gather", nil, []value{ints([]int{3}, 7, 8, 9), ints([]int{}, 1)}, []int{1}, ints([]int{}, 8)},
		{"Shape", nil, []value{x23}, nil, ints([]int{2}, 2, 3)},
		{"Shape", []onnx.Attribute{one("start", -1)}, []value{x23}, nil, ints([]int{1}, 3)},
		{"Size", nil, []value{x23}, nil, ints([]int{}, 6)},
		{"Constant", []onnx.Attribute{{Name: "value_floats", Kind: onnx.KindFloats, Floats: []float32{1, 2}}}, nil, nil,
			nums([]int{2}, 1, 2)},
		{"Constant",
			[]onnx.Attribute{{Name: "value", Kind: onnx.KindTensor, Tensor: &onnx.Tensor{Type: onnx.Int64, Ints: []int64{4}}}},
			nil, nil, ints([]int{}, 4)},
		{"ConstantOfShape", nil, []value{ints([]int{2}, 1, 2)}, []int{0}, nums([]int{1, 2}, 0, 0)},
		{"Range", nil, []value{ints([]int{}, 5), ints([]int{}, 0), ints([]int{}, -2)}, []int{0, 1, 2},
			ints([]int{3}, 5, 3, 1)},
	} {
		seen[c.op] = true
		out, err := compute(alone(c.op, c.set, c.in, c.fixed...), c.in)
		if err != nil {
			t.Errorf("%s%v: %v", c.op, c.set, err)
			continue
		}
		ok := out.Type == c.want.typ && slices.Equal(out.Shape,
			c.want.shape) && slices.Equal(out.Ints, c.want.i) && len(out.Floats) == len(c.want.f)
		for k := range c.want.f {
			ok = ok && (out.Floats[k] == c.want.f[k] || math.Abs(float64(out.Floats[k]-c.want.f[k])) < 1e-5)
		}
		if !ok {
			t.Errorf("%s%v of %v: %v %v %v%v, want %v", c.op, c.set, c.in, out.Type, out.Shape, out.Floats, out.Ints, c.want)
		}
	}
	seen["Split"] = true // it has several results
	for name := range operators {
		if !seen[name] {
			t.Errorf("%s is not tested", name)
		}
	}
}

func TestSplitByHand(t *testing.T) {
	x := nums([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	for _, c := range []struct {
		m *onnx.Model
	}{
		{alone("Split", []onnx.Attribute{one("axis", 1)}, []value{x})}, // the last part is smaller
		{alone("Split", []onnx.Attribute{one("axis", -1)}, []value{x, ints([]int{2}, 2, 1)}, 1)},
	} {
		c.m.Graph.Nodes[0].Outputs = []string{"out", "rest"}
		c.m.Graph.Outputs = append(c.m.Graph.Outputs, onnx.Value{Name: "rest"})
		p, err := New(c.m)
		if err != nil {
			t.Fatal(err)
		}
		i, err := p.For(2)
		if err != nil {
			t.Fatal(err)
		}
		in, _ := i.Input("in0")
		copy(in.Floats, x.f)
		if err := i.Run(); err != nil {
			t.Fatal(err)
		}
		a, _ := i.Output("out")
		b, _ := i.Output("rest")
		if !slices.Equal(a.Floats, []float32{1, 2, 4, 5}) || !slices.Equal(b.Floats, []float32{3, 6}) {
			t.Errorf("%v and %v", a.Floats, b.Floats)
		}
	}
}

func TestWhatIsNotKnownIsRefusedByName(t *testing.T) {
	x := nums([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	change := func(m *onnx.Model, f func(m *onnx.Model)) *onnx.Model {
		f(m)
		return m
	}
	relu := func(f func(m *onnx.Model)) *onnx.Model { return change(alone("Relu", nil, []value{x}), f) }
	for name, c := range map[string]struct {
		m    *onnx.Model
		want string
	}{
		"operator": {alone("Frobnicate", nil, []value{x}),
			`node Frobnicate "it": this operator is not known, want those that docs/reference/onnx.md lists`},
		"two lines": {alone("Frob\nnicate", nil, []value{x}), `node Frob\nnicate "it": this operator is not known`},
		"domain": {relu(func(m *onnx.Model) { m.Graph.Nodes[0].Domain = "com.microsoft" }),
			`operators of the domain "com.microsoft" are not known, want standard ones`},
		"opset":     {relu(func(m *onnx.Model) { m.Opset = 9 }), "opset 9 is not known, want 13 to 23"},
		"new opset": {relu(func(m *onnx.Model) { m.Opset = 99 }), "opset 99 is not known"},
		"setting":   {alone("Relu", []onnx.Attribute{one("odd", 1)}, []value{x}), `its setting "odd" is not known`},
		"type": {relu(func(m *onnx.Model) { m.Graph.Inputs[0].Type = 10 }),
			`input "in0" has the type float16, want float32`},
		"constant type": {change(alone("Add", nil, []value{x, x}, 1), func(m *onnx.Model) {
			m.Graph.Tensors[0].Type, m.Graph.Tensors[0].Doubles = onnx.Float64, make([]float64, 6)
		}), `its input "in1" has the type float64`},
		"open dimension": {relu(func(m *onnx.Model) { m.Graph.Inputs[0].Shape = []int{-1, -1} }),
			`input "in0" has the shape [N N], want one that leaves only the first dimension open`},
		"no shape": {relu(func(m *onnx.Model) { m.Graph.Inputs[0].Known = false }),
			`input "in0" has no shape with rows`},
		"no outputs": {relu(func(m *onnx.Model) { m.Graph.Outputs = nil }), "no outputs"},
		"open output": {relu(func(m *onnx.Model) { m.Graph.Outputs[0].Name = "other" }),
			`nothing computes the output "other"`},
		"order": {relu(func(m *onnx.Model) { m.Graph.Nodes[0].Inputs[0] = "later" }),
			`its input "later" is computed by nothing before it`},
		"shapes": {alone("Add", nil, []value{x, nums([]int{4}, 1, 2, 3, 4)}, 1),
			"its inputs have the shapes [2 3] and [4], which do not fit"},
		"data shape": {alone("Reshape", nil, []value{x, ints([]int{2}, 3, 2)}), "its shape depend on the data"},
		"groups": {alone("Conv", []onnx.Attribute{one("group", 2)},
			[]value{nums([]int{1, 2, 1, 1}, 1, 2), nums([]int{2, 1, 1, 1}, 1, 2)}, 1), "it has 2 groups, want 1"},
		"inputs": {alone("MatMul", nil, []value{x}), "it has 1 inputs, want 2 to 2"},
		"huge":   {alone("ConstantOfShape", nil, []value{ints([]int{2}, 1<<20, 1<<20)}, 0), "is too large"},
		"gather": {alone("Gather", nil, []value{x, ints([]int{1}, 2)}, 1), "it takes element 2 of a dimension of 2"},
		"twice": {relu(func(m *onnx.Model) { m.Graph.Nodes = append(m.Graph.Nodes, m.Graph.Nodes[0]) }),
			`its output "out" has the name of another value, want one of its own`},
		"input's name": {relu(func(m *onnx.Model) { m.Graph.Nodes[0].Outputs[0], m.Graph.Outputs[0].Name = "in0", "in0" }),
			`its output "in0" has the name of another value`},
		"two inputs": {relu(func(m *onnx.Model) { m.Graph.Inputs = append(m.Graph.Inputs, m.Graph.Inputs[0]) }),
			`there are two inputs "in0", want one`},
		"two constants": {relu(func(m *onnx.Model) { m.Graph.Tensors = []onnx.Tensor{x.tensor("c"), x.tensor("c")} }),
			`there are two constants "c", want one`},
		"cycle": {relu(func(m *onnx.Model) {
			m.Graph.Nodes[0].Inputs = []string{"back"}
			m.Graph.Nodes = append(m.Graph.Nodes, onnx.Node{Op: "Relu", Inputs: []string{"out"}, Outputs: []string{"back"}})
		}),
			`node Relu "it": its input "back" is computed by nothing before it, want nodes in the order in which they are computed`},
		"no rows": {relu(func(m *onnx.Model) { m.Graph.Inputs[0].Shape = []int{0, 3} }),
			`input "in0" has the shape [0 3], want at least one row`},
		"other rows": {alone("MatMul", nil, []value{x, nums([]int{3, 2}, 1, 2, 3, 4, 5, 6)}),
			`input "in1" has 3 rows and another 2, want as many in all`},
		"second output": {change(alone("Dropout", nil, []value{x}), func(m *onnx.Model) {
			m.Graph.Nodes[0].Outputs = append(m.Graph.Nodes[0].Outputs, "mask")
			m.Graph.Outputs = append(m.Graph.Outputs, onnx.Value{Name: "mask"})
		}), `its output "mask" is read, want a model that reads the first alone`},
		"int relu": {alone("Relu", nil, []value{ints([]int{1}, 1)}), "has the type int64, want float32"},
	} {
		_, err := compute(c.m, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAnIndexThatTheDataGiveIsChecked(t *testing.T) {
	x := nums([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	_, err := compute(alone("Gather", nil, []value{x, ints([]int{2}, 1, 2)}), []value{x, ints([]int{2}, 1, 2)})
	if err == nil || !strings.Contains(err.Error(), "an element that a dimension of 2 does not have") {
		t.Error(err)
	}
}

// Fields of no elements occur where an environment's settings switch something off.
func TestDimensionsOfLengthZero(t *testing.T) {
	for _, c := range []struct {
		op   string
		set  []onnx.Attribute
		in   []value
		want value
	}{
		{"Gemm", nil, []value{nums([]int{2, 0}), nums([]int{0, 3}), nums([]int{3}, 1, 2, 3)},
			nums([]int{2, 3}, 1, 2, 3, 1, 2, 3)},
		{"Gemm", []onnx.Attribute{one("transB", 1)}, []value{nums([]int{2, 0}), nums([]int{3, 0})},
			nums([]int{2, 3}, 0, 0, 0, 0, 0, 0)},
		{"MatMul", nil, []value{nums([]int{2, 0, 3}), nums([]int{3, 1}, 1, 2, 3)}, nums([]int{2, 0, 1})},
		{"Softmax", nil, []value{nums([]int{2, 0})}, nums([]int{2, 0})},
		{"LogSoftmax", nil, []value{nums([]int{2, 0})}, nums([]int{2, 0})},
		{"LogSoftmax", []onnx.Attribute{one("axis", 1)}, []value{nums([]int{2, 0, 3})}, nums([]int{2, 0, 3})},
		{"LayerNormalization", nil, []value{nums([]int{2, 0}), nums([]int{0})}, nums([]int{2, 0})},
		{"Add", nil, []value{nums([]int{2, 0}), nums([]int{1}, 5)}, nums([]int{2, 0})},
		{"ReduceSum", []onnx.Attribute{set("axes", 0)}, []value{nums([]int{2, 0, 3})}, nums([]int{1, 0, 3})},
		{"Transpose", nil, []value{nums([]int{2, 0, 3})}, nums([]int{3, 0, 2})},
		{"Concat", []onnx.Attribute{one("axis", 1)}, []value{nums([]int{2, 0}), nums([]int{2, 1}, 5, 6)},
			nums([]int{2, 1}, 5, 6)},
		{"Gather", nil, []value{nums([]int{2, 0}), ints([]int{1}, 0)}, nums([]int{1, 0})},
	} {
		var fixed []int
		for k := range c.in[1:] {
			fixed = append(fixed, k+1)
		}
		out, err := compute(alone(c.op, c.set, c.in, fixed...), c.in)
		if err != nil || !slices.Equal(out.Shape, c.want.shape) || !slices.Equal(out.Floats, c.want.f) {
			t.Errorf("%s%v of %v: %v %v, %v, want %v", c.op, c.set, c.in, out.Shape, out.Floats, err, c.want)
		}
	}
}

// A bias that is added behind a product is taken into it only where the shapes say the same.
func TestABiasBehindAScalarMakesAList(t *testing.T) {
	in := []value{nums([]int{2}, 1, 2), nums([]int{2}, 3, 4), nums([]int{1}, 5)}
	m := alone("MatMul", nil, in, 1, 2)
	m.Graph.Nodes[0].Inputs, m.Graph.Nodes[0].Outputs = []string{"in0", "in1"}, []string{"product"}
	m.Graph.Nodes = append(m.Graph.Nodes,
		onnx.Node{Op: "Add", Inputs: []string{"product", "in2"}, Outputs: []string{"out"}})
	out, err := compute(m, in)
	if err != nil || !slices.Equal(out.Shape, []int{1}) || !slices.Equal(out.Floats, []float32{16}) {
		t.Errorf("%v %v, %v, want [1] [16]", out.Shape, out.Floats, err)
	}
}

// perceptron is two dense layers as PyTorch writes them, for any number of rows.
func perceptron(in, hidden, out int) *onnx.Model {
	fill := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32((i*7)%11-5) / 10
		}
		return x
	}
	return &onnx.Model{IR: 8, Opset: 17, Graph: onnx.Graph{
		Inputs:  []onnx.Value{{Name: "x", Type: onnx.Float32, Known: true, Shape: []int{-1, in}}},
		Outputs: []onnx.Value{{Name: "y"}},
		Tensors: []onnx.Tensor{
			{Name: "w0", Type: onnx.Float32, Shape: []int{hidden, in}, Floats: fill(hidden * in)},
			{Name: "b0", Type: onnx.Float32, Shape: []int{hidden}, Floats: fill(hidden)},
			{Name: "w1", Type: onnx.Float32, Shape: []int{hidden, out}, Floats: fill(hidden * out)},
			{Name: "b1", Type: onnx.Float32, Shape: []int{out}, Floats: fill(out)},
		},
		Nodes: []onnx.Node{
			{Op: "Gemm", Inputs: []string{"x", "w0", "b0"}, Outputs: []string{"h"},
				Attributes: []onnx.Attribute{one("transB", 1)}},
			{Op: "Tanh", Inputs: []string{"h"}, Outputs: []string{"t"}},
			{Op: "MatMul", Inputs: []string{"t", "w1"}, Outputs: []string{"p"}},
			{Op: "Add", Inputs: []string{"b1", "p"}, Outputs: []string{"a"}},
			{Op: "Relu", Inputs: []string{"a"}, Outputs: []string{"y"}},
		},
	}}
}

func TestRowsDoNotDependOnEachOtherAndRunDoesNotAllocate(t *testing.T) {
	p, err := New(perceptron(5, 33, 7))
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.For(9)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(all.steps); n != 2 {
		t.Errorf("%d steps, want one for each layer", n)
	}
	x, _ := all.Input("x")
	for k := range x.Floats {
		x.Floats[k] = float32(math.Sin(float64(k)))
	}
	if err := all.Run(); err != nil {
		t.Fatal(err)
	}
	y, _ := all.Output("y")
	single, err := p.For(1)
	if err != nil {
		t.Fatal(err)
	}
	for r := range 9 {
		in, _ := single.Input("x")
		copy(in.Floats, x.Floats[r*5:(r+1)*5])
		if err := single.Run(); err != nil {
			t.Fatal(err)
		}
		if out, _ := single.Output("y"); !slices.Equal(out.Floats, y.Floats[r*7:(r+1)*7]) {
			t.Errorf("row %d alone is %v, among others %v", r, out.Floats, y.Floats[r*7:(r+1)*7])
		}
	}
	if n := testing.AllocsPerRun(20, func() {
		if err := all.Run(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Run allocates %v times", n)
	}
}

// Memory of results that nobody reads any more is used again.
func TestMemoryIsReused(t *testing.T) {
	m := &onnx.Model{IR: 8, Opset: 17}
	m.Graph.Inputs = []onnx.Value{{Name: "v0", Type: onnx.Float32, Known: true, Shape: []int{1, 100}}}
	for k := range 20 {
		m.Graph.Nodes = append(m.Graph.Nodes,
			onnx.Node{Op: "Exp", Inputs: []string{fmt.Sprint("v", k)}, Outputs: []string{fmt.Sprint("v", k+1)}})
	}
	m.Graph.Outputs = []onnx.Value{{Name: "v20"}}
	p, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	i, err := p.For(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := i.Bytes(); got != 2*400 {
		t.Errorf("%d bytes for 20 results of 400, want two of them", got)
	}
}

func FuzzRun(f *testing.F) {
	f.Add(perceptron(2, 3, 2).Encode())
	x := nums([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	for _, m := range []*onnx.Model{
		alone("Conv", nil, []value{nums([]int{1, 1, 3, 3}, make([]float32, 9)...), nums([]int{1, 1, 2, 2}, 1, 0, 0, 1)}, 1),
		alone("Slice", nil, []value{x, ints([]int{1}, 1), ints([]int{1}, 9), ints([]int{1}, 1)}, 1, 2, 3),
		alone("ReduceSum", nil, []value{x, ints([]int{1}, 1)},
			1), alone("Softmax", nil, []value{x}), alone("Transpose", nil, []value{x}),
		alone("Gather", nil, []value{x, ints([]int{2}, 1, 0)},
			1), alone("Concat", []onnx.Attribute{one("axis", 1)}, []value{x, x}),
		alone("Pad", nil, []value{x, ints([]int{4}, 1, 0, 0, 1)},
			1), alone("Where", nil, []value{bools([]int{2, 1}, 1, 0), x, x}),
		alone("Expand", nil, []value{x, ints([]int{3}, 2, 1, 3)},
			1), alone("Split", []onnx.Attribute{one("axis", 1)}, []value{x}),
		alone("MatMul", nil, []value{nums([]int{2, 1, 2}, 1, 2, 3, 4), nums([]int{1, 2, 1}, 1, 10)}, 1),
	} {
		f.Add(m.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := onnx.Decode(b)
		if err != nil {
			return
		}
		p, err := New(m)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		if i, err := p.For(max(1, p.Rows())); err == nil {
			_ = i.Run() // an index may be out of its bounds
		}
	})
}

func New(m *onnx.Model, outputs ...string) (*Program, error) {
	return NewContext(context.Background(), m, outputs...)
}
