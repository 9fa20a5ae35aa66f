package kernel

// patchRoom is the number of elements of patches that are laid out at a time: few enough to be in the second-level
// cache when the product reads them.
const patchRoom = 32 << 10

// images returns the number of images whose patches are laid out at a time.
func (g *Conv) images() int { return max(1, patchRoom/(g.OutH()*g.OutW()*g.Patch())) }

// Scratch returns the elements of working memory that Convolve, ConvolveGradW and ConvolveGradX need with that many
// filters, for any number of images.
func (g *Conv) Scratch(filters int) int {
	n := g.Patch() * filters
	if !g.Tiles() {
		down, across := g.taps()
		n += max(g.images()*g.OutH()*g.OutW()*g.Patch(), g.paddedH()*g.paddedW()*g.C, down.padded()*across.padded()*filters)
	}
	return n
}

// paddedH and paddedW return the extent of the image with borders that positions see.
func (g *Conv) paddedH() int { return max((g.OutH()-1)*g.SH+g.KH, g.H+g.PH) }
func (g *Conv) paddedW() int { return max((g.OutW()-1)*g.SW+g.KW, g.W+g.PW) }

// Convolve sets y [rows, OutH, OutW, filters] to act(x * w + bias) for images x [rows, H, W, C] and w [Patch,
// filters]; bias [filters] may be nil. Images are g.Apart apart. scratch needs Scratch elements; the same holds for
// the gradients.
func Convolve[T Float](y, x, w, bias []T, rows, filters int, g *Conv, act Act, scratch []T) {
	if g.Tiles() {
		MatMul(y, x, w, bias, rows*g.OutH()*g.OutW(), filters, g.Patch(), act)
		return
	}
	inUse[T]().convolve(y, x, w, bias, rows, filters, g, act, scratch)
}

// ConvolveGradW sets dw [Patch, filters] to the gradient of the filters, from dy, the gradient before the activation.
// Its sums run over images and positions in order.
func ConvolveGradW[T Float](dw, x, dy []T, rows, filters int, g *Conv, scratch []T) {
	if g.Tiles() {
		MatMulTN(dw, x, dy, rows*g.OutH()*g.OutW(), filters, g.Patch())
		return
	}
	inUse[T]().convGradW(dw, x, dy, rows, filters, g, scratch)
}

// ConvolveGradX sets dx to the gradient of the images, which must be contiguous, from dy as in ConvolveGradW. If the
// images are the values x of an activation, dx is the gradient before that activation.
func ConvolveGradX[T Float](dx, dy, w, x []T, rows, filters int, g *Conv, act Act, scratch []T) {
	if g.Tiles() {
		MatMulNT(dx, dy, w, rows*g.OutH()*g.OutW(), g.Patch(), filters, scratch)
		if act != Identity {
			n := rows * g.image()
			ActGrad(dx[:n], x[:n], dx[:n], act)
		}
		return
	}
	inUse[T]().convGradX(dx, dy, w, x, rows, filters, g, act, scratch)
}

func convolve[T Float](y, x, w, bias []T, rows, filters int, g *Conv, act Act, scratch []T) {
	pos, patch, step := g.OutH()*g.OutW(), g.Patch(), g.images()
	for i := 0; i < rows; i += step {
		n := min(step, rows-i)
		im2Col(scratch, x[i*g.apart():], n, g)
		matMul(y[i*pos*filters:], scratch, w, bias, n*pos, filters, patch, act)
	}
}

func convGradW[T Float](dw, x, dy []T, rows, filters int, g *Conv, scratch []T) {
	pos, patch, step := g.OutH()*g.OutW(), g.Patch(), g.images()
	clear(dw[:patch*filters])
	for i := 0; i < rows; i += step {
		n := min(step, rows-i)
		im2Col(scratch, x[i*g.apart():], n, g)
		addMatMulTN(dw, scratch, dy[i*pos*filters:], n*pos, filters, patch)
	}
}

func convGradX[T Float](dx, dy, w, x []T, rows, filters int, g *Conv, act Act, scratch []T) {
	pos, patch, img, step := g.OutH()*g.OutW(), g.Patch(), g.image(), g.images()
	turned, scratch := scratch[:patch*filters], scratch[patch*filters:]
	for i := 0; i < rows; i += step {
		n := min(step, rows-i)
		matMulNT(scratch, dy[i*pos*filters:], w, n*pos, patch, filters, turned)
		col2Im(dx[i*img:], scratch, n, g)
	}
	if act != Identity {
		actGrad(dx[:rows*img], x[:rows*img], dx[:rows*img], act)
	}
}

// taps describes, for one dimension, which positions see each row of the image. Row r + stride·q, with r below the
// stride, is seen by positions first[r]+q to first[r]+q+count[r]-1. The last of them sees it through element
// lowest[r] of the kernel, and each position before it through the element that is stride higher.
type taps struct {
	stride               int
	first, count, lowest [maxStride]int
	out                  int // positions
	below, above         int // positions before the first and after the last that rows would see
}

// maxStride is the largest stride for which gradients are computed without patches.
const maxStride = 8

func (t *taps) padded() int { return t.below + t.out + t.above }

// taps returns the taps down and across. Strides above maxStride have none.
func (g *Conv) taps() (down, across taps) {
	return tapsOf(g.H, g.KH, g.SH, g.PH, g.OutH()), tapsOf(g.W, g.KW, g.SW, g.PW, g.OutW())
}

func tapsOf(size, kernel, stride, pad, out int) taps {
	t := taps{stride: stride, out: out}
	if stride > maxStride {
		return t
	}
	for r := range min(stride, size) {
		t.lowest[r] = (r + pad) % stride
		if t.lowest[r] >= kernel {
			continue
		}
		t.count[r] = (kernel - t.lowest[r] + stride - 1) / stride
		t.first[r] = (r+pad-t.lowest[r])/stride - t.count[r] + 1
		last := t.first[r] + t.count[r] - 1 + (size-1-r)/stride
		t.below, t.above = max(t.below, -t.first[r]), max(t.above, last-(out-1))
	}
	return t
}
