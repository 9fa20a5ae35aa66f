package kernel

// inside is the range of positions across whose patches lie within the image's columns.
func (g *Conv) inside() (from, to int) {
	from = min((g.PW+g.SW-1)/g.SW, g.OutW())
	to = g.OutW()
	if last := g.W - g.KW + g.PW; last < 0 {
		to = from
	} else {
		to = max(from, min(to, last/g.SW+1))
	}
	return from, to
}

// im2Col copies the parts of all patches of one line of the image that are whole in one go.
func (v *vectors[M]) im2Col(dst, src []float32, rows int, g *Conv) {
	oh, ow, line, run, patch := g.OutH(), g.OutW(), g.W*g.C, g.KW*g.C, g.Patch()
	from, to := g.inside()
	mask := v.mask(run % v.lanes)
	for r := 0; r < rows; r++ {
		img := src[r*g.H*line : (r+1)*g.H*line]
		for y := 0; y < oh; y++ {
			d := dst[(r*oh+y)*ow*patch : (r*oh+y+1)*ow*patch]
			for ky := 0; ky < g.KH; ky++ {
				iy := y*g.SH - g.PH + ky
				if iy < 0 || iy >= g.H {
					for x := range ow {
						clear(d[x*patch+ky*run : x*patch+(ky+1)*run])
					}
					continue
				}
				if to > from {
					v.copyRows(&d[from*patch+ky*run], &img[iy*line+(from*g.SW-g.PW)*g.C], to-from, patch*word, g.SW*g.C*word, run, mask)
				}
				for x := 0; x < ow; x++ {
					if x == from {
						if x = to; x == ow {
							break
						}
					}
					x0 := x*g.SW - g.PW
					lo, hi := max(0, -x0), min(g.KW, g.W-x0)
					part := d[x*patch+ky*run : x*patch+(ky+1)*run]
					clear(part)
					if hi > lo {
						copy(part[lo*g.C:hi*g.C], img[iy*line+(x0+lo)*g.C:])
					}
				}
			}
		}
	}
}

// col2Im adds what im2Col copies. A pixel still sums over positions in order.
func (v *vectors[M]) col2Im(dst, src []float32, rows int, g *Conv) {
	oh, ow, line, run, patch := g.OutH(), g.OutW(), g.W*g.C, g.KW*g.C, g.Patch()
	from, to := g.inside()
	mask := v.mask(run % v.lanes)
	clear(dst[:rows*g.H*line])
	for r := 0; r < rows; r++ {
		img := dst[r*g.H*line : (r+1)*g.H*line]
		for y := 0; y < oh; y++ {
			s := src[(r*oh+y)*ow*patch : (r*oh+y+1)*ow*patch]
			for ky := 0; ky < g.KH; ky++ {
				iy := y*g.SH - g.PH + ky
				if iy < 0 || iy >= g.H {
					continue
				}
				for x := 0; x < ow; x++ {
					if x == from && to > from {
						v.addRows(&img[iy*line+(from*g.SW-g.PW)*g.C], &s[from*patch+ky*run], to-from, g.SW*g.C*word, patch*word, run, mask)
						if x = to; x == ow {
							break
						}
					}
					x0 := x*g.SW - g.PW
					lo, hi := max(0, -x0), min(g.KW, g.W-x0)
					if hi <= lo {
						continue
					}
					part := s[x*patch+ky*run+lo*g.C : x*patch+ky*run+hi*g.C]
					d := img[iy*line+(x0+lo)*g.C:]
					d = d[:len(part)]
					for i := range d {
						d[i] += part[i]
					}
				}
			}
		}
	}
}
