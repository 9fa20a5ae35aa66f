package encode_test

import (
	"math"
	"testing"
	"time"

	"clustergym/env/encode"
)

func TestScales(t *testing.T) {
	day := 24 * time.Hour
	for _, x := range []struct {
		what      string
		got, want float32
	}{
		{"L(0)", encode.L(0), 0},
		{"L(-1)", encode.L(-1), 0},
		{"L(1 min)", encode.L(float64(time.Minute)), float32(math.Ln2 / math.Log(20161))},
		{"L(14 d)", encode.L(float64(14 * day)), 1},
		{"L(1 y)", encode.L(float64(365 * day)), 1},
		{"L(inf)", encode.L(math.Inf(1)), 1},
		{"C(0, 9)", encode.C(0, 9), 0},
		{"C(-1, 9)", encode.C(-1, 9), 0},
		{"C(3, 15)", encode.C(3, 15), 0.5},
		{"C(99, 9)", encode.C(99, 9), 1},
	} {
		if math.Abs(float64(x.got-x.want)) > 1e-7 {
			t.Errorf("%s = %v, want %v", x.what, x.got, x.want)
		}
	}
}

// Cell h of a bar of length x is clip((x−b_h)/(b_{h+1}−b_h), 0, 1), with b_0 = 0 and b_h = 60 s·20160^((h−1)/19).
func TestBarsAgainstTheFormula(t *testing.T) {
	edges := make([]float64, 21)
	for h := 1; h <= 20; h++ {
		edges[h] = 60e9 * math.Pow(20160, float64(h-1)/19)
	}
	if math.Abs(edges[2]/60e9-1.68) > 0.01 || math.Abs(edges[19]/86400e9-8.3) > 0.05 ||
		math.Abs(edges[20]/86400e9-14) > 1e-9 {
		t.Fatalf("the edges are %v", edges)
	}
	linear := make([]float64, 21)
	for h := range linear {
		linear[h] = 241.5e9 * float64(h)
	}
	for name, x := range map[string]struct {
		axis *encode.Axis
		edge []float64
	}{"log": {encode.LogAxis(), edges}, "linear": {encode.LinearAxis(241500 * time.Millisecond), linear}} {
		t.Run(name, func(t *testing.T) {
			lengths := []float64{-1, 0, 1, 59e9, 1e14, 86400e9 * 14, 1e17, math.Inf(1), math.NaN()}
			for _, b := range x.edge {
				lengths = append(lengths, b, b*1.0001+1, b*0.9999)
			}
			for v := 1e9; v < 3e15; v *= 1.37 {
				lengths = append(lengths, v)
			}
			for _, v := range lengths {
				full, part := x.axis.Bar(v)
				for h := range 20 {
					want := min(1, max(0, (v-x.edge[h])/(x.edge[h+1]-x.edge[h])))
					if math.IsNaN(v) {
						want = 0
					}
					got := float32(0)
					if h < full {
						got = 1
					} else if h == full {
						got = part
					}
					if math.Abs(float64(got)-want) > 1e-6 {
						t.Errorf("%v ns: cell %d is %v, want %v", v, h, got, want)
					}
				}
				if full > 20 || part < 0 || part > 1 || full == 20 && part != 0 {
					t.Errorf("%v ns: %d full cells and %v", v, full, part)
				}
			}
		})
	}
}

func BenchmarkBar(b *testing.B) {
	axis, sum := encode.LogAxis(), float32(0)
	for b.Loop() {
		_, p := axis.Bar(1.234e13)
		sum += p
	}
}
