package kernel

import (
	"fmt"
	"testing"

	"clustergym/internal/rng"
)

// An image's results do not depend on the images beside it, and gradients of filters continue from those of the
// images before.
func TestImagesAreConvolvedOneByOne(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		r := rng.Stream(4, "images")
		for _, g := range []Conv{
			{H: 8, W: 16, C: 16, KH: 3, KW: 3, SH: 2, SW: 2, PH: 1, PW: 1},
			{H: 7, W: 9, C: 3, KH: 4, KW: 2, SH: 1, SW: 3, PH: 2},
			{H: 5, W: 40, C: 2, KH: 2, KW: 7, SH: 3, SW: 1, PW: 3},
		} {
			const rows, filters = 5, 33
			in, out := g.H*g.W*g.C, g.OutH()*g.OutW()*filters
			x, dy, w := noise[float32](r, rows*in), noise[float32](r, rows*out), noise[float32](r, g.Patch()*filters)
			bias, scratch := noise[float32](r, filters), make([]float32, g.Scratch(filters))
			y, dx := make([]float32, rows*out), make([]float32, rows*in)
			Convolve(y, x, w, bias, rows, filters, &g, Tanh, scratch)
			ConvolveGradX(dx, dy, w, x, rows, filters, &g, ReLU, scratch)
			y1, dx1 := make([]float32, out), make([]float32, in)
			for i := range rows {
				name := fmt.Sprintf("%+v, image %d", g, i)
				Convolve(y1, x[i*in:(i+1)*in], w, bias, 1, filters, &g, Tanh, scratch)
				equalBits(t, name, y1, y[i*out:(i+1)*out])
				ConvolveGradX(dx1, dy[i*out:(i+1)*out], w, x[i*in:(i+1)*in], 1, filters, &g, ReLU, scratch)
				equalBits(t, name+", gradient", dx1, dx[i*in:(i+1)*in])
			}
			dw, again := make([]float32, len(w)), make([]float32, len(w))
			ConvolveGradW(dw, x, dy, rows, filters, &g, scratch)
			ConvolveGradW(again, x, dy, rows, filters, &g, scratch)
			equalBits(t, "gradient of filters", again, dw)
		}
	})
}

// Images that are pieces of longer rows give the same bits as contiguous ones.
func TestImagesMayLieApart(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		r := rng.Stream(6, "apart")
		for _, g := range []Conv{
			{H: 20, W: 80, C: 1, KH: 20, KW: 8, SH: 20, SW: 8}, // one line of positions, many images in one walk
			{H: 6, W: 7, C: 2, KH: 3, KW: 2, SH: 3, SW: 1},     // two lines
			{H: 7, W: 9, C: 3, KH: 4, KW: 2, SH: 1, SW: 3, PH: 2},
			{H: 4, W: 6, C: 2, KH: 2, KW: 6, SH: 2, SW: 6}, // tiles, except that they are apart
		} {
			const rows, filters, from, beyond = 35, 17, 5, 3
			in, out := g.image(), g.OutH()*g.OutW()*filters
			wide := g
			wide.Apart = from + in + beyond
			if err := wide.Check(); err != nil {
				t.Fatal(err)
			}
			long := noise[float32](r, rows*wide.Apart)
			x := make([]float32, 0, rows*in)
			for i := range rows {
				x = append(x, long[i*wide.Apart+from:][:in]...)
			}
			dy, w, bias := noise[float32](r, rows*out), noise[float32](r, g.Patch()*filters), noise[float32](r, filters)
			scratch := make([]float32, max(g.Scratch(filters), wide.Scratch(filters)))
			want, got := make([]float32, rows*out), make([]float32, rows*out)
			wantW, gotW := make([]float32, len(w)), make([]float32, len(w))
			Convolve(want, x, w, bias, rows, filters, &g, ReLU, scratch)
			Convolve(got, long[from:], w, bias, rows, filters, &wide, ReLU, scratch)
			ConvolveGradW(wantW, x, dy, rows, filters, &g, scratch)
			ConvolveGradW(gotW, long[from:], dy, rows, filters, &wide, scratch)
			name := fmt.Sprintf("%+v", g)
			if g.Tiles() { // one product, whose sums another kernel may split differently
				almost(t, name, got, want)
				almost(t, name+", gradient", gotW, wantW)
				continue
			}
			equalBits(t, name, got, want)
			equalBits(t, name+", gradient", gotW, wantW)
		}
		g := Conv{H: 2, W: 3, C: 1, KH: 1, KW: 1, SH: 1, SW: 1, Apart: 5}
		if g.Check() == nil {
			t.Error("images of 6 elements that are 5 apart are accepted")
		}
	})
}

func almost(t *testing.T, name string, got, want []float32) {
	t.Helper()
	w := make([]float64, len(want))
	for i, x := range want {
		w[i] = float64(x)
	}
	close64(t, name, got, w, 2e-5)
}

// The gradients of y with respect to w and x, computed position by position in float64.
func TestGradientsOfConvolutionsEqualTheirDefinition(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		r := rng.Stream(5, "gradients")
		for _, g := range []Conv{
			{H: 6, W: 5, C: 2, KH: 3, KW: 3, SH: 2, SW: 2, PH: 1, PW: 1},
			{H: 9, W: 4, C: 1, KH: 2, KW: 3, SH: 4, SW: 1, PW: 2},    // rows that no position sees
			{H: 12, W: 12, C: 1, KH: 2, KW: 2, SH: 9, SW: 10, PH: 1}, // strides beyond maxStride
		} {
			const rows, filters = 2, 3
			x, dy := noise[float32](r, rows*g.H*g.W*g.C), noise[float32](r, rows*g.OutH()*g.OutW()*filters)
			w, scratch := noise[float32](r, g.Patch()*filters), make([]float32, g.Scratch(filters))
			wantX, wantW := make([]float64, len(x)), make([]float64, len(w))
			at := 0
			for i := range rows {
				for oy := range g.OutH() {
					for ox := range g.OutW() {
						for ky := range g.KH {
							for kx := range g.KW {
								iy, ix := oy*g.SH-g.PH+ky, ox*g.SW-g.PW+kx
								if iy < 0 || iy >= g.H || ix < 0 || ix >= g.W {
									continue
								}
								for c := range g.C {
									p, q := ((i*g.H+iy)*g.W+ix)*g.C+c, ((ky*g.KW+kx)*g.C+c)*filters
									for f := range filters {
										wantX[p] += float64(dy[at+f]) * float64(w[q+f])
										wantW[q+f] += float64(dy[at+f]) * float64(x[p])
									}
								}
							}
						}
						at += filters
					}
				}
			}
			dx, dw := noise[float32](r, len(x)), noise[float32](r, len(w))
			ConvolveGradX(dx, dy, w, nil, rows, filters, &g, Identity, scratch)
			close64(t, fmt.Sprintf("%+v images", g), dx, wantX, 2e-5)
			ConvolveGradW(dw, x, dy, rows, filters, &g, scratch)
			close64(t, fmt.Sprintf("%+v filters", g), dw, wantW, 2e-5)
		}
	})
}
