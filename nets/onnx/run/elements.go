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
	return &operator{2, 2, nil, func(c *compiler) error { return c.binary(p, c.in[0], c.in[1]) }}
}

// pow takes exponents of another type than the numbers, as exporters write x**2.
func (c *compiler) pow() error {
	x, exponent := c.in[0], c.in[1]
	if !x.float() || exponent.float() {
		return c.binary(powOp, x, exponent)
	}
	e, err := c.new(onnx.Float32, exponent.shape)
	if err != nil {
		return err
	}
	c.step(func() { floatsOf(e.f, exponent.i) }, []*tensor{exponent}, []*tensor{e})
	return c.binary(powOp, x, e)
}

func floatsOf(dst []float32, src []int64) {
	for k, v := range src {
		dst[k] = float32(v)
	}
}

func logical(p pair) *operator {
	return &operator{2, 2, nil, func(c *compiler) error {
		if c.in[0].typ != onnx.Bool || c.in[1].typ != onnx.Bool {
			return c.wrong("its inputs have the types %v and %v, want bool", c.in[0].typ, c.in[1].typ)
		}
		return c.binary(p, c.in[0], c.in[1])
	}}
}

// alike returns the shape to which two inputs of the same type are stretched.
func (c *compiler) alike(a, b *tensor) ([]int, error) {
	if a.typ != b.typ {
		return nil, c.wrong("its inputs have the types %v and %v, want the same", a.typ, b.typ)
	}
	shape, ok := broadcast(a.shape, b.shape)
	if !ok {
		return nil, c.wrong("its inputs have the shapes %s, which do not fit", shapes(a, b))
	}
	return shape, nil
}

func (c *compiler) binary(p pair, a, b *tensor) error {
	y, err := c.combined(p, a, b)
	if err == nil {
		c.result(y)
	}
	return err
}

// combined adds the step that applies p to a and b.
func (c *compiler) combined(p pair, a, b *tensor) (*tensor, error) {
	shape, err := c.alike(a, b)
	if err != nil {
		return nil, err
	}
	if a.float() && p.f == nil || !a.float() && p.i == nil {
		return nil, c.wrong("its inputs have the type %v, which it does not take", a.typ)
	}
	y, err := c.new(a.typ, shape)
	if err != nil {
		return nil, err
	}
	w := newWalk(shape, stridesOf(shape), stretched(a.shape, shape), stretched(b.shape, shape))
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
	c.step(func() { w.each(run) }, []*tensor{a, b}, []*tensor{y})
	return y, nil
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

func (c *compiler) fold(p pair) error {
	y := c.in[0]
	for _, x := range c.in[1:] {
		if x == nil {
			return c.wrong("an input is left out")
		}
		var err error
		if y, err = c.combined(p, y, x); err != nil {
			return err
		}
	}
	if len(c.in) == 1 {
		return c.same(y, y.shape)
	}
	c.result(y)
	return nil
}

func (c *compiler) mod() error {
	f, err := c.int("fmod", 0)
	if err != nil {
		return err
	}
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
	return &operator{2, 2, nil, func(c *compiler) error {
		a, b := c.in[0], c.in[1]
		shape, err := c.alike(a, b)
		if err != nil {
			return err
		}
		y, err := c.new(onnx.Bool, shape)
		if err != nil {
			return err
		}
		w := newWalk(shape, stridesOf(shape), stretched(a.shape, shape), stretched(b.shape, shape))
		n, sa, sb := w.length, w.stride[1], w.stride[2]
		run := func(at *[4]int) { zip(r.i, y.i[at[0]:at[0]+n], a.i[at[1]:], b.i[at[2]:], sa, sb) }
		if a.float() {
			run = func(at *[4]int) { zip(r.f, y.i[at[0]:at[0]+n], a.f[at[1]:], b.f[at[2]:], sa, sb) }
		}
		return c.emit(y, func() { w.each(run) }, a, b)
	}}
}

func (c *compiler) not() error {
	x := c.in[0]
	if x.typ != onnx.Bool {
		return c.wrong("its input has the type %v, want bool", x.typ)
	}
	y, err := c.new(onnx.Bool, x.shape)
	if err != nil {
		return err
	}
	return c.emit(y, func() {
		for k, v := range x.i {
			y.i[k] = 1 - v
		}
	}, x)
}

func (c *compiler) where() error {
	is, a, b := c.in[0], c.in[1], c.in[2]
	if is.typ != onnx.Bool {
		return c.wrong("its condition has the type %v, want bool", is.typ)
	}
	if a.typ != b.typ {
		return c.wrong("its inputs have the types %v and %v, want the same", a.typ, b.typ)
	}
	shape, ok := broadcast(is.shape, a.shape, b.shape)
	if !ok {
		return c.wrong("its inputs have the shapes %s, which do not fit", shapes(is, a, b))
	}
	y, err := c.new(a.typ, shape)
	if err != nil {
		return err
	}
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
	return &operator{1, 1, nil, func(c *compiler) error { return c.unary(s) }}
}

func (c *compiler) unary(s single) error {
	x := c.in[0]
	if x.float() && s.f == nil || !x.float() && s.i == nil {
		return c.wrong("its input has the type %v, which it does not take", x.typ)
	}
	y, err := c.new(x.typ, x.shape)
	if err != nil {
		return err
	}
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
func (c *compiler) vector(run func(dst, src []float32)) error {
	x := c.in[0]
	if err := c.floats(); err != nil {
		return err
	}
	y, err := c.new(x.typ, x.shape)
	if err != nil {
		return err
	}
	return c.emit(y, func() { run(y.f, x.f) }, x)
}

func (c *compiler) relu() error {
	return c.vector(func(dst, src []float32) { kernel.Activate(dst, src, kernel.ReLU) })
}

func (c *compiler) tanh() error {
	return c.vector(func(dst, src []float32) { kernel.Activate(dst, src, kernel.Tanh) })
}

func (c *compiler) exp() error { return c.vector(kernel.Exp[float32]) }

func (c *compiler) elu() error {
	alpha, err := c.number("alpha", 1)
	if err != nil {
		return err
	}
	return c.unary(single{f: func(x float32) float32 {
		if x >= 0 {
			return x
		}
		return alpha * float32(math.Expm1(float64(x)))
	}})
}

func (c *compiler) leaky() error {
	alpha, err := c.number("alpha", 0.01)
	if err != nil {
		return err
	}
	return c.unary(single{f: func(x float32) float32 {
		if x >= 0 {
			return x
		}
		return alpha * x
	}})
}

func (c *compiler) gelu() error {
	how, err := c.text("approximate", "none")
	if err != nil {
		return err
	}
	switch how {
	case "none":
		return c.unary(single{f: in64(func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) })})
	case "tanh":
		return c.unary(single{f: in64(func(x float64) float64 {
			return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		})})
	}
	return c.wrong("its setting approximate is %.40q, want none or tanh", how)
}

func (c *compiler) clip() error {
	x, low, high := c.in[0], c.has(1), c.has(2)
	for _, t := range []*tensor{low, high} {
		if t != nil && (t.typ != x.typ || t.len() != 1) {
			return c.wrong("a bound has the type %v and the shape %s, want one %v", t.typ, shapes(t), x.typ)
		}
	}
	y, err := c.new(x.typ, x.shape)
	if err != nil {
		return err
	}
	if x.float() {
		return c.emit(y, func() {
			a, b := float32(math.Inf(-1)), float32(math.Inf(1))
			if low != nil {
				a = low.f[0]
			}
			if high != nil {
				b = high.f[0]
			}
			for k, v := range x.f {
				y.f[k] = min(max(v, a), b)
			}
		}, x, low, high)
	}
	return c.emit(y, func() {
		a, b := int64(math.MinInt64), int64(math.MaxInt64)
		if low != nil {
			a = low.i[0]
		}
		if high != nil {
			b = high.i[0]
		}
		for k, v := range x.i {
			y.i[k] = min(max(v, a), b)
		}
	}, x, low, high)
}

func (c *compiler) cast() error {
	to, err := c.int("to", 0)
	if err != nil {
		return err
	}
	x, typ := c.in[0], onnx.Type(to)
	if !known(typ) {
		return c.wrong("it casts to %v, want %s", typ, typesWanted)
	}
	if typ == x.typ {
		return c.same(x, x.shape)
	}
	y, err := c.new(typ, x.shape)
	if err != nil {
		return err
	}
	var run func()
	switch {
	case y.float():
		run = func() { floatsOf(y.f, x.i) }
	case x.float() && typ == onnx.Bool:
		run = func() {
			for k, v := range x.f {
				y.i[k] = truth(v != 0)
			}
		}
	case x.float():
		run = func() {
			for k, v := range x.f {
				y.i[k] = whole(v)
			}
			wrap(y.i, typ)
		}
	case typ == onnx.Bool:
		run = func() {
			for k, v := range x.i {
				y.i[k] = truth(v != 0)
			}
		}
	default:
		run = func() {
			copy(y.i, x.i)
			wrap(y.i, typ)
		}
	}
	return c.emit(y, run, x)
}

// whole rounds towards 0; what no int64 holds becomes 0 on every machine.
func whole(x float32) int64 {
	if !(x > -9e18 && x < 9e18) {
		return 0
	}
	return int64(x)
}
