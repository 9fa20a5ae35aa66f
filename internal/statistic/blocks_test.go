package statistic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/internal/raced"
	"clustergym/internal/rng"

	"pgregory.net/rapid"
)

// autoregressive draws n bins of two policies: lognormal with mean 1, the given coefficients of variation and
// correlation of the logarithms, each a first-order autoregression with coefficient phi.
func autoregressive(r *rand.Rand, n int, phi, cvA, cvB, rho float64) (a, b []float64) {
	a, b = make([]float64, n), make([]float64, n)
	sA, sB := math.Sqrt(math.Log1p(cvA*cvA)), math.Sqrt(math.Log1p(cvB*cvB))
	x, y, scale := 0.0, 0.0, 1.0
	for i := range a {
		u, v := r.NormFloat64(), r.NormFloat64()
		x, y = phi*x+scale*u, phi*y+scale*(rho*u+math.Sqrt(1-rho*rho)*v)
		scale = math.Sqrt(1 - phi*phi) // the first is drawn from the stationary distribution
		a[i], b[i] = math.Exp(sA*x-sA*sA/2), math.Exp(sB*y-sB*sB/2)
	}
	return a, b
}

// The numbers in the comment of CompareBlocks are those of this test with 4,000 repetitions, 1,000
// draws and more cases.
func TestIntervalsOfBlocksCover(t *testing.T) {
	raced.Alone(t)
	const repetitions, draws = 1000, 200
	for _, blocks := range []int{10, 20, 40} {
		for _, phi := range []float64{0.5, 0.9} {
			length := int(math.Ceil(5 * (1 + phi) / (1 - phi))) // five autocorrelation times of the logarithms
			for _, c := range [][3]float64{{1, 1, .95}, {0.6, 1, .8}} {
				r := rng.Stream(1, fmt.Sprintf("coverage/blocks/%v/%v/%v", blocks, phi, c))
				got := cover(repetitions, 0, func() [2]float64 {
					a, b := autoregressive(r, blocks*length, phi, c[0], c[1], c[2])
					return compareBlocks(r.Uint64(), "a", "b", "x", a, b, length, false, draws).CI95
				})
				t.Logf("%d blocks, autoregression %v, CV %v and %v, correlation %v: %.1f %%",
					blocks, phi, c[0], c[1], c[2], got)
				if got < 92.5 || got > 97.5 {
					t.Errorf("%d blocks, autoregression %v, CV %v and %v, correlation %v: %.1f %%, want about 93 to 97",
						blocks, phi, c[0], c[1], c[2], got)
				}
			}
		}
	}
}

// A constant ratio is certain, a policy is like itself, and too few blocks show nothing.
func TestBlocksThatAreCertain(t *testing.T) {
	r := rng.Stream(1, "blocks/certain")
	a, _ := autoregressive(r, 200, .5, 1, 1, 0)
	b := make([]float64, len(a))
	for i, v := range a {
		b[i] = v / 0.9
	}
	if c := CompareBlocks(1, "a", "b", "x", a, b, 10, false); c.Verdict != Ahead || c.P != 0 || c.Units != 20 ||
		math.Abs(float64(c.Difference)+10) > 1e-9 || math.Abs(c.CI95[0]+10) > 1e-9 || c.UnitsFor != MinUnits {
		t.Errorf("a tenth lower in each bin: %+v", c)
	}
	if c := CompareBlocks(1, "a", "a", "x", a, a, 10, false); c.Verdict != Apart || c.P != 1 || c.Difference != 0 ||
		c.CI95 != (Interval{}) {
		t.Errorf("a policy against itself: %+v", c)
	}
	if c := CompareBlocks(1, "a", "b", "x", a, b, 21, false); c.Verdict != TooFew || c.CI95.Known() || c.Units != 9 {
		t.Errorf("nine blocks: %+v", c)
	}
}

// The bins of a policy may be empty, all but one as well: there is no division by zero, and no bound that is not true.
func TestBlocksWithoutJobs(t *testing.T) {
	a, b := make([]float64, 100), make([]float64, 100)
	for i := range b {
		b[i] = 1 + float64(i%7)
	}
	a[3] = 5
	for _, c := range []Replicated{
		CompareBlocks(1, "a", "b", "x", a, b, 5, false), CompareReplications("a", "b", "x", a, b, false),
	} {
		if !c.CI95.Known() || c.CI95[0] < -100 || !(c.CI95[1] < 0) || c.Verdict != Ahead {
			t.Errorf("one unit with jobs: %+v", c)
		}
	}
	for _, c := range []Replicated{
		CompareBlocks(1, "b", "a", "x", b, a, 5, false), CompareReplications("b", "a", "x", b, a, false),
	} {
		if !c.CI95.Known() || c.CI95[0] < 0 || c.Verdict != Behind {
			t.Errorf("against one unit with jobs: %+v", c)
		}
	}
}

func TestSameSeedSameBlocks(t *testing.T) {
	a, b := autoregressive(rng.Stream(1, "blocks/seed"), 300, .5, 1, 1, .5)
	one, two := CompareBlocks(1, "a", "b", "x", a, b, 15, false), CompareBlocks(1, "a", "b", "x", a, b, 15, false)
	if one != two {
		t.Errorf("two comparisons of the same numbers differ: %+v and %+v", one, two)
	}
	if c := CompareBlocks(2, "a", "b", "x", a, b, 15, false); c.CI95 == one.CI95 || c.Difference != one.Difference {
		t.Errorf("another seed: %+v, want another interval than %+v", c, one)
	}
	for i := range a {
		a[i], b[i] = 1024*a[i], 1024*b[i]
	}
	if c := CompareBlocks(1, "a", "b", "x", a, b, 15, false); c != one {
		t.Errorf("in another unit: %+v, want %+v", c, one)
	}
}

// Whatever bins hold, the result can be written as JSON, agrees with itself and repeats.
func TestBlocksProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "bins")
		value := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 100)) // many bins without jobs
		a := rapid.SliceOfN(value, n, n).Draw(t, "a")
		b := rapid.SliceOfN(value, n, n).Draw(t, "b")
		length := rapid.IntRange(1, 4).Draw(t, "length")
		compare := func(a, b []float64) Replicated {
			return compareBlocks(7, "a", "b", "x", a, b, length, false, 99)
		}
		c := compare(a, b)
		if encode(t, c) != encode(t, compare(a, b)) {
			t.Fatalf("two comparisons differ: %+v", c)
		}
		if (c.Units < MinUnits) != (c.Verdict == TooFew) || c.Units != n/length ||
			c.CI95.Known() == math.IsNaN(float64(c.P)) {
			t.Fatalf("%+v", c)
		}
		d := float64(c.Difference)
		near := 1e-9 + 1e-6*math.Abs(d)
		if c.CI95.Known() && !(-100-1e-9 <= c.CI95[0] && c.CI95[0] <= d+near && d <= c.CI95[1]+near) {
			t.Fatalf("the interval does not hold the difference: %+v", c)
		}
		if c.P < Level-1e-6 && c.Verdict == Apart || c.P > Level+1e-6 && (c.Verdict == Ahead || c.Verdict == Behind) {
			t.Fatalf("interval and probability disagree: %+v", c)
		}
		if self := compare(a, a); n >= length && n > 0 && (self.Difference != 0 ||
			self.Units >= MinUnits && (self.P != 1 || self.Verdict != Apart || self.CI95 != Interval{})) {
			t.Fatalf("against itself: %+v", self)
		}
	})
}

func BenchmarkCompareBlocks(b *testing.B) {
	x, y := autoregressive(rng.Stream(1, "blocks/bench"), 2000, .9, 1, 1, .8)
	for b.Loop() {
		CompareBlocks(1, "a", "b", "x", x, y, 100, false)
	}
}
