package statistic

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/raced"
	"clustergym/internal/rng"

	"pgregory.net/rapid"
)

// lognormals draws n pairs with mean 1, the coefficients of variation cvA and cvB, and logarithms with correlation rho.
func lognormals(r *rand.Rand, n int, cvA, cvB, rho float64) (a, b []float64) {
	a, b = make([]float64, n), make([]float64, n)
	sA, sB := math.Sqrt(math.Log1p(cvA*cvA)), math.Sqrt(math.Log1p(cvB*cvB))
	for i := range a {
		u, v := r.NormFloat64(), r.NormFloat64()
		v = rho*u + math.Sqrt(1-rho*rho)*v
		a[i], b[i] = math.Exp(sA*u-sA*sA/2), math.Exp(sB*v-sB*sB/2)
	}
	return a, b
}

// cover returns the share, in percent, of times that interval holds truth.
func cover(times int, truth float64, interval func() [2]float64) float64 {
	held := 0
	for range times {
		if in := interval(); in[0] <= truth && truth <= in[1] {
			held++
		}
	}
	return 100 * float64(held) / float64(times)
}

// The numbers in the comments of CompareReplications and Mean95 are those of these tests with 10,000 repetitions.
const repetitions = 1000

func TestIntervalsOfReplicationsCover(t *testing.T) {
	raced.Alone(t)
	for _, c := range []struct {
		cvA, cvB float64
		low      float64 // least coverage expected for 10, 16 and 32 units, in percent
	}{
		{0.6, 0.6, 93}, {0.9, 0.9, 93}, {1.2, 1.2, 93},
		{0.6, 0.9, 91.5}, {1.2, 0.9, 91},
		{0.6, 1.2, 91}, // policies that change places are as good: the scale is a logarithm
	} {
		for _, n := range []int{10, 16, 32} {
			for _, rho := range []float64{0.5, 0.8, 0.95} {
				name := fmt.Sprintf("coverage/%v/%v/%v/%v", c.cvA, c.cvB, n, rho)
				r := rng.Stream(1, name)
				got := cover(repetitions, 30, func() [2]float64 {
					a, b := lognormals(r, n, c.cvA, c.cvB, rho)
					for i := range a {
						a[i] *= 1.3
					}
					d := CompareReplications("a", "b", "x", a, b, false)
					return d.CI95
				})
				t.Logf("CV %v and %v, correlation %v, %d units: %.1f %%", c.cvA, c.cvB, rho, n, got)
				if got < c.low || got > 97 {
					t.Errorf("CV %v and %v, correlation %v, %d units: %.1f %%, want %v to 97",
						c.cvA, c.cvB, rho, n, got, c.low)
				}
			}
		}
	}
}

func TestIntervalsOfMeansCover(t *testing.T) {
	raced.Alone(t)
	for _, cv := range []float64{0.3, 0.6, 0.9, 1.2} {
		for _, n := range []int{10, 16, 32} {
			r := rng.Stream(1, fmt.Sprintf("coverage/mean/%v/%v", cv, n))
			got := cover(repetitions, 1, func() [2]float64 {
				a, _ := lognormals(r, n, cv, 1, 0)
				_, ci := Mean95(a)
				return ci
			})
			t.Logf("CV %v, %d units: %.1f %%", cv, n, got)
			if got < 93 || got > 98 {
				t.Errorf("CV %v, %d units: %.1f %%, want 93 to 98", cv, n, got)
			}
		}
	}
	r := rng.Stream(1, "coverage/normal")
	got := cover(repetitions, 0, func() [2]float64 {
		a := make([]float64, 16)
		for i := range a {
			a[i] = r.NormFloat64()
		}
		_, ci := Mean95(a)
		return ci
	})
	t.Logf("normal numbers: %.1f %%", got)
	if got < 94 || got > 97 {
		t.Errorf("the interval of the mean of 16 normal numbers holds it in %.1f %%", got)
	}
}

// Equal policies are put ahead of or behind any of nine rivals in about 5 % of evaluations or less.
func TestEqualPoliciesAreSeldomAheadOfNineRivals(t *testing.T) {
	raced.Alone(t)
	const evaluations, rivals, units = 2000, 9, 16
	for _, c := range []struct{ cv, rho float64 }{{0.6, 0.8}, {1.2, 0.9}, {1.2, 0.5}} {
		r := rng.Stream(1, fmt.Sprintf("false alarm/%v/%v", c.cv, c.rho))
		s := math.Sqrt(math.Log1p(c.cv * c.cv))
		alarms := 0
		for range evaluations {
			var common [units]float64
			for i := range common {
				common[i] = r.NormFloat64()
			}
			play := func() []float64 {
				v := make([]float64, units)
				for i := range v {
					v[i] = math.Exp(s * (math.Sqrt(c.rho)*common[i] + math.Sqrt(1-c.rho)*r.NormFloat64()))
				}
				return v
			}
			a := play()
			rows := make([]Replicated, rivals)
			for k := range rows {
				rows[k] = CompareReplications("a", fmt.Sprint(k), "x", a, play(), false)
			}
			JudgeAll(rows, false)
			if slices.ContainsFunc(rows, func(r Replicated) bool { return r.Verdict != Apart }) {
				alarms++
			}
		}
		share := 100 * float64(alarms) / evaluations
		t.Logf("CV %v, correlation %v: %.1f %% false alarms", c.cv, c.rho, share)
		if share > 5.5 {
			t.Errorf("CV %v, correlation %v: %.1f %% of evaluations see a difference that is not there", c.cv, c.rho, share)
		}
	}
}

// As many units as UnitsFor says show a true difference of 3 % in about 80 % of evaluations.
func TestUnitsForShowThreePercent(t *testing.T) {
	raced.Alone(t)
	r := rng.Stream(1, "power")
	play := func(n int) Replicated {
		a, b := lognormals(r, n, 0.3, 0.3, 0.95)
		for i := range a {
			a[i] *= 1.03
		}
		return CompareReplications("a", "b", "x", a, b, false)
	}
	n := play(100_000).UnitsFor
	const evaluations = 2000
	shown := 0
	for range evaluations {
		if play(n).Verdict == Behind {
			shown++
		}
	}
	got := 100 * float64(shown) / evaluations
	t.Logf("%d units show 3 %% in %.1f %% of evaluations", n, got)
	if got < 77 || got > 83 {
		t.Errorf("%d units show 3 %% in %.1f %% of evaluations, want about 80", n, got)
	}
}

func TestReplicatedDifference(t *testing.T) {
	a := []float64{9, 18, 30, 41, 8, 17, 26, 35, 44, 53}
	b := []float64{10, 20, 30, 40, 10, 20, 30, 40, 50, 60}
	c := CompareReplications("a", "b", "jct_s", a, b, false)
	if want := 100 * (281.0 - 310) / 310; math.Abs(float64(c.Difference)-want) > 1e-12 {
		t.Errorf("difference %v, want %v", c.Difference, want)
	}
	if c.Verdict != Ahead || c.CI95[0] > float64(c.Difference) || c.CI95[1] < float64(c.Difference) || c.Units != 10 {
		t.Errorf("%+v", c)
	}
	if c := CompareReplications("a", "b", "gpu_use", a, b, true); c.Verdict != Behind {
		t.Errorf("lower where higher is better: %+v", c)
	}
	// Who is called a does not matter: the interval of a/b is the inverse of that of b/a.
	d := CompareReplications("b", "a", "jct_s", b, a, false)
	if inverse := 100 * (1/(1+d.CI95[1]/100) - 1); math.Abs(inverse-c.CI95[0]) > 1e-9 ||
		math.Abs(float64(d.P-c.P)) > 1e-9*float64(c.P) || d.Verdict != Behind {
		t.Errorf("b against a: %+v, a against b: %+v", d, c)
	}
	// A constant ratio is certain, in whatever roundings.
	for i := range a {
		a[i] = b[i] * 1.1
	}
	if c := CompareReplications("a", "b", "jct_s", a, b, false); c.Verdict != Behind || c.P != 0 ||
		math.Abs(c.CI95[0]-10) > 1e-9 || c.CI95[0] != c.CI95[1] {
		t.Errorf("a tenth more in all replications: %+v", c)
	}
	if c := CompareReplications("a", "b", "jct_s", a[:9], b[:9], false); c.Verdict != TooFew || c.UnitsFor != MinUnits {
		t.Errorf("nine replications: %+v", c)
	}
	// Sums of the same numbers in another order are equal but for their rounding.
	for i := range a {
		a[i] = b[i]
	}
	a[0], a[1] = math.Nextafter(a[0], 100), math.Nextafter(a[1], 100)
	if c := CompareReplications("a", "b", "jct_s", a, b, false); c.Verdict != Apart || c.P != 1 || c.Difference != 0 {
		t.Errorf("equal but for rounding: %+v", c)
	}
}

// Sums of 0 and below have no logarithm.
func TestReplicationsWithoutARatio(t *testing.T) {
	some, none := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, make([]float64, 10)
	c := CompareReplications("a", "b", "wait_s", none, some, false)
	if c.Difference != -100 || c.CI95 != (Interval{-100, -100}) || c.Verdict != Ahead {
		t.Errorf("no wait at all: %+v", c)
	}
	c = CompareReplications("a", "b", "wait_s", some, none, false)
	if text := encode(t, c); !math.IsInf(float64(c.Difference), 1) || c.Verdict != Behind ||
		!strings.Contains(text, `"difference_percent":null,"ci95":[null,null],"p":0,`) {
		t.Errorf("against no wait at all: %s", text)
	}
	if c := CompareReplications("a", "b", "wait_s", none, none, false); c.Difference != 0 || c.Verdict != Apart {
		t.Errorf("no waits: %+v", c)
	}
	negative := []float64{-1, -2, -3, -4, -5, -6, -7, -8, -9, -10}
	if c := CompareReplications("a", "b", "return", some, negative, false); c.Verdict != Apart || c.CI95.Known() ||
		!math.IsNaN(float64(c.Difference)) {
		t.Errorf("against negative values: %+v", c)
	}
	if c := CompareReplications("a", "b", "return", nil, nil, false); c.Verdict != TooFew || c.Units != 0 {
		t.Errorf("of nothing: %+v", c)
	}
}

func encode(t interface{ Fatal(v ...any) }, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReplicatedAsJSON(t *testing.T) {
	some := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	few := CompareReplications("a", "b", "wait_s", some[:1], some[:1], false)
	want := `{"a":"a","b":"b","metric":"wait_s","difference_percent":0,"ci95":null,"p":null,"p_holm":null,"units":1,` +
		`"verdict":"too few units"}`
	if got := encode(t, few); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c := CompareReplications("a", "b", "wait_s", some, some, false)
	want = `{"a":"a","b":"b","metric":"wait_s","difference_percent":0,"ci95":[0,0],"p":1,"p_holm":1,"units":10,` +
		`"units_for_3_percent":10,"verdict":"cannot be told apart"}`
	text := encode(t, c)
	if text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	for _, r := range []Replicated{few, c} {
		var back Replicated
		if err := json.Unmarshal([]byte(encode(t, r)), &back); err != nil || encode(t, back) != encode(t, r) {
			t.Errorf("read back as %+v, %v", back, err)
		}
	}
	var i Interval
	if err := json.Unmarshal([]byte("[-100,null]"), &i); err != nil || i[0] != -100 || !math.IsInf(i[1], 1) {
		t.Errorf("an interval without an upper bound is read as %v, %v", i, err)
	}
	for _, broken := range []string{`"x"`, "[1,true]"} {
		if err := json.Unmarshal([]byte(broken), &i); err == nil {
			t.Errorf("%s is read as the interval %v", broken, i)
		}
	}
}

func TestReplicatedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 24).Draw(t, "units")
		value := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-6, 100)) // no scaled one is subnormal
		a := rapid.SliceOfN(value, n, n).Draw(t, "a")
		b := rapid.SliceOfN(value, n, n).Draw(t, "b")
		higher := rapid.Bool().Draw(t, "higher is better")
		c := CompareReplications("a", "b", "x", a, b, higher)
		if (n < MinUnits) != (c.Verdict == TooFew) || n < MinUnits && (c.CI95.Known() || !math.IsNaN(float64(c.P))) {
			t.Fatalf("%d units: %+v", n, c)
		}
		d := float64(c.Difference)
		near := 1e-9 + 1e-6*math.Abs(d)
		if c.CI95.Known() && !(-100-1e-9 <= c.CI95[0] && c.CI95[0] <= d+near && d <= c.CI95[1]+near) {
			t.Fatalf("the interval does not hold the difference: %+v", c)
		}
		if c.P < Level-1e-6 && c.Verdict == Apart || c.P > Level+1e-6 && (c.Verdict == Ahead || c.Verdict == Behind) {
			t.Fatalf("interval and probability disagree: %+v", c)
		}
		// A power of two changes no digit.
		k := math.Ldexp(1, rapid.IntRange(-40, 40).Draw(t, "scale"))
		ka, kb := slices.Clone(a), slices.Clone(b)
		for i := range ka {
			ka[i], kb[i] = ka[i]*k, kb[i]*k
		}
		if got := CompareReplications("a", "b", "x", ka, kb, higher); encode(t, got) != encode(t, c) {
			t.Fatalf("times %v: %+v, want %+v", k, got, c)
		}
		mean, ci := Mean95(a)
		scaled, scaledCI := Mean95(ka)
		if n >= MinUnits && (math.Abs(scaled-mean*k) > 1e-9*scaled || math.Abs(scaledCI[1]-ci[1]*k) > 1e-9*ci[1]*k ||
			!(ci[0] <= mean && mean <= ci[1]) || ci[0] < 0) {
			t.Fatalf("mean %v %v, times %v: %v %v", mean, ci, k, scaled, scaledCI)
		}
		// A policy is like itself.
		if self := CompareReplications("a", "a", "x", a, a, higher); n > 0 && (self.Difference != 0 ||
			n >= MinUnits && (self.P != 1 || self.Verdict != Apart || self.CI95 != Interval{})) {
			t.Fatalf("against itself: %+v", self)
		}
	})
}

func TestMean95(t *testing.T) {
	if mean, ci := Mean95([]float64{1, 2, 3}); mean != 2 || ci.Known() {
		t.Errorf("of three values: %v %v", mean, ci)
	}
	if mean, ci := Mean95(make([]float64, 10)); mean != 0 || ci != (Interval{}) {
		t.Errorf("of zeros: %v %v", mean, ci)
	}
	// A symmetric sample with negative values has the textbook interval.
	v := []float64{-5, -4, -3, -2, -1, 1, 2, 3, 4, 5}
	mean, ci := Mean95(v)
	if want := StudentQuantile(.975, 9) * math.Sqrt(110./90); mean != 0 || math.Abs(ci[1]-want) > 1e-9 ||
		math.Abs(ci[0]+want) > 1e-9 {
		t.Errorf("%v %v, want 0 ± %v", mean, ci, want)
	}
	if mean, ci := Mean95([]float64{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}); mean != 3 || ci != (Interval{3, 3}) {
		t.Errorf("of equal values: %v %v", mean, ci)
	}
}

func TestTrend(t *testing.T) {
	v := []float64{-5, -4, -3, -2, -1, 1, 2, 3, 4, 5}
	if mean, p := Trend(v, 0); mean != 0 || math.Abs(p-.5) > 1e-12 {
		t.Errorf("of no growth: %v, p %v", mean, p)
	}
	edge := StudentQuantile(.95, 9) * math.Sqrt(110./90)
	if _, p := Trend(v, -edge); math.Abs(p-.05) > 1e-9 {
		t.Errorf("at the edge: p %v, want 0.05", p)
	}
	same := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	for _, c := range [][2]float64{{0, 0}, {1, 1}, {2, 1}} {
		if _, p := Trend(same, c[0]); p != c[1] {
			t.Errorf("a constant growth of 1 above %v: p %v, want %v", c[0], p, c[1])
		}
	}
	if _, p := Trend(same[1:], 0); !math.IsNaN(p) {
		t.Errorf("nine units: p %v", p)
	}
}
