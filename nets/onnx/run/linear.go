package run

import (
	"slices"

	"clustergym/nets/kernel"
	"clustergym/nets/onnx"
)

// product is a product with a matrix, to which what follows in the graph is added as far as the kernels do it at the
// same time.
type product struct {
	bias *tensor // [n], nil = none
	act  kernel.Act
}

// merged returns how the product whose result is the node's first output goes on, and the name of the last result: the
// bias that is added to its n columns, where there is none yet, and the activation.
func (c *compiler) merged(n int, bias *tensor) (product, string) {
	p, name := product{bias: bias}, c.node.Outputs[0]
	k, next := c.follower(name)
	if next != nil && next.Op == "Add" && bias == nil && len(next.Inputs) == 2 {
		other := next.Inputs[0]
		if other == name {
			other = next.Inputs[1]
		}
		if t := c.values[other]; t != nil && t.fixed && t.float() && len(t.shape) == 1 && t.shape[0] == n &&
			len(next.Outputs) == 1 {
			p.bias, name = t, next.Outputs[0]
			c.done[k] = true
			k, next = c.follower(name)
		}
	}
	if next != nil && (next.Op == "Relu" || next.Op == "Tanh") && len(next.Outputs) == 1 && len(next.Inputs) == 1 {
		p.act, name = kernel.ReLU, next.Outputs[0]
		if next.Op == "Tanh" {
			p.act = kernel.Tanh
		}
		c.done[k] = true
	}
	return p, name
}

// turned returns a matrix with rows and columns exchanged, fixed if x is.
func (c *compiler) turned(x *tensor) *tensor {
	rows, cols := x.shape[0], x.shape[1]
	return c.ordered(x, "turned", []int{cols, rows}, func(y *tensor) {
		for i := range rows {
			for j := range cols {
				y.f[j*rows+i] = x.f[i*cols+j]
			}
		}
	})
}

// ordered returns the elements of x in another order, which put writes. Those of the model's own weights are kept for
// all instances.
func (c *compiler) ordered(x *tensor, how string, shape []int, put func(y *tensor)) *tensor {
	var key packedOf
	if x.weights && len(x.f) > 0 {
		key = packedOf{&x.f[0], how}
		if y := c.p.packed[key]; y != nil && slices.Equal(y.shape, shape) {
			return y
		}
	}
	y := c.new(x.typ, shape)
	c.step(func() { put(y) }, []*tensor{x}, []*tensor{y})
	if key.first != nil {
		c.p.packed[key] = y
	}
	return y
}

// scaledBy returns x·factor.
func (c *compiler) scaledBy(x *tensor, factor float32) *tensor {
	if factor == 1 {
		return x
	}
	y := c.new(x.typ, x.shape)
	c.step(func() {
		for k, v := range x.f {
			y.f[k] = factor * v
		}
	}, []*tensor{x}, []*tensor{y})
	return y
}

func (c *compiler) gemm() *tensor {
	c.floats()
	a, b, extra := c.in[0], c.in[1], c.has(2)
	if len(a.shape) != 2 || len(b.shape) != 2 {
		c.refuse("its inputs have the shapes %s, want two matrices", shapes(a, b))
	}
	alpha, beta := c.number("alpha", 1), c.number("beta", 1)
	for _, m := range []struct {
		name string
		of   **tensor
	}{{"transA", &a}, {"transB", &b}} {
		if c.int(m.name, 0) != 0 {
			*m.of = c.turned(*m.of)
		}
	}
	b = c.scaledBy(b, alpha)
	m, k, n := a.shape[0], a.shape[1], b.shape[1]
	if b.shape[0] != k {
		c.refuse("its inputs have the shapes %s, which do not fit", shapes(a, b))
	}
	shape := []int{m, n}
	var bias *tensor
	if extra != nil {
		if s, ok := broadcast(extra.shape, shape); !ok || len(s) != 2 || s[0] != m || s[1] != n {
			c.refuse("its inputs have the shapes %s, which do not fit", shapes(a, b, extra))
		}
		extra = c.scaledBy(extra, beta)
		if extra.len() == n && (len(extra.shape) < 2 || extra.shape[0] == 1) {
			bias, extra = extra, nil
		}
	}
	if extra != nil { // another bias for each row, or one for all
		y := c.new(onnx.Float32, shape)
		inst := c.inst
		c.extra = times(m, n, k)
		c.emit(y, func() { inst.product(y.f, a.f, b.f, nil, m, n, k, kernel.Identity) }, a, b)
		return c.binary(addOp, y, extra)
	}
	return c.multiply(a, b, bias, m, k, n, shape)
}

// multiply adds the step act(a·b + bias) for a [m, k] and b [k, n], with what follows in the graph.
func (c *compiler) multiply(a, b, bias *tensor, m, k, n int, shape []int) *tensor {
	columns := n
	if len(shape) == 0 {
		columns = -1 // adding a bias of one element to a scalar gives a list
	}
	p, name := c.merged(columns, bias)
	y := c.new(onnx.Float32, shape)
	inst := c.inst
	c.extra = times(m, n, k)
	c.step(func() {
		var add []float32
		if p.bias != nil {
			add = p.bias.f
		}
		inst.product(y.f, a.f, b.f, add, m, n, k, p.act)
	}, []*tensor{a, b, p.bias}, []*tensor{y})
	c.values[name] = y
	return y
}

func (c *compiler) matMul() *tensor {
	c.floats()
	a, b := c.in[0], c.in[1]
	if len(a.shape) == 0 || len(b.shape) == 0 {
		c.refuse("its inputs have the shapes %s, want matrices", shapes(a, b))
	}
	as, bs := a.shape, b.shape
	if len(as) == 1 {
		as = []int{1, as[0]}
	}
	if len(bs) == 1 {
		bs = []int{bs[0], 1}
	}
	m, k, n := as[len(as)-2], as[len(as)-1], bs[len(bs)-1]
	batch, ok := broadcast(as[:len(as)-2], bs[:len(bs)-2])
	if !ok || bs[len(bs)-2] != k {
		c.refuse("its inputs have the shapes %s, which do not fit", shapes(a, b))
	}
	shape := append([]int{}, batch...)
	if len(a.shape) > 1 {
		shape = append(shape, m)
	}
	if len(b.shape) > 1 {
		shape = append(shape, n)
	}
	if len(bs) == 2 { // one product for all rows
		rows := onnx.Len(as[:len(as)-1])
		if rows < 0 {
			c.refuse("its inputs have the shapes %s, which are too large", shapes(a, b))
		}
		return c.multiply(a, b, nil, rows, k, n, shape)
	}
	y := c.new(onnx.Float32, shape)
	full := func(batch []int, inner ...int) []int { return append(append([]int{}, batch...), inner...) }
	lead := func(s []int, each int) []int { // strides of the batch
		st := stretched(s[:len(s)-2], batch)
		for i := range st {
			st[i] *= each
		}
		return st
	}
	w := newWalk(full(batch, 1), full(lead(full(batch, m, n), m*n), 0), full(lead(as, m*k), 0), full(lead(bs, k*n), 0))
	length, s, each, inst := w.length, w.stride, times(m, n, k), c.inst
	run := func(at *[4]int) {
		for i := range length {
			if each > between/16 && inst.stopped() {
				return
			}
			inst.product(y.f[at[0]+i*s[0]:][:m*n], a.f[at[1]+i*s[1]:][:m*k], b.f[at[2]+i*s[2]:][:k*n], nil, m, n, k,
				kernel.Identity)
		}
	}
	c.extra = times(onnx.Len(batch), each)
	return c.emit(y, func() { w.each(run) }, a, b)
}

func (c *compiler) conv() *tensor {
	c.floats()
	x, weight, bias := c.in[0], c.in[1], c.has(2)
	xs, ws := x.shape, weight.shape
	line := len(xs) == 3 && len(ws) == 3
	if line { // an image of one row
		xs, ws = []int{xs[0], xs[1], 1, xs[2]}, []int{ws[0], ws[1], 1, ws[2]}
	}
	if len(xs) != 4 || len(ws) != 4 {
		c.refuse("its inputs have the shapes %s, want images [N, channels, rows, columns] and filters of as many dimensions",
			shapes(x, weight))
	}
	strides, pads := c.window(line)
	n, channels, h, w := xs[0], xs[1], xs[2], xs[3]
	filters, kh, kw := ws[0], ws[2], ws[3]
	// Padding that differs between sides is written down, even padding is the kernel's.
	g := kernel.Conv{H: h, W: w, C: channels, KH: kh, KW: kw, SH: strides[0], SW: strides[1]}
	if pads[0] == pads[2] && pads[1] == pads[3] && pads[0] < kh && pads[1] < kw {
		g.PH, g.PW, pads = pads[0], pads[1], make([]int, 4)
	} else {
		g.H, g.W = h+pads[0]+pads[2], w+pads[1]+pads[3]
	}
	if ws[1] != channels || bias != nil && (len(bias.shape) != 1 || bias.shape[0] != filters) || g.Check() != nil ||
		filters < 1 || n < 1 {
		c.refuse("its inputs have the shapes %s, which do not fit strides %v", shapes(x, weight), strides)
	}
	oh, ow, patch := g.OutH(), g.OutW(), g.Patch()
	shape := []int{n, filters, oh, ow}
	if line {
		shape = []int{n, filters, ow}
	}
	p, name := c.merged(-1, bias)
	turn := true // from channels last, as the kernels have them
	if k, next := c.follower(name); next != nil && !line && next.Op == "Transpose" && len(next.Outputs) == 1 {
		// which turns them back
		if perm := next.Attribute("perm"); perm != nil && slices.Equal(perm.Ints, []int64{0, 2, 3, 1}) {
			turn, shape, name = false, []int{n, oh, ow, filters}, next.Outputs[0]
			c.done[k] = true
		}
	}
	packed := c.ordered(weight, "filters", []int{patch, filters}, func(packed *tensor) {
		for m := range filters {
			for ch := range channels {
				for at := range kh * kw {
					packed.f[(at*channels+ch)*filters+m] = weight.f[(m*channels+ch)*kh*kw+at]
				}
			}
		}
	})
	var work [4]*tensor // images with channels last, their result, the kernel's own, and the final result
	for i, s := range [][]int{{n, g.H, g.W, channels}, {n, oh, ow, filters}, {g.Scratch(filters)}, shape} {
		if i == 1 && !turn {
			s = []int{0}
		}
		work[i] = c.new(onnx.Float32, s)
	}
	images, out, scratch, y, inst := work[0], work[1], work[2], work[3], c.inst
	c.extra = times(n, oh, ow, filters, patch)
	c.step(func() {
		src := x.f
		if channels > 1 || g.H != h || g.W != w {
			last(images.f, x.f, n, channels, h, w, pads[0], pads[1], g.H, g.W)
			src = images.f
		}
		var add []float32
		if p.bias != nil {
			add = p.bias.f
		}
		if filters == 1 || !turn {
			inst.convolution(y.f, src, packed.f, add, n, filters, &g, p.act, scratch.f)
			return
		}
		inst.convolution(out.f, src, packed.f, add, n, filters, &g, p.act, scratch.f)
		first(y.f, out.f, n, filters, oh*ow)
	}, []*tensor{x, packed, p.bias}, []*tensor{y, images, out, scratch})
	c.values[name] = y
	return y
}

// window returns the strides [down, across] of a convolution and the padding [top, left, bottom, right]. The settings
// of one over lines have one dimension.
func (c *compiler) window(line bool) (strides, pads []int) {
	read := func(name string, n, def int) []int {
		l := c.list(name)
		switch {
		case l == nil:
			return slices.Repeat([]int{def}, n)
		case line && len(l) == 1:
			return []int{1, l[0]}
		case line && n == 4 && len(l) == 2:
			return []int{0, l[0], 0, l[1]}
		}
		return l
	}
	c.list("kernel_shape") // is that of the filters
	strides, pads = read("strides", 2, 1), read("pads", 4, 0)
	dilations, group := read("dilations", 2, 1), c.int("group", 1)
	switch {
	case group != 1:
		c.refuse("it has %d groups, want 1", group)
	case len(dilations) != 2 || dilations[0] != 1 || dilations[1] != 1:
		c.refuse("it has the dilations %v, want 1", dilations)
	case len(strides) != 2 || len(pads) != 4 || slices.Min(pads) < 0 || slices.Max(pads) > 1<<16:
		c.refuse("it has the strides %v and the padding %v, want two and four numbers", strides, pads)
	}
	switch auto := c.text("auto_pad", "NOTSET"); auto {
	case "NOTSET", "":
	case "VALID":
		pads = make([]int, 4)
	default:
		c.refuse("its setting auto_pad is %.40q, want NOTSET or VALID", auto)
	}
	return strides, pads
}

// last writes images [n, channels, h, w] to dst [n, height, width, channels], beginning top rows down and left columns
// across.
func last(dst, src []float32, n, channels, h, w, top, left, height, width int) {
	if height != h || width != w {
		clear(dst[:n*height*width*channels])
	}
	for i := range n {
		for ch := range channels {
			for y := range h {
				from := src[((i*channels+ch)*h+y)*w:][:w]
				at := ((i*height+y+top)*width+left)*channels + ch
				for _, v := range from {
					dst[at] = v
					at += channels
				}
			}
		}
	}
}

// first writes images [n, size, channels] to dst [n, channels, size].
func first(dst, src []float32, n, channels, size int) {
	for i := range n {
		for ch := range channels {
			d := dst[(i*channels+ch)*size:][:size]
			for k := range d {
				d[k] = src[(i*size+k)*channels+ch]
			}
		}
	}
}
