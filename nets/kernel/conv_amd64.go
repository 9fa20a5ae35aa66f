package kernel

// Convolutions without patches: the elements that a position sees in one line of an image are contiguous, so the
// product reads its factors from the image itself, line after line.

// If the image has borders, convolve copies one image with its borders at a time.
func (v *vectors[M]) convolve(y, x, w, bias []float32, rows, filters int, g *Conv, act Act, scratch []float32) {
	oh, ow := g.OutH(), g.OutW()
	in, line := g.bordered(x, 0, scratch)
	steps := walk{outer: g.KH, k: g.KW * g.C, aRow: g.SW * g.C * word, aStep: word, aSkip: (line - g.KW*g.C) * word,
		bStep: filters * word, cRow: filters * word, relu: act == ReLU}
	var begin *float32
	if bias != nil {
		begin = &bias[0]
	}
	tiles := v.grid(ow, filters)
	for i := range rows {
		if i > 0 {
			in, _ = g.bordered(x, i, scratch)
		}
		for r := range oh {
			to := y[(i*oh+r)*ow*filters : (i*oh+r+1)*ow*filters]
			v.strided(&to[0], &in[r*g.SH*line], &w[0], begin, &tiles, &steps)
			if act == Tanh {
				v.activate(to, to, Tanh)
			}
		}
	}
}

// bordered returns image i of x with the zeros around it that positions see, and the length of its lines. Without
// borders it copies nothing.
func (g *Conv) bordered(x []float32, i int, scratch []float32) (img []float32, line int) {
	short, line := g.W*g.C, g.line()
	img = x[i*g.apart():][:g.H*short]
	if g.PH == 0 && g.PW == 0 {
		return img, line
	}
	out := scratch[:g.paddedH()*line]
	if i == 0 { // the zeros stay for the following images
		clear(out[:g.PH*line])
		clear(out[(g.PH+g.H)*line:])
	}
	for r := range g.H {
		to := out[(r+g.PH)*line:][:line]
		if i == 0 {
			clear(to[:g.PW*g.C])
			clear(to[g.PW*g.C+short:])
		}
		copy(to[g.PW*g.C:], img[r*short:(r+1)*short])
	}
	return out, line
}

// line returns the length of the lines that bordered returns.
func (g *Conv) line() int {
	if g.PH == 0 && g.PW == 0 {
		return g.W * g.C
	}
	return g.paddedW() * g.C
}

// together is the number of images whose gradients are added in one walk. This requires that the elements seen by one
// line of the filters are at equal distances across images. What every line of the filters reads again then stays in
// the first-level cache.
const together = 16

// convGradW adds image after image, and one line of the filters after another.
func (v *vectors[M]) convGradW(dw, x, dy []float32, rows, filters int, g *Conv, scratch []float32) {
	oh, ow := g.OutH(), g.OutW()
	pos, run := oh*ow, g.KW*g.C
	clear(dw[:g.Patch()*filters])
	most, further := 1, g.SH*g.line()
	if g.PH == 0 && g.PW == 0 && (oh == 1 || g.apart() == oh*further) {
		most = together
		if oh == 1 {
			further = g.apart()
		}
	}
	tiles := v.grid(run, filters)
	for i := 0; i < rows; i += most {
		images := min(most, rows-i)
		in, line := g.bordered(x, i, scratch)
		from := dy[i*pos*filters : (i+images)*pos*filters]
		steps := walk{outer: images * oh, k: ow, aRow: word, aStep: g.SW * g.C * word, aSkip: (further - ow*g.SW*g.C) * word,
			bStep: filters * word, cRow: filters * word, initRow: filters * word}
		for ky := range g.KH {
			to := dw[ky*run*filters : (ky+1)*run*filters]
			v.strided(&to[0], &in[ky*line], &from[0], &to[0], &tiles, &steps)
		}
	}
}

// convGradX handles pixels that are a stride apart together: they see the same elements of the filters, which are
// transposed and laid out in the order of the positions.
func (v *vectors[M]) convGradX(dx, dy, w, x []float32, rows, filters int, g *Conv, act Act, scratch []float32) {
	if g.SH > maxStride || g.SW > maxStride {
		convGradX(dx, dy, w, x, rows, filters, g, act, scratch)
		return
	}
	down, across := g.taps()
	turned, out := scratch[:g.Patch()*filters], scratch[g.Patch()*filters:]
	line, short := across.padded()*filters, across.out*filters
	out = out[:down.padded()*line]
	clear(out)
	at := 0
	for ry := range min(g.SH, g.H) {
		for rx := range min(g.SW, g.W) {
			for ny := range down.count[ry] {
				ky := down.lowest[ry] + g.SH*(down.count[ry]-1-ny)
				for nx := range across.count[rx] {
					kx := across.lowest[rx] + g.SW*(across.count[rx]-1-nx)
					v.turn(turned[at:], w[(ky*g.KW+kx)*g.C*filters:], g.C, filters, g.C, filters)
					at += g.C * filters
				}
			}
		}
	}
	img := g.image()
	for i := range rows {
		for r := range down.out {
			copy(out[(r+down.below)*line+across.below*filters:], dy[(i*down.out+r)*short:(i*down.out+r+1)*short])
		}
		to := dx[i*img : (i+1)*img]
		at := 0
		for ry := range min(g.SH, g.H) {
			for rx := range min(g.SW, g.W) {
				ny, nx := down.count[ry], across.count[rx]
				v.pixels(to, out, turned[at:], ry, rx, line, filters, g, &down, &across)
				at += ny * nx * g.C * filters
			}
		}
		if act != Identity {
			v.actGrad(to, x[i*img:(i+1)*img], to, act)
		}
	}
}

// pixels computes the pixels of rows ry + SH·q and columns rx + SW·p of one image.
func (v *vectors[M]) pixels(to, out, w []float32, ry, rx, line, filters int, g *Conv, down, across *taps) {
	ny, nx := down.count[ry], across.count[rx]
	n := (g.W - rx + g.SW - 1) / g.SW
	tiles := v.grid(n, g.C)
	steps := walk{outer: ny, k: nx * filters, aRow: filters * word, aStep: word, aSkip: (line - nx*filters) * word,
		bStep: g.C * word, cRow: g.SW * g.C * word}
	for q := 0; ry+g.SH*q < g.H; q++ {
		row := to[(ry+g.SH*q)*g.W*g.C:]
		if ny*nx == 0 { // no position sees them
			for p := range n {
				clear(row[(rx+g.SW*p)*g.C : (rx+g.SW*p+1)*g.C])
			}
			continue
		}
		a := &out[(down.first[ry]+down.below+q)*line+(across.first[rx]+across.below)*filters]
		v.strided(&row[rx*g.C], a, &w[0], nil, &tiles, &steps)
	}
}
