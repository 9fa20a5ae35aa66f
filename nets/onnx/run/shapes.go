package run

import (
	"slices"

	"clustergym/nets/onnx"
)

func (c *compiler) identity() *tensor { return c.same(c.in[0], c.in[0].shape) }

// dropout changes nothing outside training.
func (c *compiler) dropout() *tensor {
	if t := c.has(2); t != nil && (!t.fixed || t.len() != 1 || t.float() || t.i[0] != 0) {
		c.refuse("it is in training mode, want a model for inference")
	}
	c.firstAlone() // the other is its mask
	return c.same(c.in[0], c.in[0].shape)
}

func (c *compiler) reshape() *tensor {
	x := c.in[0]
	want, zero := c.known(1, "shape"), c.int("allowzero", 0)
	shape, open := slices.Clone(want), -1
	for i, d := range shape {
		switch {
		case d == -1 && open < 0:
			open, shape[i] = i, 1
		case d < 0:
			c.refuse("it wants the shape %v, which has several open or negative dimensions", want)
		case d == 0 && zero == 0:
			if i >= len(x.shape) {
				c.refuse("it keeps dimension %d of a tensor of shape %s", i, onnx.ShapeString(x.shape))
			}
			shape[i] = x.shape[i]
		}
	}
	if open >= 0 {
		n := onnx.Len(shape)
		if n < 1 || x.len()%n != 0 {
			c.refuse("a tensor of shape %s cannot have the shape %v", onnx.ShapeString(x.shape), want)
		}
		shape[open] = x.len() / n
	}
	return c.same(x, shape)
}

func (c *compiler) flatten() *tensor {
	x := c.in[0]
	a := c.int("axis", 1)
	if a < 0 {
		a += len(x.shape)
	}
	if a < 0 || a > len(x.shape) {
		c.refuse("axis %d of a tensor of %d dimensions", a, len(x.shape))
	}
	return c.same(x, []int{onnx.Len(x.shape[:a]), onnx.Len(x.shape[a:])})
}

func (c *compiler) squeeze() *tensor {
	x := c.in[0]
	axes := c.axes(c.known(1, "axes"), len(x.shape))
	shape := []int{}
	for a, d := range x.shape {
		switch {
		case c.has(1) == nil && d == 1:
		case slices.Contains(axes, a):
			if d != 1 {
				c.refuse("it leaves out dimension %d of a tensor of shape %s", a, onnx.ShapeString(x.shape))
			}
		default:
			shape = append(shape, d)
		}
	}
	return c.same(x, shape)
}

func (c *compiler) unsqueeze() *tensor {
	x := c.in[0]
	list := c.known(1, "axes")
	axes := c.axes(list, len(x.shape)+len(list))
	shape, at := make([]int, len(x.shape)+len(list)), 0
	for i := range shape {
		if shape[i] = 1; !slices.Contains(axes, i) {
			shape[i] = x.shape[at]
			at++
		}
	}
	return c.same(x, shape)
}

// moves adds the step that fills y in order from x, whose elements begin at from and are strides apart along y's
// dimensions.
func (c *compiler) moves(x *tensor, shape, strides []int, from int) *tensor {
	y := c.new(x.typ, shape)
	w := newWalk(shape, stridesOf(shape), strides)
	run := moving(y, x, w, 0, from)
	return c.emit(y, func() { w.each(run) }, x)
}

// moving copies along w from x to y, both of which advance by w's strides.
func moving(y, x *tensor, w *walk, to, from int) func(at *[4]int) {
	n, sy, sx := w.length, w.stride[0], w.stride[1]
	if x.float() {
		return func(at *[4]int) { scatter(y.f, x.f, to+at[0], from+at[1], n, sy, sx) }
	}
	return func(at *[4]int) { scatter(y.i, x.i, to+at[0], from+at[1], n, sy, sx) }
}

// scatter copies n elements; strides may be negative.
func scatter[T number](dst, src []T, to, from, n, sd, ss int) {
	if sd == 1 && ss == 1 {
		copy(dst[to:to+n], src[from:])
		return
	}
	for range n {
		dst[to] = src[from]
		to, from = to+sd, from+ss
	}
}

func (c *compiler) transpose() *tensor {
	x := c.in[0]
	perm := c.list("perm")
	if perm == nil {
		for i := range x.shape {
			perm = append(perm, len(x.shape)-1-i)
		}
	}
	if len(c.axes(perm, len(x.shape))) != len(x.shape) || slices.Min(append([]int{0}, perm...)) < 0 {
		c.refuse("it has the order %v for a tensor of shape %s", perm, onnx.ShapeString(x.shape))
	}
	own := stridesOf(x.shape)
	shape, strides := make([]int, len(perm)), make([]int, len(perm))
	for i, a := range perm {
		shape[i], strides[i] = x.shape[a], own[a]
	}
	return c.moves(x, shape, strides, 0)
}

func (c *compiler) slice() *tensor {
	x := c.in[0]
	starts, ends, axes, steps := c.known(1, "starts"), c.known(2, "ends"), c.known(3, "axes"), c.known(4, "steps")
	if c.has(3) == nil {
		for i := range starts {
			axes = append(axes, i)
		}
	}
	if c.has(4) == nil {
		for range starts {
			steps = append(steps, 1)
		}
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
		c.refuse("it has %d starts, %d ends, %d axes and %d steps", len(starts), len(ends), len(axes), len(steps))
	}
	c.axes(axes, len(x.shape)) // each once
	shape, strides, from := slices.Clone(x.shape), stridesOf(x.shape), 0
	for i, a := range axes {
		a = c.axis(a, len(x.shape))
		d, step := x.shape[a], steps[i]
		if step == 0 {
			c.refuse("it has a step of 0")
		}
		lo, hi := starts[i], ends[i]
		if lo < 0 {
			lo += d
		}
		if hi < 0 {
			hi += d
		}
		n := 0
		if step > 0 {
			lo, hi = min(max(lo, 0), d), min(max(hi, 0), d)
			n = max(0, (hi-lo+step-1)/step)
		} else {
			lo, hi = min(max(lo, 0), d-1), min(max(hi, -1), d-1)
			n = max(0, (lo-hi-step-1)/-step)
		}
		if n > 0 {
			from += lo * strides[a]
		}
		shape[a], strides[a] = n, strides[a]*step
	}
	return c.moves(x, shape, strides, from)
}

func (c *compiler) split() *tensor {
	x := c.in[0]
	a := c.along(0, len(x.shape))
	sizes := c.known(1, "sizes")
	outs := c.node.Outputs
	if sizes == nil {
		each := (x.shape[a] + len(outs) - 1) / len(outs)
		for i := range outs {
			sizes = append(sizes, max(0, min(each, x.shape[a]-i*each)))
		}
	}
	sum := 0
	for _, n := range sizes {
		if sum += n; n < 0 {
			sum = -1
			break
		}
	}
	if len(sizes) != len(outs) || sum != x.shape[a] {
		c.refuse("it cuts a dimension of %d into %v for %d outputs", x.shape[a], sizes, len(outs))
	}
	own, at := stridesOf(x.shape), 0
	for i, n := range sizes {
		shape := slices.Clone(x.shape)
		shape[a] = n
		y := c.moves(x, shape, own, at*own[a])
		at += n
		if outs[i] != "" {
			c.values[outs[i]] = y
		}
	}
	return c.values[outs[0]]
}

func (c *compiler) concat() *tensor {
	if c.node.Attribute("axis") == nil {
		c.refuse("it has no axis")
	}
	x := c.in[0]
	a := c.along(0, len(x.shape))
	shape := slices.Clone(x.shape)
	shape[a] = 0
	for _, t := range c.in {
		if t == nil {
			c.refuse("an input is left out")
		}
		fits := t.typ == x.typ && len(t.shape) == len(shape)
		for k := range shape {
			fits = fits && (k == a || t.shape[k] == x.shape[k])
		}
		if !fits {
			c.refuse("its inputs have the shapes %s, which do not fit", shapes(c.in...))
		}
		shape[a] += t.shape[a]
	}
	y := c.new(x.typ, shape)
	in := slices.Clone(c.in)
	outer, all, inner := around(shape, a)
	return c.emit(y, func() {
		at := 0
		for _, t := range in {
			n := t.shape[a] * inner
			for o := range outer {
				y.copy(o*all*inner+at, t, o*n, n)
			}
			at += n
		}
	}, in...)
}

func (c *compiler) expand() *tensor {
	x := c.in[0]
	want := c.known(1, "shape")
	if slices.Min(append([]int{0}, want...)) < 0 {
		c.refuse("it wants the shape %v", want)
	}
	shape, ok := broadcast(x.shape, want)
	if !ok {
		c.refuse("a tensor of shape %s cannot be stretched to %v", onnx.ShapeString(x.shape), want)
	}
	return c.moves(x, shape, stretched(x.shape, shape), 0)
}

func (c *compiler) pad() *tensor {
	x := c.in[0]
	if mode := c.text("mode", "constant"); mode != "constant" {
		c.refuse("its setting mode is %.40q, want constant", mode)
	}
	pads := c.known(1, "padding")
	with := c.has(2)
	if with != nil && (with.typ != x.typ || with.len() != 1) {
		c.refuse("it pads with a tensor of type %v and shape %s, want one %v", with.typ, shapes(with), x.typ)
	}
	axes := c.known(3, "axes")
	if c.has(3) == nil {
		axes = nil
		for i := range x.shape {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) || slices.Min(append([]int{0}, pads...)) < 0 {
		c.refuse("it has the padding %v for %d axes, want two numbers for each, none below 0", pads, len(axes))
	}
	c.axes(axes, len(x.shape)) // each once
	shape, before := slices.Clone(x.shape), make([]int, len(x.shape))
	for i, a := range axes {
		a = c.axis(a, len(x.shape))
		shape[a] += pads[i] + pads[len(axes)+i]
		before[a] = pads[i]
	}
	y := c.new(x.typ, shape)
	own, to := stridesOf(shape), 0
	for a, n := range before {
		to += n * own[a]
	}
	w := newWalk(x.shape, own, stridesOf(x.shape))
	run, v := moving(y, x, w, to, 0), with
	if v == nil {
		v = &tensor{f: []float32{0}, i: []int64{0}}
	}
	return c.emit(y, func() {
		y.fill(v)
		w.each(run)
	}, x, with)
}

func (c *compiler) gather() *tensor {
	x, index := c.in[0], c.in[1]
	if index.typ != onnx.Int64 && index.typ != onnx.Int32 {
		c.refuse("its indices have the type %v, want int64 or int32", index.typ)
	}
	a := c.along(0, len(x.shape))
	outer, d, inner := around(x.shape, a)
	if index.fixed {
		for _, k := range index.i {
			if k < int64(-d) || k >= int64(d) {
				c.refuse("it takes element %d of a dimension of %d", k, d)
			}
		}
	}
	shape := append(append(slices.Clone(x.shape[:a]), index.shape...), x.shape[a+1:]...)
	y := c.new(x.typ, shape)
	inst, fault := c.inst, c.wrong("it takes an element that a dimension of %d does not have", d)
	n := index.len()
	return c.emit(y, func() {
		for o := range outer {
			for j, k := range index.i {
				if k < 0 {
					k += int64(d)
				}
				if k < 0 || k >= int64(d) {
					inst.fault = fault
					continue
				}
				from, to := (o*d+int(k))*inner, (o*n+j)*inner
				y.copy(to, x, from, inner)
			}
		}
	}, x, index)
}

// constantly returns whole numbers.
func constantly(shape []int, x ...int64) *tensor {
	return &tensor{typ: onnx.Int64, shape: shape, i: x, fixed: true}
}

func (c *compiler) shape() *tensor {
	x := c.in[0]
	from, to := c.int("start", 0), c.int("end", len(x.shape))
	end := func(k int) int {
		if k < 0 {
			k += len(x.shape)
		}
		return min(max(k, 0), len(x.shape))
	}
	from, to = end(from), end(to)
	var dims []int64
	for _, d := range x.shape[from:max(from, to)] {
		dims = append(dims, int64(d))
	}
	return constantly([]int{len(dims)}, dims...)
}

func (c *compiler) size() *tensor { return constantly(nil, int64(c.in[0].len())) }

func (c *compiler) constant() *tensor {
	if len(c.node.Attributes) != 1 {
		c.refuse("it has %d settings, want one", len(c.node.Attributes))
	}
	switch a := &c.node.Attributes[0]; {
	case a.Name == "value" && a.Tensor != nil:
		return constantOf(a.Tensor)
	case a.Name == "value_float" && a.Kind == onnx.KindFloat:
		return &tensor{typ: onnx.Float32, f: []float32{a.Float}, fixed: true}
	case a.Name == "value_floats" && a.Kind == onnx.KindFloats:
		return &tensor{typ: onnx.Float32, shape: []int{len(a.Floats)}, f: a.Floats, fixed: true}
	case a.Name == "value_int" && a.Kind == onnx.KindInt:
		return constantly(nil, a.Int)
	case a.Name == "value_ints" && a.Kind == onnx.KindInts:
		return constantly([]int{len(a.Ints)}, a.Ints...)
	default:
		c.refuse("its setting %.40q is not of its kind", a.Name)
	}
	return nil
}

func (c *compiler) constantOfShape() *tensor {
	shape := c.known(0, "shape")
	if slices.Min(append([]int{0}, shape...)) < 0 {
		c.refuse("it wants the shape %v", shape)
	}
	v := &tensor{typ: onnx.Float32, f: []float32{0}}
	if a := c.node.Attribute("value"); a != nil {
		if a.Tensor == nil || onnx.Len(a.Tensor.Shape) != 1 || !known(a.Tensor.Type) {
			c.refuse("its value is no single number of type %s", typesWanted)
		}
		v = constantOf(a.Tensor)
	}
	y := c.new(v.typ, shape)
	return c.emit(y, func() { y.fill(v) })
}

func (c *compiler) ranged() *tensor {
	var n [3]int64
	for i, t := range c.in {
		if !t.fixed || t.typ != onnx.Int64 || t.len() != 1 {
			c.refuse("it has bounds that depend on the data or are no whole numbers")
		}
		n[i] = min(max(t.i[0], -1<<31), 1<<31)
	}
	from, to, step := n[0], n[1], n[2]
	if step == 0 {
		c.refuse("it has a step of 0")
	}
	count := max(0, (to-from+step-sign(step))/step)
	y := c.new(onnx.Int64, []int{int(count)})
	return c.emit(y, func() {
		for k := range y.i {
			y.i[k] = from + int64(k)*step
		}
	})
}

func sign(x int64) int64 { return truth(x > 0) - truth(x < 0) }
