package sched

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// fixed is a reward whose rate the test sets.
type fixed struct {
	Reward
	rate float64
}

func (f *fixed) Rate() float64 { return f.rate }

// A rate that holds for an interval pays the integral of the discount over it; cut anywhere, the parts add up.
func TestIntegralOfTheDiscount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, gamma := range []float64{1, 0.999999, 0.99, 0.5, 1e-6} {
		for range 50 {
			tau := time.Duration(1+r.IntN(7200)) * time.Second
			f := &fixed{rate: r.NormFloat64()}
			whole, parts := newAccount(f, gamma, tau), newAccount(f, gamma, tau)
			from := time.Duration(r.Int64N(int64(100 * time.Hour)))
			to := from + time.Duration(r.Int64N(int64(10*tau)))
			whole.begin(from)
			whole.advance(to)
			parts.begin(from)
			for range 5 {
				parts.advance(from + time.Duration(r.Int64N(int64(to-from)+1))) // going back does nothing
			}
			parts.advance(to)
			if math.Abs(whole.sum-parts.sum) > 1e-9*max(1, math.Abs(whole.sum)) {
				t.Fatalf("gamma %v: %v in one, %v in parts", gamma, whole.sum, parts.sum)
			}
			x, want := (to - from).Seconds(), 0.0
			if gamma == 1 {
				want = f.rate * x
			} else {
				want = f.rate * tau.Seconds() * (1 - math.Pow(gamma, x/tau.Seconds())) / -math.Log(gamma)
			}
			if math.Abs(whole.sum-want) > 1e-8*max(1, math.Abs(want)) {
				t.Fatalf("gamma %v, tau %v: %v s pay %v, want %v", gamma, tau, x, whole.sum, want)
			}
		}
	}
}

// A timeline pays its rates and its lumps once, however the time is cut, and the rest after its end.
func TestTimeline(t *testing.T) {
	a := newAccount(&fixed{}, 1, time.Hour)
	record := func(l *timeline) {
		l.reset()
		l.add(2*time.Second, -1, 0)
		l.add(2*time.Second, -3, 5) // the same moment: the last rate, all lumps
		l.add(6*time.Second, -2, 0)
		l.add(10*time.Second, 0, -7)
	}
	const total = -3.0*4 - 2*4 + 5 - 7
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		var l timeline
		record(&l)
		sum, at := 0.0, time.Duration(0)
		for at < 8*time.Second {
			to := at + time.Duration(r.IntN(3))*time.Second // also no time at all: several decisions in one instant
			a.begin(at)
			sum += l.take(&a, at, to)
			at = to
		}
		a.begin(at)
		if at < 10*time.Second {
			sum += l.rest(&a, at)
		} else {
			sum += l.take(&a, at, at)
		}
		if sum != total {
			t.Fatalf("pays %v, want %v", sum, total)
		}
		if again := l.rest(&a, 20*time.Second); again != 0 {
			t.Fatalf("pays %v twice", again)
		}
	}

	// What lies before the first moment that is asked for is paid then, undiscounted: lumps, not rates.
	var l timeline
	record(&l)
	a.begin(7 * time.Second)
	if got := l.take(&a, 7*time.Second, 9*time.Second); got != 5-4 {
		t.Errorf("from 7 s to 9 s: %v, want 1", got)
	}

	// Discounted from the beginning of the transition: half a second for each.
	d := newAccount(&fixed{}, 0.5, time.Second)
	record(&l)
	d.begin(6 * time.Second)
	_ = l.take(&d, 6*time.Second, 6*time.Second)
	if got, want := l.take(&d, 6*time.Second, 10*time.Second), -2*(1-1.0/16)/math.Ln2-7.0/16; math.Abs(got-want) > 1e-12 {
		t.Errorf("discounted: %v, want %v", got, want)
	}
}
