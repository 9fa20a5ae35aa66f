package control

import (
	"math"
	"math/big"
	"testing"

	"clustergym/internal/rng"
)

// bigSeries sums r·(1 - x²/((n+1)(n+2))·(…)): x and 1 give the sine, 1 and 0 the cosine.
func bigSeries(x, r *big.Float, n int64) *big.Float {
	z := new(big.Float).Mul(x, x)
	sum, term := new(big.Float).Set(r), new(big.Float).Set(r)
	for ; term.Sign() != 0 && term.MantExp(nil) > -250; n += 2 {
		term.Mul(term, z)
		term.Quo(term, new(big.Float).SetInt64((n+1)*(n+2)))
		term.Neg(term)
		sum.Add(sum, term)
	}
	return sum
}

func bigSincos(x float64) (sin, cos float64) {
	prec := uint(320 + 4*math.Abs(x)) // the terms grow to e^|x| before they cancel
	b := new(big.Float).SetPrec(prec).SetFloat64(x)
	sin, _ = bigSeries(b, b, 1).Float64()
	cos, _ = bigSeries(b, new(big.Float).SetPrec(prec).SetInt64(1), 0).Float64()
	return sin, cos
}

func TestSineAndCosineAreCorrectlyRounded(t *testing.T) {
	xs := []float64{
		0, 5e-324, 0x1p-1022, 0x1p-28, 0x1p-27, 0x1.fp-27, 1e-5, math.Pi / 4, math.Nextafter(math.Pi/4,
			4), math.Pi / 2, math.Pi,
		3 * math.Pi / 2, 2 * math.Pi, 11, 22, 0.7, 1, 2, 3, 100 * math.Pi, 30,
		// Angles that glibc 2.36 and others round the other way.
		0x1.3p-3, 0x1.921fb54442d19p+0, 0x1.921fb54442d17p+0,
	}
	src := rng.Stream(1, "angles")
	for _, c := range []struct {
		scale float64
		n     int
	}{{0.21, 1500}, {3.7, 1500}, {25, 700}, {1e-4, 150}, {90, 50}} {
		for range c.n {
			xs = append(xs, c.scale*(2*src.Float64()-1))
		}
	}
	goDiffers := 0
	for _, x := range xs {
		sin, cos := sincos(x)
		wantSin, wantCos := bigSincos(x)
		if sin != wantSin || cos != wantCos {
			t.Fatalf("sincos(%x) = %x, %x, want %x, %x", x, sin, cos, wantSin, wantCos)
		}
		if s, c := sincos(-x); s != -sin || c != cos {
			t.Fatalf("sincos(%x) = %x, %x, want %x, %x", -x, s, c, -sin, cos)
		}
		if math.Sin(x) != wantSin || math.Cos(x) != wantCos {
			goDiffers++
		}
	}
	t.Logf("package math differs in %d of %d angles", goDiffers, len(xs))
	if sin, _ := sincos(math.Copysign(0, -1)); !math.Signbit(sin) {
		t.Error("sin(-0) has lost its sign")
	}
}

// The slow path is rare, so this test uses it for every angle.
func TestTheSlowSeriesIsCorrectlyRoundedToo(t *testing.T) {
	src := rng.Stream(2, "angles")
	for range 1500 {
		x := math.Pi / 4 * (2*src.Float64() - 1)
		z := x * x
		zl := math.FMA(x, x, -z)
		wantSin, wantCos := bigSincos(x)
		if sin, cos := series(x, 0, z, zl, 1), series(1, 0, z, zl, 0); sin != wantSin || cos != wantCos {
			t.Fatalf("series at %x = %x, %x, want %x, %x", x, sin, cos, wantSin, wantCos)
		}
	}
}

func TestHalfPiHas161Bits(t *testing.T) {
	// The reduced angle of the float64 next to k·pi/2 reveals the value used for pi/2: sin(k·pi) is its error.
	for k := 1; k <= 20; k++ {
		x := float64(k) * math.Pi
		sin, _ := sincos(x)
		want, _ := bigSincos(x)
		if sin != want {
			t.Errorf("sin(%d·pi) = %v, want %v", k, sin, want)
		}
	}
}

func TestAnglesOutOfRangePanic(t *testing.T) {
	for _, x := range []float64{2 * maxAngle, math.Inf(-1), math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("sincos(%v) returns", x)
				}
			}()
			sincos(x)
		}()
	}
}

func BenchmarkSincos(b *testing.B) {
	src := rng.Stream(1, "angles")
	for _, c := range []struct {
		name  string
		scale float64
	}{{"0.2", 0.2}, {"pi", math.Pi}, {"20", 20}} {
		var xs [1024]float64
		for i := range xs {
			xs[i] = c.scale * (2*src.Float64() - 1)
		}
		b.Run(c.name, func(b *testing.B) {
			sum, i := 0.0, 0
			for b.Loop() {
				s, c := sincos(xs[i&1023])
				sum += s + c
				i++
			}
			if math.IsNaN(sum) {
				b.Fatal(sum)
			}
		})
	}
}
