package kernel

import "fmt"

// Conv is the geometry of a two-dimensional convolution over images [H, W, C], channels of one position
// contiguous: kernel [KH, KW], strides SH and SW, PH rows and PW columns of zeros added on each side.
type Conv struct {
	H, W, C        int
	KH, KW, SH, SW int
	PH, PW         int
	// Apart is the distance in elements from one image to the next if images are pieces of longer rows; 0 = they are
	// contiguous. Gradients of such images are not computed.
	Apart int
}

// image returns the number of elements of an image, and apart the distance from one image to the next.
func (g *Conv) image() int { return g.H * g.W * g.C }

func (g *Conv) apart() int {
	if g.Apart == 0 {
		return g.image()
	}
	return g.Apart
}

// OutH returns the number of positions of the kernel down the image.
func (g *Conv) OutH() int { return (g.H+2*g.PH-g.KH)/g.SH + 1 }

// OutW returns the number of positions of the kernel across the image.
func (g *Conv) OutW() int { return (g.W+2*g.PW-g.KW)/g.SW + 1 }

// Patch returns the number of inputs that one position sees.
func (g *Conv) Patch() int { return g.KH * g.KW * g.C }

// Check returns an error if the geometry is impossible.
func (g *Conv) Check() error {
	switch {
	case g.H < 1 || g.W < 1 || g.C < 1 || g.KH < 1 || g.KW < 1 || g.SH < 1 || g.SW < 1:
		return fmt.Errorf("kernel: convolution %+v: sizes and strides must be positive", *g)
	case g.Apart != 0 && g.Apart < g.image():
		return fmt.Errorf("kernel: convolution %+v: images overlap", *g)
	case g.PH < 0 || g.PW < 0 || g.PH >= g.KH || g.PW >= g.KW:
		return fmt.Errorf("kernel: convolution %+v: padding must be less than the kernel", *g)
	case g.KH > g.H+2*g.PH || g.KW > g.W+2*g.PW:
		return fmt.Errorf("kernel: convolution %+v: kernel larger than the image", *g)
	}
	return nil
}

// Tiles reports whether the patches in order are the image itself: then the convolution is one product.
func (g *Conv) Tiles() bool {
	if g.PH != 0 || g.PW != 0 || g.apart() != g.image() {
		return false
	}
	if g.KW == g.W { // whole rows
		return g.KH == g.SH && g.H%g.KH == 0
	}
	return g.KH == 1 && g.SH == 1 && g.KW == g.SW && g.W%g.KW == 0 // pieces of rows
}

// im2Col writes the patches of images src [rows, H, W, C], which are g.apart() apart, to dst [rows, OutH, OutW, KH,
// KW, C], with zeros where a patch extends over the border. A convolution is then one matrix product.
func im2Col[T Float](dst, src []T, rows int, g *Conv) {
	oh, ow, line, run := g.OutH(), g.OutW(), g.W*g.C, g.KW*g.C
	at := 0
	for r := 0; r < rows; r++ {
		img := src[r*g.apart():][:g.H*line]
		for y := 0; y < oh; y++ {
			for x := 0; x < ow; x++ {
				x0 := x*g.SW - g.PW
				lo, hi := max(0, -x0), min(g.KW, g.W-x0)
				for ky := 0; ky < g.KH; ky++ {
					d := dst[at : at+run]
					at += run
					iy := y*g.SH - g.PH + ky
					if iy < 0 || iy >= g.H {
						clear(d)
						continue
					}
					if hi-lo == g.KW {
						from := iy*line + x0*g.C
						move(d, img[from:from+run])
						continue
					}
					clear(d)
					if hi > lo {
						copy(d[lo*g.C:hi*g.C], img[iy*line+(x0+lo)*g.C:iy*line+(x0+hi)*g.C])
					}
				}
			}
		}
	}
}

// move copies short runs without a call to memmove.
func move[T Float](d, s []T) {
	if len(d) > 16 {
		copy(d, s)
		return
	}
	s = s[:len(d)]
	for i := range d {
		d[i] = s[i]
	}
}

// col2Im is the transpose of im2Col: it adds the patches src back to images dst, which it clears first. A pixel's
// sum runs over positions in order.
func col2Im[T Float](dst, src []T, rows int, g *Conv) {
	oh, ow, line, run := g.OutH(), g.OutW(), g.W*g.C, g.KW*g.C
	clear(dst[:rows*g.H*line])
	at := 0
	for r := 0; r < rows; r++ {
		img := dst[r*g.H*line : (r+1)*g.H*line]
		for y := 0; y < oh; y++ {
			for x := 0; x < ow; x++ {
				x0 := x*g.SW - g.PW
				lo, hi := max(0, -x0), min(g.KW, g.W-x0)
				for ky := 0; ky < g.KH; ky++ {
					s := src[at : at+run]
					at += run
					iy := y*g.SH - g.PH + ky
					if iy < 0 || iy >= g.H || hi <= lo {
						continue
					}
					s = s[lo*g.C : hi*g.C]
					d := img[iy*line+(x0+lo)*g.C:]
					d = d[:len(s)]
					for i := range s {
						d[i] += s[i]
					}
				}
			}
		}
	}
}
