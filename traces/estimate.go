package traces

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/rng"
)

// EstimateMode says what a policy is told about run times.
type EstimateMode uint8

// The modes.
const (
	EstimateExact EstimateMode = iota // the work itself
	EstimateTrace                     // Job.Estimate; a trace without any is an error
	EstimateNoisy                     // work · e^(σZ), Z standard normal, drawn once for each job
	EstimateNone                      // nothing
)

// Estimates tells policies how long jobs will run. The noise on a job depends on Seed and the job's ID alone.
type Estimates struct {
	Mode  EstimateMode
	Sigma float64
	Seed  uint64
}

// ParseEstimates reads "exact", "trace", "none" or "noisy:0.5".
func ParseEstimates(s string) (Estimates, error) {
	switch s {
	case "exact":
		return Estimates{Mode: EstimateExact}, nil
	case "trace":
		return Estimates{Mode: EstimateTrace}, nil
	case "none":
		return Estimates{Mode: EstimateNone}, nil
	}
	if t, ok := strings.CutPrefix(s, "noisy:"); ok {
		if v, err := strconv.ParseFloat(t, 64); err == nil && v >= 0 && v <= 10 {
			return Estimates{Mode: EstimateNoisy, Sigma: v}, nil
		}
	}
	return Estimates{}, fmt.Errorf("estimates %q: want exact, trace, none or noisy:SIGMA with SIGMA from 0 to 10", s)
}

func (e Estimates) String() string {
	switch e.Mode {
	case EstimateTrace:
		return "trace"
	case EstimateNoisy:
		return fmt.Sprintf("noisy:%g", e.Sigma)
	case EstimateNone:
		return "none"
	}
	return "exact"
}

// Of returns the estimate for j: at least 1 ns, or 0 when there is none.
func (e Estimates) Of(j *Job) time.Duration {
	switch e.Mode {
	case EstimateNone:
		return 0
	case EstimateTrace:
		return j.Estimate
	case EstimateNoisy:
		z := rng.Normal(rng.At(e.Seed, rng.Hash("estimate"), rng.Hash(j.ID)))
		v := float64(j.Work) * math.Exp(e.Sigma*z)
		if v >= math.MaxInt64/4 {
			v = math.MaxInt64 / 4
		}
		return max(1, time.Duration(v))
	}
	return max(1, j.Work)
}

// Remaining returns the estimated time left for a job that has run for ran. When a job outlives its estimate, the
// estimate doubles until it exceeds ran. It returns 0 if estimate is not positive.
func Remaining(estimate, ran time.Duration) time.Duration {
	if estimate <= 0 {
		return 0
	}
	for estimate <= ran && estimate < math.MaxInt64/2 {
		estimate *= 2
	}
	return max(1, estimate-ran)
}
