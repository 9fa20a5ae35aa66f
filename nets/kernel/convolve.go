package kernel

// patchRoom is how many elements of patches are laid out at a time: few enough to be in the second-level cache when
// the product reads them.
const patchRoom = 32 << 10

// images is the number of images whose patches are laid out at a time.
func (g *Conv) images() int { return max(1, patchRoom/(g.OutH()*g.OutW()*g.Patch())) }

// Scratch is the working memory of Convolve, ConvolveGradW and ConvolveGradX with that many filters, for any number
// of images.
func (g *Conv) Scratch(filters int) int {
	n := g.Patch() * filters
	if !g.Tiles() {
		n += g.images() * g.OutH() * g.OutW() * g.Patch()
	}
	return n
}

// Convolve sets y [rows, OutH, OutW, filters] to act(x * w + bias) for images x [rows, H, W, C] and w
// [Patch, filters]; bias [filters] may be nil. It needs scratch of Scratch elements, as its gradients do.
func Convolve[T Float](y, x, w, bias []T, rows, filters int, g *Conv, act Act, scratch []T) {
	pos, patch, img := g.OutH()*g.OutW(), g.Patch(), g.H*g.W*g.C
	if g.Tiles() {
		MatMul(y, x, w, bias, rows*pos, filters, patch, act)
		return
	}
	step := g.images()
	for i := 0; i < rows; i += step {
		n := min(step, rows-i)
		Im2Col(scratch, x[i*img:], n, g)
		MatMul(y[i*pos*filters:], scratch, w, bias, n*pos, filters, patch, act)
	}
}

// ConvolveGradW sets dw [Patch, filters] to the gradient of the filters, from dy, the gradient before the activation.
// Its sums run over images and positions in order.
func ConvolveGradW[T Float](dw, x, dy []T, rows, filters int, g *Conv, scratch []T) {
	pos, patch, img := g.OutH()*g.OutW(), g.Patch(), g.H*g.W*g.C
	if g.Tiles() {
		MatMulTN(dw, x, dy, rows*pos, filters, patch)
		return
	}
	step := g.images()
	clear(dw[:patch*filters])
	for i := 0; i < rows; i += step {
		n := min(step, rows-i)
		Im2Col(scratch, x[i*img:], n, g)
		AddMatMulTN(dw, scratch, dy[i*pos*filters:], n*pos, filters, patch)
	}
}

// ConvolveGradX sets dx to the gradient of the images, from dy as in ConvolveGradW.
func ConvolveGradX[T Float](dx, dy, w []T, rows, filters int, g *Conv, scratch []T) {
	pos, patch, img := g.OutH()*g.OutW(), g.Patch(), g.H*g.W*g.C
	turned, scratch := scratch[:patch*filters], scratch[patch*filters:]
	if g.Tiles() {
		MatMulNT(dx, dy, w, rows*pos, patch, filters, turned)
		return
	}
	step := g.images()
	for i := 0; i < rows; i += step {
		n := min(step, rows-i)
		MatMulNT(scratch, dy[i*pos*filters:], w, n*pos, patch, filters, turned)
		Col2Im(dx[i*img:], scratch, n, g)
	}
}
