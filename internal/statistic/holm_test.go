package statistic

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestHolm(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct{ p, want []float64 }{
		{nil, nil},
		{[]float64{.03}, []float64{.03}},
		{[]float64{.01, .04, .03, .005}, []float64{.03, .06, .06, .02}},
		{[]float64{.02, .02, .02}, []float64{.06, .06, .06}},
		{[]float64{.5, .9}, []float64{1, 1}},
		{[]float64{nan, .02, nan, .03}, []float64{nan, .04, nan, .04}},
	} {
		got := Holm(c.p)
		for i := range c.want {
			if math.Abs(got[i]-c.want[i]) > 1e-12 || math.IsNaN(got[i]) != math.IsNaN(c.want[i]) {
				t.Errorf("Holm(%v) = %v, want %v", c.p, got, c.want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("Holm(%v) = %v, want %v", c.p, got, c.want)
		}
	}
}

func TestHolmIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "p")
		out := Holm(p)
		for i := range p {
			if out[i] < p[i] || out[i] > min(1, p[i]*float64(len(p))) {
				t.Fatalf("%v becomes %v of %d", p[i], out[i], len(p))
			}
			for j := range p {
				if p[i] <= p[j] && out[i] > out[j] {
					t.Fatalf("%v and %v become %v and %v", p[i], p[j], out[i], out[j])
				}
			}
		}
	})
}

// A difference that is shown against one rival may not be among nine.
func TestVerdictsAreCorrectedForRivals(t *testing.T) {
	row := func(p Number) Replicated {
		return Replicated{Units: 16, Difference: -5, CI95: Interval{-9, -1}, P: p}
	}
	rows := []Replicated{row(.02), row(.004), row(.03), {Units: 3, P: Number(math.NaN()), CI95: noInterval()}}
	JudgeAll(rows, false)
	want := []Verdict{Ahead, Ahead, Ahead, TooFew}
	for i, p := range []float64{.04, .012, .04} {
		if rows[i].Verdict != want[i] || math.Abs(float64(rows[i].PHolm)-p) > 1e-12 {
			t.Errorf("row %d: %+v, want %s with %v", i, rows[i], want[i], p)
		}
	}
	rows = append(rows, row(.5))
	rows[4].CI95[1] = 3
	JudgeAll(rows, true)
	want = []Verdict{Apart, Behind, Apart, TooFew, Apart}
	for i, r := range rows {
		if r.Verdict != want[i] {
			t.Errorf("of five, higher is better, row %d: %+v, want %s", i, r, want[i])
		}
	}
	if !math.IsNaN(float64(rows[3].PHolm)) {
		t.Errorf("a probability from nothing: %+v", rows[3])
	}
}
