package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// Geometry is a convolution's kernel, stride and zero padding as [down, across]; a zero stride means 1.
type Geometry struct {
	Kernel, Stride, Pad [2]int
}

// Conv is the geometry over images of h rows, w columns and c channels.
func (g Geometry) Conv(h, w, c int) kernel.Conv {
	return kernel.Conv{H: h, W: w, C: c, KH: g.Kernel[0], KW: g.Kernel[1], SH: max(g.Stride[0], 1), SW: max(g.Stride[1], 1),
		PH: g.Pad[0], PW: g.Pad[1]}
}

// Conv2D is act(x * w + b) for images x [N, H, W, C], filters w [KH, KW, C, F] and b [F], or nil for none; the
// result is [N, OH, OW, F]. The whole batch is one matrix product over patches; where the patches in order are
// the image itself (kernel = stride over whole rows, or over pieces of one row) nothing is copied for it.
func Conv2D(x, w, b *gorgonia.Node, geom Geometry, act Act) *gorgonia.Node {
	xs, ws := shape("conv", x, 4), shape("conv", w, 4)
	g := geom.Conv(xs[1], xs[2], xs[3])
	if err := g.Check(); err != nil {
		panic(err)
	}
	need(ws[0] == g.KH && ws[1] == g.KW && ws[2] == g.C, "conv: filters %q have shape %v, want [%d %d %d F]", w.Name(), ws, g.KH, g.KW, g.C)
	rows := xs[0] * g.OutH() * g.OutW()
	var patches *gorgonia.Node
	if g.Tiles() {
		patches = Reshape(x, rows, g.Patch())
	} else {
		patches = im2Col(x, g)
	}
	y := Dense(patches, Reshape(w, g.Patch(), ws[3]), b, act)
	return Reshape(y, xs[0], g.OutH(), g.OutW(), ws[3])
}

func im2Col(x *gorgonia.Node, g kernel.Conv) *gorgonia.Node {
	n := x.Shape()[0]
	return apply(spec{
		name: fmt.Sprintf("im2col %v", g),
		out:  tensor.Shape{n * g.OutH() * g.OutW(), g.Patch()},
		diff: []bool{true},
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{col2Im(grad, n, g)}
		},
	}, runIm2Col[float32](n, g), runIm2Col[float64](n, g), x)
}

func runIm2Col[T kernel.Float](n int, g kernel.Conv) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.Im2Col(out, in[0], n, &g) }
}

func col2Im(d *gorgonia.Node, n int, g kernel.Conv) *gorgonia.Node {
	return apply(spec{name: fmt.Sprintf("col2im %v", g), out: tensor.Shape{n, g.H, g.W, g.C}},
		runCol2Im[float32](n, g), runCol2Im[float64](n, g), d)
}

func runCol2Im[T kernel.Float](n int, g kernel.Conv) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.Col2Im(out, in[0], n, &g) }
}
