package predict_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/simulator/predict"
	"clustergym/traces"
)

// drawn returns a forecast with quantiles between about a microsecond and a month, some of them equal.
func drawn(r *rand.Rand) predict.Forecast {
	var q [predict.Quantiles]float64
	x := math.Exp(7 + 20*r.Float64())
	for i := range q {
		if q[i] = x; r.IntN(4) > 0 {
			x *= math.Exp(3 * r.Float64() * r.Float64())
		}
	}
	return predict.Of(&q, r.IntN(100))
}

// far reports whether a and b differ by more than rounding to nanoseconds and the share eps explain.
func far(a, b time.Duration, eps float64) bool {
	return math.Abs(float64(a-b)) > 2+eps*math.Max(float64(a), float64(b))
}

// distinct reports whether no two quantiles of f are nearly equal.
func distinct(f *predict.Forecast) bool {
	for i := 1; i < predict.Quantiles; i++ {
		if float64(f.Q[i]) < 1.05*float64(f.Q[i-1]) {
			return false
		}
	}
	return true
}

// Whatever numbers a predictor computes, its forecast is ascending and within the bounds of a run time.
func TestAnyNumbersGiveAValidForecast(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 0.5, 1, 1e9, 1e18, 1e300, traces.MaxTime, math.MaxInt64,
		math.Copysign(0, -1)}
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		var q [predict.Quantiles]float64
		for i := range q {
			q[i] = odd[r.IntN(len(odd))]
		}
		seen := r.IntN(1 << 40)
		f := predict.Of(&q, seen)
		if !f.Valid() || int(f.Seen) != min(seen, math.MaxInt32) {
			t.Fatalf("%v of %d jobs gives %+v", q, seen, f)
		}
		for i, x := range q {
			if x <= traces.MaxTime && float64(f.Q[i]) < x-1 {
				t.Fatalf("%v gives %v", q, f.Q)
			}
		}
		for _, p := range []float64{-1, 0, 1e-300, 0.05, 0.1, 0.3, 0.5, 0.9, 0.95, 1 - 1e-16, 1, 2} {
			if x := f.Quantile(p); x < 1 || x > traces.MaxTime {
				t.Fatalf("%v: quantile %v is %d", f.Q, p, x)
			}
		}
		for _, at := range []time.Duration{0, 1, time.Second, f.Q[0], f.Q[4], traces.MaxTime} {
			if x := f.Outlive(at); !(x >= 0 && x <= 1) {
				t.Fatalf("%v: a share %v outlives %v", f.Q, x, at)
			}
			if x := f.Gittins(at); !(x >= 0) || math.IsInf(x, 0) {
				t.Fatalf("%v: the Gittins index at %v is %v", f.Q, at, x)
			}
		}
		if m := f.Mean(); m < 1 || m > traces.MaxTime {
			t.Fatalf("%v: mean %v", f.Q, m)
		}
	}
}

func TestInvalidForecasts(t *testing.T) {
	ok := predict.Forecast{Q: [predict.Quantiles]time.Duration{1, 1, 2, 3, traces.MaxTime}}
	if !ok.Valid() {
		t.Errorf("%+v is invalid", ok)
	}
	for _, change := range []func(f *predict.Forecast){
		func(f *predict.Forecast) { f.Q[0] = 0 },
		func(f *predict.Forecast) { f.Q[0] = -1 },
		func(f *predict.Forecast) { f.Q[4]++ },
		func(f *predict.Forecast) { f.Q[2] = 4 },
		func(f *predict.Forecast) { f.Seen = -1 },
	} {
		f := ok
		if change(&f); f.Valid() {
			t.Errorf("%+v is valid", f)
		}
	}
}

// Quantile gives the quantiles themselves at their levels, grows with the level, and Outlive is its inverse.
func TestOutliveIsTheInverseOfQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	tails := 0
	for range 5000 {
		f := drawn(r)
		for i, p := range predict.Levels {
			if f.Quantile(p) != f.Q[i] {
				t.Fatalf("%v: quantile %v is %v", f.Q, p, f.Quantile(p))
			}
		}
		before := time.Duration(0)
		for p := 0.001; p < 1; p += 0.001 {
			x := f.Quantile(p)
			if x < before {
				t.Fatalf("%v: quantile %v is %v, less than %v", f.Q, p, x, before)
			}
			before = x
			if !distinct(&f) || f.Q[0] < 1e6 || x == traces.MaxTime {
				continue
			}
			if got := 1 - f.Outlive(x); math.Abs(got-p) > 1e-4 {
				t.Fatalf("%v: a share %v does not outlive the quantile %v, %v", f.Q, got, p, x)
			}
			if p > 0.9 {
				tails++
			}
		}
		left := 1.0
		for x := time.Duration(0); x < 3*f.Q[4]; x += 1 + f.Q[4]/50 {
			o := f.Outlive(x)
			if o > left {
				t.Fatalf("%v: a share %v outlives %v, %v less", f.Q, o, x, left)
			}
			if left = o; distinct(&f) && f.Q[0] > 1e6 && o < 0.999 {
				if back := f.Quantile(1 - o); far(back, x, 1e-6) {
					t.Fatalf("%v: %v is outlived by a share %v, whose quantile is %v", f.Q, x, o, back)
				}
			}
		}
	}
	if tails < 1000 {
		t.Errorf("only %d quantiles in tails", tails)
	}
}

// What is expected of a job is more than it has run for, never shrinks with its age, and follows the quantiles 1/2,
// 3/4, 7/8 …
func TestOutlivingGrowsWithAge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 5000 {
		f := drawn(r)
		if f.Outliving(0) != f.Median() {
			t.Fatalf("%v: a job that has not run is expected to run for %v", f.Q, f.Outliving(0))
		}
		before := time.Duration(0)
		for ran := time.Duration(1); ran < 1<<61; ran += 1 + ran/3 {
			x := f.Outliving(ran)
			if x <= ran || x < before {
				t.Fatalf("%v: a job that has run for %d is expected to run for %d, before for %d", f.Q, ran, x, before)
			}
			before = x
		}
		if q := f.Quantile(0.75); q > f.Median() && f.Outliving(f.Median()) != q {
			t.Fatalf("%v: after the median %v is expected, want the upper quartile %v", f.Q, f.Outliving(f.Median()), q)
		}
	}
	f := predict.Forecast{Q: [predict.Quantiles]time.Duration{7, 7, 7, 7, 7}}
	for ran, want := range map[time.Duration]time.Duration{6: 7, 7: 14, 13: 14, 14: 28, 28: 56} {
		if got := f.Outliving(ran); got != want {
			t.Errorf("equal quantiles of 7: after %d %d is expected, want %d", ran, got, want)
		}
	}
	huge := predict.Forecast{Q: [predict.Quantiles]time.Duration{traces.MaxTime, traces.MaxTime, traces.MaxTime,
		traces.MaxTime, traces.MaxTime}}
	if x := huge.Outliving(traces.MaxTime); x <= traces.MaxTime {
		t.Errorf("a job that has run for the longest time is expected to run for %d", x)
	}
}

// The mean is that of draws from the distribution without its tail.
func TestMeanOfDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		f := drawn(r)
		want := 0.0
		const n = 100_000
		for i := range n { // between the quantiles all times are equally likely
			p := (float64(i) + 0.5) / n
			k, _ := slices.BinarySearch(predict.Levels[:], p)
			if k == predict.Quantiles {
				want += float64(f.Q[k-1]) / n
				continue
			}
			low, at := 0.0, 0.0
			if k > 0 {
				low, at = float64(f.Q[k-1]), predict.Levels[k-1]
			}
			want += (low + (float64(f.Q[k])-low)*(p-at)/(predict.Levels[k]-at)) / n
		}
		if far(f.Mean(), time.Duration(want), 1e-3) {
			t.Fatalf("%v: mean %v, want %v", f.Q, f.Mean(), time.Duration(want))
		}
	}
}

// brute is the Gittins index by its definition, on the distribution that is uniform between ran, the quantiles above it
// and one point of the tail, over a dense grid of times.
func brute(f *predict.Forecast, ran time.Duration) float64 {
	at, left := []float64{float64(ran)}, []float64{math.Max(f.Outlive(ran), math.SmallestNonzeroFloat64)}
	for i, q := range f.Q {
		if q > ran {
			at, left = append(at, float64(q)), append(left, 1-predict.Levels[i])
		}
	}
	last := at[len(at)-1]
	at, left = append(at,
		2*last), append(left,
		left[len(left)-1]*f.Outlive(time.Duration(2*max(last,
			float64(f.Q[4]))))/f.Outlive(time.Duration(max(last, float64(f.Q[4])))))
	survive := func(x float64) float64 {
		k := len(at) - 1
		for k > 0 && at[k-1] > x {
			k--
		}
		if k == 0 || at[k] == at[k-1] {
			return left[k]
		}
		return left[k-1] + (left[k]-left[k-1])*(x-at[k-1])/(at[k]-at[k-1])
	}
	best := 0.0
	for k := 1; k < len(at); k++ {
		if at[k] == at[k-1] {
			continue
		}
		for i := 1; i <= 100; i++ {
			to := at[k-1] + (at[k]-at[k-1])*float64(i)/100
			spent := 0.0
			for m := 1; m <= k; m++ { // trapezoids are exact between kinks
				lo, hi := at[m-1], math.Min(at[m], to)
				if hi > lo {
					spent += (hi - lo) * (survive(lo) + survive(hi-(hi-lo)*1e-12)) / 2
				}
			}
			best = math.Max(best, (left[0]-survive(to))/spent)
			if i == 100 { // what ends at one time ends at it
				best = math.Max(best, (left[0]-left[k])/spent)
				for m := k + 1; m < len(at) && at[m] == at[k]; m++ {
					best = math.Max(best, (left[0]-left[m])/spent)
				}
			}
		}
	}
	return best
}

func TestGittinsIndexIsTheBestOverAllTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		f := drawn(r)
		ages := []time.Duration{0, f.Q[0] / 2, f.Q[0], f.Q[1], (f.Q[1] + f.Q[2]) / 2, f.Q[3], f.Q[4], 2 * f.Q[4]}
		ran := ages[r.IntN(len(ages))]
		got, want := f.Gittins(ran), brute(&f, ran)
		if math.Abs(got-want) > 1e-3*want {
			t.Fatalf("%v after %v: index %v, want %v", f.Q, ran, got, want)
		}
	}
}

// A job that is sure to end at t has the index 1/(time left). One that is nowhere worse has no smaller index.
func TestGittinsIndexOfSimpleForecasts(t *testing.T) {
	sure := predict.Forecast{Q: [predict.Quantiles]time.Duration{1000, 1000, 1000, 1000, 1000}}
	r := rand.New(rand.NewPCG(6, 6))
	for ran := range time.Duration(1000) {
		if got, least := sure.Gittins(ran), 0.85/float64(1000-ran); got < least {
			t.Fatalf("sure to end at 1000, after %d: index %v, want at least %v", ran, got, least)
		}
	}
	for range 2000 {
		f := drawn(r)
		g := f
		for i := range g.Q {
			g.Q[i] *= 2
		}
		if a, b := f.Gittins(0), g.Gittins(0); b > a/2*(1+1e-9) || b < a/2*(1-1e-9) {
			t.Fatalf("%v: index %v, of times twice as long %v", f.Q, a, b)
		}
	}
	for range 2000 { // in the tail the chance to end falls with age
		f := drawn(r)
		if a, b := f.Gittins(f.Q[4]), f.Gittins(3*f.Q[4]); b > a {
			t.Fatalf("%v: index %v at the last quantile, %v at three times it", f.Q, a, b)
		}
	}
}
