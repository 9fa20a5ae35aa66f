package run

import (
	"math"
	"slices"

	"clustergym/nets/kernel"
	"clustergym/nets/onnx"
)

func (c *compiler) softmax(logs bool) *tensor {
	c.floats()
	x := c.in[0]
	a := c.along(-1, len(x.shape))
	outer, n, inner := around(x.shape, a)
	if n == 0 {
		return c.same(x, x.shape)
	}
	y, run := c.new(x.typ, x.shape), softmax
	if logs {
		run = func(dst, src []float32, m, n int) { kernel.LogSoftmax(dst, src, nil, m, n) }
	}
	if inner == 1 {
		return c.emit(y, func() { run(y.f, x.f, outer, n) }, x)
	}
	row := c.new(x.typ, []int{n})
	c.step(func() {
		for o := range outer {
			for k := range inner {
				at := o*n*inner + k
				for j := range n {
					row.f[j] = x.f[at+j*inner]
				}
				run(row.f, row.f, 1, n)
				for j := range n {
					y.f[at+j*inner] = row.f[j]
				}
			}
		}
	}, []*tensor{x}, []*tensor{y, row})
	return y
}

// softmax sets each row of dst [m, n] to the softmax of src's. dst may be src.
func softmax(dst, src []float32, m, n int) {
	for i := range m {
		s, d := src[i*n:(i+1)*n], dst[i*n:(i+1)*n]
		top := slices.Max(s)
		for j, v := range s {
			d[j] = v - top
		}
		kernel.Exp(d, d)
		var sum float32
		for _, v := range d {
			sum += v
		}
		for j := range d {
			d[j] /= sum
		}
	}
}

func (c *compiler) layerNorm() *tensor {
	c.floats()
	x, scale, bias := c.in[0], c.in[1], c.has(2)
	a := c.along(-1, len(x.shape))
	eps := c.number("epsilon", 1e-5)
	c.firstAlone() // the others are mean and deviation
	rows, h := onnx.Len(x.shape[:a]), onnx.Len(x.shape[a:])
	if scale.len() != h || bias != nil && bias.len() != h {
		c.refuse("its inputs have the shapes %s, which do not fit", shapes(x, scale))
	}
	if bias == nil {
		bias = c.new(x.typ, []int{h})
		c.step(func() {}, nil, []*tensor{bias})
	}
	y := c.new(x.typ, x.shape)
	if eps == kernel.LayerNormEps {
		return c.emit(y, func() { kernel.LayerNorm(y.f, x.f, scale.f, bias.f, rows, h) }, x, scale, bias)
	}
	return c.emit(y, func() {
		for i := range rows {
			s, d := x.f[i*h:(i+1)*h], y.f[i*h:(i+1)*h]
			var mean, variance float32
			for _, v := range s {
				mean += v
			}
			mean /= float32(h)
			for _, v := range s {
				variance += (v - mean) * (v - mean)
			}
			inv := float32(1 / math.Sqrt(float64(variance/float32(h)+eps)))
			for j, v := range s {
				d[j] = scale.f[j]*((v-mean)*inv) + bias.f[j]
			}
		}
	}, x, scale, bias)
}

// reduction folds the numbers along some axes into one.
type reduction struct {
	pair
	begin float64
	limit bool // it begins at the type's own limit in place of begin
	mean  bool
}

var (
	sumReduction  = reduction{pair: addOp}
	meanReduction = reduction{pair: addOp, mean: true}
	prodReduction = reduction{pair: mulOp, begin: 1}
	maxReduction  = reduction{pair: maxOp, begin: -1, limit: true}
	minReduction  = reduction{pair: minOp, begin: 1, limit: true}
)

func reduces(r reduction) *operator {
	set := []string{"axes", "keepdims", "noop_with_empty_axes"}
	return &operator{1, 2, set, func(c *compiler) *tensor { return c.reduce(r) }}
}

func (c *compiler) reduce(r reduction) *tensor {
	x := c.in[0]
	list := c.list("axes")
	if list == nil {
		list = c.known(1, "axes")
	}
	keep, nothing := c.int("keepdims", 1), c.int("noop_with_empty_axes", 0)
	axes := c.axes(list, len(x.shape))
	if len(axes) == 0 {
		if nothing != 0 {
			return c.same(x, x.shape)
		}
		for a := range x.shape {
			axes = append(axes, a)
		}
	}
	if r.mean && !x.float() {
		c.refuse("its input has the type %v, want float32", x.typ)
	}
	var shape []int
	kept, count := slices.Clone(x.shape), 1
	for a, d := range x.shape {
		if slices.Contains(axes, a) {
			kept[a], count = 1, count*d
		}
		if keep != 0 || !slices.Contains(axes, a) {
			shape = append(shape, kept[a])
		}
	}
	if count == 0 {
		c.refuse("it has nothing to fold: the shape is %s", onnx.ShapeString(x.shape))
	}
	y := c.new(x.typ, shape)
	w := newWalk(x.shape, stridesOf(x.shape), stretched(kept, x.shape))
	n, sy := w.length, w.stride[1]
	if x.float() {
		begin := float32(r.begin)
		if r.limit {
			begin = float32(math.Inf(int(r.begin)))
		}
		run := func(at *[4]int) { gather(r.f, y.f[at[1]:], x.f[at[0]:at[0]+n], sy) }
		if r.fast == adding && sy == 1 {
			run = func(at *[4]int) { d := y.f[at[1] : at[1]+n]; kernel.Add(d, d, x.f[at[0]:]) }
		}
		return c.emit(y, func() {
			fill(y.f, begin)
			w.each(run)
			if r.mean {
				for k := range y.f {
					y.f[k] /= float32(count)
				}
			}
		}, x)
	}
	begin := int64(r.begin)
	if r.limit && begin < 0 {
		begin = math.MinInt64
	} else if r.limit {
		begin = math.MaxInt64
	}
	run := func(at *[4]int) { gather(r.i, y.i[at[1]:], x.i[at[0]:at[0]+n], sy) }
	return c.emit(y, func() {
		fill(y.i, begin)
		w.each(run)
		wrap(y.i, y.typ)
	}, x)
}

func fill[T number](x []T, v T) {
	for k := range x {
		x[k] = v
	}
}

func gather[T number](f func(a, b T) T, dst, src []T, stride int) {
	if stride == 0 {
		acc := dst[0]
		for _, v := range src {
			acc = f(acc, v)
		}
		dst[0] = acc
		return
	}
	for k, v := range src {
		dst[k*stride] = f(dst[k*stride], v)
	}
}

// chooses is ArgMax for sign 1 and ArgMin for -1.
func chooses(sign int) *operator {
	set := []string{"axis", "keepdims", "select_last_index"}
	return &operator{1, 1, set, func(c *compiler) *tensor { return c.arg(sign) }}
}

func (c *compiler) arg(sign int) *tensor {
	x := c.in[0]
	a := c.along(0, len(x.shape))
	keep, late := c.int("keepdims", 1), c.int("select_last_index", 0)
	outer, n, inner := around(x.shape, a)
	if n == 0 {
		c.refuse("it has nothing to choose from: the shape is %s", onnx.ShapeString(x.shape))
	}
	shape := slices.Clone(x.shape)
	if keep != 0 {
		shape[a] = 1
	} else {
		shape = slices.Delete(shape, a, a+1)
	}
	y := c.new(onnx.Int64, shape)
	if x.float() {
		return c.emit(y, func() { best(y.i, x.f, outer, n, inner, sign > 0, late != 0) }, x)
	}
	return c.emit(y, func() { best(y.i, x.i, outer, n, inner, sign > 0, late != 0) }, x)
}

func best[T number](dst []int64, x []T, outer, n, inner int, most, late bool) {
	for o := range outer {
		for k := range inner {
			at, found := o*n*inner+k, 0
			top := x[at]
			for j := 1; j < n; j++ {
				v := x[at+j*inner]
				if most && v > top || !most && v < top || late && v == top {
					top, found = v, j
				}
			}
			dst[o*inner+k] = int64(found)
		}
	}
}
