package run

import (
	"slices"

	"clustergym/nets/onnx"
)

// operator is what is known of an operator: how many inputs it takes, the names of its settings, and how it is
// compiled.
type operator struct {
	min, max int
	set      []string
	add      func(c *compiler) *tensor // returns the first output
}

// operators are the known ones by name.
var operators map[string]*operator

func init() { //nolint:gochecknoinits // the table names functions that look into it
	operators = map[string]*operator{
		"Add": binary(addOp), "Sub": binary(subOp), "Mul": binary(mulOp), "Div": binary(divOp),
		"Pow": {2, 2, nil, (*compiler).pow},
		"Mod": {2, 2, []string{"fmod"}, (*compiler).mod},
		"Max": {1, most, nil, func(c *compiler) *tensor { return c.fold(maxOp) }},
		"Min": {1, most, nil, func(c *compiler) *tensor { return c.fold(minOp) }},
		"Sum": {1, most, nil, func(c *compiler) *tensor { return c.fold(addOp) }},

		"Equal": compares(equalOp), "Greater": compares(greaterOp), "GreaterOrEqual": compares(greaterEqualOp),
		"Less": compares(lessOp), "LessOrEqual": compares(lessEqualOp),
		"And": logical(andOp), "Or": logical(orOp), "Xor": logical(xorOp), "Not": {1, 1, nil, (*compiler).not},
		"Where": {3, 3, nil, (*compiler).where},

		"Relu": {1, 1, nil, (*compiler).relu}, "Tanh": {1, 1, nil, (*compiler).tanh},
		"Abs": unary(absOp), "Neg": unary(negOp), "Sign": unary(signOp), "Exp": {1, 1, nil, (*compiler).exp},
		"Log": unary(logOp), "Sqrt": unary(sqrtOp), "Reciprocal": unary(reciprocalOp), "Sigmoid": unary(sigmoidOp),
		"Softplus": unary(softplusOp), "Softsign": unary(softsignOp), "Erf": unary(erfOp), "Floor": unary(floorOp),
		"Ceil":      unary(ceilOp),
		"Elu":       {1, 1, []string{"alpha"}, (*compiler).elu},
		"LeakyRelu": {1, 1, []string{"alpha"}, (*compiler).leaky},
		"Gelu":      {1, 1, []string{"approximate"}, (*compiler).gelu},
		"Clip":      {1, 3, nil, (*compiler).clip},
		"Cast":      {1, 1, []string{"to", "saturate"}, (*compiler).cast},

		"Gemm":   {2, 3, []string{"alpha", "beta", "transA", "transB"}, (*compiler).gemm},
		"MatMul": {2, 2, nil, (*compiler).matMul},
		"Conv":   {2, 3, []string{"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}, (*compiler).conv},

		"Softmax":            {1, 1, []string{"axis"}, func(c *compiler) *tensor { return c.softmax(false) }},
		"LogSoftmax":         {1, 1, []string{"axis"}, func(c *compiler) *tensor { return c.softmax(true) }},
		"LayerNormalization": {2, 3, []string{"axis", "epsilon", "stash_type"}, (*compiler).layerNorm},

		"ReduceSum":  reduces(sumReduction),
		"ReduceMean": reduces(meanReduction),
		"ReduceMax":  reduces(maxReduction),
		"ReduceMin":  reduces(minReduction),
		"ReduceProd": reduces(prodReduction),
		"ArgMax":     chooses(1),
		"ArgMin":     chooses(-1),

		"Identity": {1, 1, nil, (*compiler).identity}, "Dropout": {1, 3, []string{"seed"}, (*compiler).dropout},
		"Reshape":   {2, 2, []string{"allowzero"}, (*compiler).reshape},
		"Flatten":   {1, 1, []string{"axis"}, (*compiler).flatten},
		"Squeeze":   {1, 2, nil, (*compiler).squeeze},
		"Unsqueeze": {2, 2, nil, (*compiler).unsqueeze},

		"Transpose": {1, 1, []string{"perm"}, (*compiler).transpose},
		"Slice":     {3, 5, nil, (*compiler).slice},
		"Split":     {1, 2, []string{"axis", "num_outputs"}, (*compiler).split},
		"Concat":    {1, most, []string{"axis"}, (*compiler).concat},
		"Expand":    {2, 2, nil, (*compiler).expand},
		"Pad":       {2, 4, []string{"mode"}, (*compiler).pad},
		"Gather":    {2, 2, []string{"axis"}, (*compiler).gather},
		"Shape":     {1, 1, []string{"start", "end"}, (*compiler).shape},
		"Size":      {1, 1, nil, (*compiler).size},
		"Constant": {0, 0, []string{"value", "value_float", "value_floats", "value_int", "value_ints"},
			(*compiler).constant},
		"ConstantOfShape": {1, 1, []string{"value"}, (*compiler).constantOfShape},
		"Range":           {3, 3, nil, (*compiler).ranged},
	}
}

// most inputs of operators that take any number of them.
const most = mostNodes

// int returns a whole number among the node's settings.
func (c *compiler) int(name string, def int) int {
	a := c.node.Attribute(name)
	if a == nil {
		return def
	}
	if a.Kind != onnx.KindInt || a.Int > 1<<31 || a.Int < -1<<31 {
		c.refuse("its setting %q is no whole number of a fitting size", name)
	}
	return int(a.Int)
}

func (c *compiler) number(name string, def float32) float32 {
	a := c.node.Attribute(name)
	if a == nil {
		return def
	}
	if a.Kind != onnx.KindFloat {
		c.refuse("its setting %q is no number", name)
	}
	return a.Float
}

func (c *compiler) text(name, def string) string {
	a := c.node.Attribute(name)
	if a == nil {
		return def
	}
	if a.Kind != onnx.KindString {
		c.refuse("its setting %q is no text", name)
	}
	return a.Text
}

// list returns a list of whole numbers among the settings, nil if there is none.
func (c *compiler) list(name string) []int {
	a := c.node.Attribute(name)
	if a == nil {
		return nil
	}
	if a.Kind != onnx.KindInts || len(a.Ints) > 64 {
		c.refuse("its setting %q is no short list of whole numbers", name)
	}
	return sound(a.Ints)
}

// sound returns whole numbers of a size that sums of them do not overflow; the ends of int64 stand for the ends of a
// dimension.
func sound(x []int64) []int {
	out := make([]int, len(x))
	for i, v := range x {
		out[i] = int(min(max(v, -1<<31), 1<<31))
	}
	return out
}

// known returns the whole numbers of input i, which must follow from the model alone.
func (c *compiler) known(i int, what string) []int {
	t := c.has(i)
	switch {
	case t == nil:
		return nil
	case !t.fixed:
		c.refuse("its %s depend on the data, want %s that the model gives", what, what)
	case t.float() || len(t.shape) > 1 || t.len() > 64:
		c.refuse("its %s are no short list of whole numbers", what)
	}
	return sound(t.i)
}

// firstAlone refuses a model that reads an output behind the first.
func (c *compiler) firstAlone() {
	for i, s := range c.node.Outputs {
		if i > 0 && s != "" && c.readers[s] > 0 {
			c.refuse("its output %.60q is read, want a model that reads the first alone", s)
		}
	}
}

// axis returns an axis of a tensor of that rank.
func (c *compiler) axis(a, rank int) int {
	if a < -rank || a >= rank {
		c.refuse("axis %d of a tensor of %d dimensions", a, rank)
	}
	if a < 0 {
		a += rank
	}
	return a
}

// along returns the axis among the settings, for a tensor of that rank.
func (c *compiler) along(def, rank int) int { return c.axis(c.int("axis", def), rank) }

// axes returns several axes, each once, sorted.
func (c *compiler) axes(list []int, rank int) []int {
	out := make([]int, len(list))
	for i, a := range list {
		out[i] = c.axis(a, rank)
		if slices.Contains(out[:i], out[i]) {
			c.refuse("axis %d is named twice", a)
		}
	}
	slices.Sort(out)
	return out
}

// around returns the number of elements of shape before an axis, along it and after it.
func around(shape []int, axis int) (outer, n, inner int) {
	return onnx.Len(shape[:axis]), shape[axis], onnx.Len(shape[axis+1:])
}

func shapes(ts ...*tensor) string {
	s := ""
	for i, t := range ts {
		if i > 0 {
			s += " and "
		}
		s += onnx.ShapeString(t.shape)
	}
	return s
}
