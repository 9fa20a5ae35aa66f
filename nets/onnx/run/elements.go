package run

import (
	"math"

	"clustergym/nets/kernel"
	"clustergym/nets/onnx"
)

// number is the type of a tensor's elements in memory.
type number interface{ float32 | int64 }

// pair is an operator of two numbers, for both types; a nil one is refused.
type pair struct {
	f    func(a, b float32) float32
	i    func(a, b int64) int64
	fast loop
}

// loop is a loop that does without a call for each element.
type loop uint8

const (
	adding loop = 1 + iota
	scaling
)

var (
	addOp = pair{func(a, b float32) float32 { return a + b }, func(a, b int64) int64 { return a + b }, adding}
	subOp = pair{func(a, b float32) float32 { return a - b }, func(a, b int64) int64 { return a - b }, 0}
	mulOp = pair{func(a, b float32) float32 { return a * b }, func(a, b int64) int64 { return a * b }, scaling}
	divOp = pair{func(a, b float32) float32 { return a / b }, quotient, 0}
	powOp = pair{func(a, b float32) float32 { return float32(math.Pow(float64(a), float64(b))) }, nil, 0}
	maxOp = pair{func(a, b float32) float32 { return max(a, b) }, func(a, b int64) int64 { return max(a, b) }, 0}
	minOp = pair{func(a, b float32) float32 { return min(a, b) }, func(a, b int64) int64 { return min(a, b) }, 0}
	andOp = pair{nil, func(a, b int64) int64 { return a & b }, 0}
	orOp  = pair{nil, func(a, b int64) int64 { return a | b }, 0}
	xorOp = pair{nil, func(a, b int64) int64 { return a ^ b }, 0}
)

// quotient rounds towards 0; that by 0 is 0.
func quotient(a, b int64) int64 {
	switch b {
	case 0:
		return 0
	case -1:
		return -a
	}
	return a / b
}

func binary(p pair) *operator {
	return &operator{2, 2, nil, func(c *compiler) *tensor { return c.binary(p, c.in[0], c.in[1]) }}
}

// pow takes exponents of another type than the numbers, as exporters write x**2.
func (c *compiler) pow() *tensor {
	x, exponent := c.in[0], c.in[1]
	if !x.float() || exponent.float() {
		return c.binary(powOp, x, exponent)
	}
	e := c.new(onnx.Float32, exponent.shape)
	c.step(func() { floatsOf(e.f, exponent.i) }, []*tensor{exponent}, []*tensor{e})
	return c.binary(powOp, x, e)
}

func floatsOf(dst []float32, src []int64) {
	for k, v := range src {
		dst[k] = float32(v)
	}
}

func logical(p pair) *operator {
	return &operator{2, 2, nil, func(c *compiler) *tensor {
		if c.in[0].typ != onnx.Bool || c.in[1].typ != onnx.Bool {
			c.refuse("its inputs have the types %v and %v, want bool", c.in[0].typ, c.in[1].typ)
		}
		return c.binary(p, c.in[0], c.in[1])
	}}
}

// stretch returns a result of type typ for two inputs of the same type, and the walk over it and the inputs, which are
// stretched to one shape.
func (c *compiler) stretch(typ onnx.Type, a, b *tensor) (*tensor, *walk) {
	if a.typ != b.typ {
		c.refuse("its inputs have the types %v and %v, want the same", a.typ, b.typ)
	}
	shape, ok := broadcast(a.shape, b.shape)
	if !ok {
		c.refuse("its inputs have the shapes %s, which do not fit", shapes(a, b))
	}
	return c.new(typ, shape), newWalk(shape, stridesOf(shape), stretched(a.shape, shape), stretched(b.shape, shape))
}

// binary adds the step that applies p to a and b.
func (c *compiler) binary(p pair, a, b *tensor) *tensor {
	if a.float() && p.f == nil || !a.float() && p.i == nil {
		c.refuse("its inputs have the type %v, which it does not take", a.typ)
	}
	y, w := c.stretch(a.typ, a, b)
	n, sa, sb := w.length, w.stride[1], w.stride[2]
	var run func(at *[4]int)
	switch {
	case a.float() && p.fast == adding && sa == 1 && sb == 1:
		run = func(at *[4]int) { kernel.Add(y.f[at[0]:at[0]+n], a.f[at[1]:], b.f[at[2]:]) }
	case a.float() && p.fast == scaling && sa == 1 && sb == 0:
		run = func(at *[4]int) {
			d, s, x := y.f[at[0]:at[0]+n], a.f[at[1]:at[1]+n], b.f[at[2]]
			for k, v := range s {
				d[k] = v * x
			}
		}
	case a.float():
		run = func(at *[4]int) { zip(p.f, y.f[at[0]:at[0]+n], a.f[at[1]:], b.f[at[2]:], sa, sb) }
	default:
		run = func(at *[4]int) { zip(p.i, y.i[at[0]:at[0]+n], a.i[at[1]:], b.i[at[2]:], sa, sb) }
		if y.typ != onnx.Int64 && y.typ != onnx.Bool {
			typ := y.typ
			inner := run
			run = func(at *[4]int) { inner(at); wrap(y.i[at[0]:at[0]+n], typ) }
		}
	}
	return c.emit(y, func() { w.each(run) }, a, b)
}

func zip[T number, R number](f func(a, b T) R, dst []R, a, b []T, sa, sb int) {
	for k := range dst {
		dst[k] = f(a[k*sa], b[k*sb])
	}
}

// wrap cuts whole numbers to the range of their type, as its arithmetic does.
func wrap(x []int64, typ onnx.Type) {
	for k, v := range x {
		switch typ {
		case onnx.Int32:
			x[k] = int64(int32(v))
		case onnx.Uint8:
			x[k] = int64(uint8(v))
		case onnx.Int8:
			x[k] = int64(int8(v))
		}
	}
}

func (c *compiler) fold(p pair) *tensor {
	y := c.in[0]
	for _, x := range c.in[1:] {
		if x == nil {
			c.refuse("an input is left out")
		}
		y = c.binary(p, y, x)
	}
	if len(c.in) == 1 {
		return c.same(y, y.shape)
	}
	return y
}

func (c *compiler) mod() *tensor {
	f := c.int("fmod", 0)
	p := pair{func(a, b float32) float32 { return float32(math.Mod(float64(a), float64(b))) }, func(a, b int64) int64 {
		if b == 0 || b == -1 {
			return 0
		}
		r := a % b
		if f == 0 && r != 0 && (r < 0) != (b < 0) {
			r += b
		}
		return r
	}, 0}
	if f == 0 {
		p.f = nil // the format asks for fmod with fractions
	}
	return c.binary(p, c.in[0], c.in[1])
}

// relation compares two numbers.
type relation struct {
	f func(a, b float32) int64
	i func(a, b int64) int64
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func relationOf(f func(a, b float32) bool, i func(a, b int64) bool) relation {
	return relation{func(a, b float32) int64 { return truth(f(a, b)) }, func(a, b int64) int64 { return truth(i(a, b)) }}
}

var (
	equalOp        = relationOf(func(a, b float32) bool { return a == b }, func(a, b int64) bool { return a == b })
	greaterOp      = relationOf(func(a, b float32) bool { return a > b }, func(a, b int64) bool { return a > b })
	greaterEqualOp = relationOf(func(a, b float32) bool { return a >= b }, func(a, b int64) bool { return a >= b })
	lessOp         = relationOf(func(a, b float32) bool { return a < b }, func(a, b int64) bool { return a < b })
	lessEqualOp    = relationOf(func(a, b float32) bool { return a <= b }, func(a, b int64) bool { return a <= b })
)

func compares(r relation) *operator {
	return &operator{2, 2, nil, func(c *compiler) *tensor {
		a, b := c.in[0], c.in[1]
		y, w := c.stretch(onnx.Bool, a, b)
		n, sa, sb := w.length, w.stride[1], w.stride[2]
		run := func(at *[4]int) { zip(r.i, y.i[at[0]:at[0]+n], a.i[at[1]:], b.i[at[2]:], sa, sb) }
		if a.float() {
			run = func(at *[4]int) { zip(r.f, y.i[at[0]:at[0]+n], a.f[at[1]:], b.f[at[2]:], sa, sb) }
		}
		return c.emit(y, func() { w.each(run) }, a, b)
	}}
}

func (c *compiler) not() *tensor {
	if typ := c.in[0].typ; typ != onnx.Bool {
		c.refuse("its input has the type %v, want bool", typ)
	}
	return c.unary(single{i: func(x int64) int64 { return 1 - x }})
}

func (c *compiler) where() *tensor {
	is, a, b := c.in[0], c.in[1], c.in[2]
	if is.typ != onnx.Bool {
		c.refuse("its condition has the type %v, want bool", is.typ)
	}
	if a.typ != b.typ {
		c.refuse("its inputs have the types %v and %v, want the same", a.typ, b.typ)
	}
	shape, ok := broadcast(is.shape, a.shape, b.shape)
	if !ok {
		c.refuse("its inputs have the shapes %s, which do not fit", shapes(is, a, b))
	}
	y := c.new(a.typ, shape)
	w := newWalk(shape, stridesOf(shape), stretched(is.shape, shape), stretched(a.shape, shape), stretched(b.shape, shape))
	n, s := w.length, w.stride
	run := func(at *[4]int) { choose(y.i[at[0]:at[0]+n], is.i[at[1]:], a.i[at[2]:], b.i[at[3]:], &s) }
	if a.float() {
		run = func(at *[4]int) { choose(y.f[at[0]:at[0]+n], is.i[at[1]:], a.f[at[2]:], b.f[at[3]:], &s) }
	}
	return c.emit(y, func() { w.each(run) }, is, a, b)
}

func choose[T number](dst []T, is []int64, a, b []T, s *[4]int) {
	for k := range dst {
		if is[k*s[1]] != 0 {
			dst[k] = a[k*s[2]]
		} else {
			dst[k] = b[k*s[3]]
		}
	}
}

// single is an operator of one number, for both types; a nil one is refused.
type single struct {
	f func(x float32) float32
	i func(x int64) int64
}

func in64(f func(float64) float64) func(float32) float32 {
	return func(x float32) float32 { return float32(f(float64(x))) }
}

var (
	absOp        = single{in64(math.Abs), func(x int64) int64 { return max(x, -x) }}
	negOp        = single{func(x float32) float32 { return -x }, func(x int64) int64 { return -x }}
	logOp        = single{f: in64(math.Log)}
	sqrtOp       = single{f: in64(math.Sqrt)}
	floorOp      = single{f: in64(math.Floor)}
	ceilOp       = single{f: in64(math.Ceil)}
	erfOp        = single{f: in64(math.Erf)}
	reciprocalOp = single{f: func(x float32) float32 { return 1 / x }}
	sigmoidOp    = single{f: in64(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) })}
	softplusOp   = single{f: in64(func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) })}
	softsignOp   = single{f: in64(func(x float64) float64 { return x / (1 + math.Abs(x)) })}
	signOp       = single{func(x float32) float32 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x
	}, func(x int64) int64 { return truth(x > 0) - truth(x < 0) }}
)

func unary(s single) *operator {
	return &operator{1, 1, nil, func(c *compiler) *tensor { return c.unary(s) }}
}

func (c *compiler) unary(s single) *tensor {
	x := c.in[0]
	if x.float() && s.f == nil || !x.float() && s.i == nil {
		c.refuse("its input has the type %v, which it does not take", x.typ)
	}
	y := c.new(x.typ, x.shape)
	if x.float() {
		return c.emit(y, func() {
			for k, v := range x.f {
				y.f[k] = s.f(v)
			}
		}, x)
	}
	return c.emit(y, func() {
		for k, v := range x.i {
			y.i[k] = s.i(v)
		}
		wrap(y.i, y.typ)
	}, x)
}

// vector is unary for a function of slices.
func (c *compiler) vector(run func(dst, src []float32)) *tensor {
	x := c.in[0]
	c.floats()
	y := c.new(x.typ, x.shape)
	return c.emit(y, func() { run(y.f, x.f) }, x)
}

func (c *compiler) relu() *tensor {
	return c.vector(func(dst, src []float32) { kernel.Activate(dst, src, kernel.ReLU) })
}

func (c *compiler) tanh() *tensor {
	return c.vector(func(dst, src []float32) { kernel.Activate(dst, src, kernel.Tanh) })
}

func (c *compiler) exp() *tensor { return c.vector(kernel.Exp[float32]) }

func (c *compiler) elu() *tensor {
	alpha := c.number("alpha", 1)
	return c.unary(single{f: func(x float32) float32 {
		if x >= 0 {
			return x
		}
		return alpha * float32(math.Expm1(float64(x)))
	}})
}

func (c *compiler) leaky() *tensor {
	alpha := c.number("alpha", 0.01)
	return c.unary(single{f: func(x float32) float32 {
		if x >= 0 {
			return x
		}
		return alpha * x
	}})
}

func (c *compiler) gelu() *tensor {
	f := func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) }
	switch how := c.text("approximate", "none"); how {
	case "none":
	case "tanh":
		f = func(x float64) float64 { return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) }
	default:
		c.refuse("its setting approximate is %.40q, want none or tanh", how)
	}
	return c.unary(single{f: in64(f)})
}

func (c *compiler) clip() *tensor {
	x, low, high := c.in[0], c.has(1), c.has(2)
	for _, t := range []*tensor{low, high} {
		if t != nil && (t.typ != x.typ || t.len() != 1) {
			c.refuse("a bound has the type %v and the shape %s, want one %v", t.typ, shapes(t), x.typ)
		}
	}
	y := c.new(x.typ, x.shape)
	given := []*tensor{x, low, high}
	if low == nil {
		low = &tensor{f: []float32{float32(math.Inf(-1))}, i: []int64{math.MinInt64}}
	}
	if high == nil {
		high = &tensor{f: []float32{float32(math.Inf(1))}, i: []int64{math.MaxInt64}}
	}
	return c.emit(y, func() {
		if x.float() {
			within(y.f, x.f, low.f[0], high.f[0])
		} else {
			within(y.i, x.i, low.i[0], high.i[0])
		}
	}, given...)
}

func within[T number](dst, src []T, low, high T) {
	for k, v := range src {
		dst[k] = min(max(v, low), high)
	}
}

func (c *compiler) cast() *tensor {
	x, typ := c.in[0], onnx.Type(c.int("to", 0))
	if !known(typ) {
		c.refuse("it casts to %v, want %s", typ, typesWanted)
	}
	if typ == x.typ {
		return c.same(x, x.shape)
	}
	y := c.new(typ, x.shape)
	var run func()
	switch {
	case y.float():
		run = func() { floatsOf(y.f, x.i) }
	case x.float() && typ == onnx.Bool:
		run = func() { truths(y.i, x.f) }
	case x.float():
		run = func() {
			for k, v := range x.f {
				y.i[k] = whole(v)
			}
			wrap(y.i, typ)
		}
	case typ == onnx.Bool:
		run = func() { truths(y.i, x.i) }
	default:
		run = func() {
			copy(y.i, x.i)
			wrap(y.i, typ)
		}
	}
	return c.emit(y, run, x)
}

func truths[T number](dst []int64, src []T) {
	for k, v := range src {
		dst[k] = truth(v != 0)
	}
}

// whole rounds towards 0; what no int64 holds becomes 0 on every machine.
func whole(x float32) int64 {
	if !(x > -9e18 && x < 9e18) {
		return 0
	}
	return int64(x)
}
