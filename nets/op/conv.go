package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// Geometry holds a convolution's kernel, stride and zero padding as [down, across]; a zero stride means 1.
type Geometry struct {
	Kernel, Stride, Pad [2]int
}

// Conv returns the geometry over images of h rows, w columns and c channels.
func (g Geometry) Conv(h, w, c int) kernel.Conv {
	return kernel.Conv{H: h, W: w, C: c, KH: g.Kernel[0], KW: g.Kernel[1], SH: max(g.Stride[0], 1),
		SW: max(g.Stride[1], 1),
		PH: g.Pad[0], PW: g.Pad[1]}
}

// ConvColumns is act(x * w + b) for the images [H, W, C] that are the columns from, from+1, … of x [N, D], filters w
// [KH, KW, C, F] and b [F], or nil for none; the result is [N, OH, OW, F]. It copies no images. It is a matrix product
// over patches, of a few images at a time. If the patches in order are the image itself (kernel = stride over whole
// rows, or over pieces of one row), nothing is copied and the whole batch is one product. g.Apart is set to what x
// has.
func ConvColumns(x, w, b *gorgonia.Node, g kernel.Conv, from int, act Act) *gorgonia.Node {
	d, size := shape("conv", x, 2)[1], g.H*g.W*g.C
	need(from >= 0 && from+size <= d, "conv: images of %d columns from %d of %d", size, from, d)
	if size == d {
		g.Apart = 0
		return conv(Reshape(x, x.Shape()[0], g.H, g.W, g.C), w, b, g, 0, act)
	}
	g.Apart = d
	return conv(x, w, b, g, from, act)
}

// conv works on the images that begin at element from of the rows of x.
func conv(x, w, b *gorgonia.Node, g kernel.Conv, from int, act Act) *gorgonia.Node {
	ws := shape("conv", w, 4)
	if err := g.Check(); err != nil {
		panic(err)
	}
	need(ws[0] == g.KH && ws[1] == g.KW && ws[2] == g.C, "conv: filters %q have shape %v, want [%d %d %d F]", w.Name(), ws,
		g.KH, g.KW, g.C)
	n, filters, room := x.Shape()[0], ws[3], g.Scratch(ws[3])
	in := []*gorgonia.Node{x, w}
	if b != nil {
		bs := shape("conv", b, 1)
		need(bs[0] == filters, "conv: bias %q has shape %v, filters %v", b.Name(), bs, ws)
		in = append(in, b)
	}
	return apply(spec{
		name:    fmt.Sprintf("conv %v %v %v", g, from, act),
		out:     tensor.Shape{n, g.OutH(), g.OutW(), filters},
		scratch: room,
		diff:    len(in),
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			d := actGrad(out, grad, nil, act)
			alone := g // as for images whose gradients are contiguous
			alone.Apart = 0
			dx := convGradX(d, in[1], nil, tensor.Shape{n, g.H, g.W, g.C}, filters, alone, Identity)
			if g.Apart != 0 {
				dx = padColumns(Reshape(dx, n, g.H*g.W*g.C), from, g.Apart)
			}
			gs := gorgonia.Nodes{dx,
				apply(spec{name: fmt.Sprintf("conv-dw %v %v", g, from), out: ws, scratch: room},
					runConvGradW[float32](n, filters, g, from), runConvGradW[float64](n, filters, g, from), in[0], d),
			}
			if len(in) == 3 {
				gs = append(gs, colSums(Reshape(d, n*g.OutH()*g.OutW(), filters), nil))
			}
			return gs
		},
	}, runConv[float32](n, filters, g, from, act), runConv[float64](n, filters, g, from, act), in...)
}

func runConv[T kernel.Float](n, filters int, g kernel.Conv, from int, act Act) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) {
		var bias []T
		if len(in) == 3 {
			bias = in[2]
		}
		kernel.Convolve(out, in[0][from:], in[1], bias, n, filters, &g, act, scratch)
	}
}

// convGradX is the gradient with respect to the images, of shape xs; if x holds the values of the activation act, it
// is the gradient before that activation.
func convGradX(d, w, x *gorgonia.Node, xs tensor.Shape, filters int, g kernel.Conv, act Act) *gorgonia.Node {
	in := []*gorgonia.Node{d, w}
	s := spec{name: fmt.Sprintf("conv-dx %v %v", g, act), out: xs, scratch: g.Scratch(filters)}
	if x != nil {
		in = append(in, x)
	} else {
		s.before = func(in gorgonia.Nodes, x *gorgonia.Node, act Act) *gorgonia.Node {
			return convGradX(in[0], in[1], x, xs, filters, g, act)
		}
	}
	return apply(s, runConvGradX[float32](xs[0], filters, g, act), runConvGradX[float64](xs[0], filters, g, act), in...)
}

func runConvGradX[T kernel.Float](n, filters int, g kernel.Conv, act Act) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) {
		var x []T
		if len(in) == 3 {
			x = in[2]
		}
		kernel.ConvolveGradX(out, in[0], in[1], x, n, filters, &g, act, scratch)
	}
}

func runConvGradW[T kernel.Float](n, filters int, g kernel.Conv, from int) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) {
		kernel.ConvolveGradW(out, in[0][from:], in[1], n, filters, &g, scratch)
	}
}
