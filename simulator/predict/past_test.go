package predict_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/internal/testseed"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// spreading returns a forecast whose quantiles differ by up to a few orders of magnitude.
func spreading(r *rand.Rand) predict.Forecast {
	var q [predict.Quantiles]float64
	x := math.Exp(5 + 25*r.Float64())
	for i := range q {
		x *= math.Exp(0.2 + 1.6*r.Float64()) // neither bound of the tail's exponent is met
		q[i] = x
	}
	return predict.Of(&q, r.IntN(100))
}

// The quantiles of the time left are those of the run times of jobs that have outlived the time run.
func TestTheTimeLeftIsConditional(t *testing.T) {
	seed := testseed.Or(5)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		f := spreading(r)
		ran := time.Duration(float64(f.Q[r.IntN(predict.Quantiles)]) * (0.1 + 2*r.Float64()))
		var left [predict.Quantiles]time.Duration
		f.Left(ran, &left)
		alive := f.Outlive(ran)
		for i, p := range predict.Levels {
			if ran+left[i] >= traces.MaxTime {
				continue // cut there
			}
			if got, want := f.Outlive(ran+left[i])/alive, 1-p; math.Abs(got-want) > 0.02 {
				t.Fatalf("seed %d: of %v, %v after %v, a share %v is left, want %v", seed, f.Q, left, ran, got, want)
			}
		}
	}
}

// A job that has not run has the forecast's quantiles left. The time left ascends and is at least 1 ns, also where
// nothing is expected to last so long.
func TestTheTimeLeftIsAlwaysSome(t *testing.T) {
	seed := testseed.Or(6)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		f := spreading(r)
		if r.IntN(2) == 0 { // equal quantiles
			for i := range f.Q {
				f.Q[i] = f.Q[0]
			}
		}
		var left [predict.Quantiles]time.Duration
		if f.Left(0, &left); left != f.Q {
			t.Fatalf("seed %d: %v are left of %v", seed, left, f.Q)
		}
		for _, ran := range []time.Duration{1, f.Q[0], f.Q[4], 2 * f.Q[4], time.Duration(r.Int64N(int64(traces.MaxTime))),
			traces.MaxTime} {
			f.Left(ran, &left)
			least := time.Duration(1)
			for _, x := range left {
				if x < least {
					t.Fatalf("seed %d: of %v, after %v, %v are left", seed, f.Q, ran, left)
				}
				least = x
			}
			if f.Q[0] == f.Q[4] && left[2] != max(1, f.Outliving(ran)-ran) {
				t.Fatalf("seed %d: of %v, after %v, %v are left, want %v", seed, f.Q[0], ran, left, f.Outliving(ran)-ran)
			}
		}
	}
}
