package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/nearest"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// EstimateMode says what policies are told about run times.
type EstimateMode uint8

// The modes.
const (
	// not chosen yet: no configuration is valid with it, and to a run it is as EstimateNone
	EstimateUnset   EstimateMode = iota
	EstimateExact                // the work itself
	EstimateTrace                // traces.Job.Estimate; a trace without any is an error
	EstimateNoisy                // work · e^(σZ), Z standard normal, drawn once for each job
	EstimateNone                 // nothing
	EstimateHistory              // what the run's predictor says: statistics of similar jobs that have ended
	EstimateGBDT                 // what the run's predictor says: boosted trees
)

// The names of the modes; noisy has a number behind it, gbdt may have a file.
var estimateNames = [...]string{"", "exact", "trace", "noisy", "none", "history", "gbdt"}

// EstimatesWanted lists in words the texts of Estimates.
const EstimatesWanted = "none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA from 0 to 10"

// Estimates tells policies how long jobs will run. The noise on a job depends on Seed and the job's ID alone. The zero
// value is unset. In YAML and JSON it is a text: "none", "trace", "history", "gbdt", "gbdt:model.bin", "exact" or
// "noisy:0.5", and "" if unset.
type Estimates struct {
	Mode  EstimateMode
	Sigma float64 // of EstimateNoisy
	File  string  // of EstimateGBDT: a fitted model; "" = fitted in the run
	Seed  uint64

	written string // of EstimateNoisy: the text of a file whose sigma has another form than String gives it
}

// ParseEstimates reads the text of estimates, which must not be "".
func ParseEstimates(s string) (Estimates, error) {
	name, more, has := strings.Cut(s, ":")
	for i, n := range estimateNames {
		if n != name || n == "" {
			continue
		}
		e := Estimates{Mode: EstimateMode(i)}
		switch {
		case e.Mode == EstimateNoisy:
			if v, err := strconv.ParseFloat(more, 64); err == nil && v >= 0 && v <= 10 {
				e.Sigma = v
				return e, nil
			}
		case e.Mode == EstimateGBDT && has && more != "":
			e.File = more
			return e, nil
		case !has:
			return e, nil
		}
	}
	meant := ""
	if !slices.Contains(estimateNames[1:], name) {
		meant = nearest.Meant(s, estimateNames[1:])
	}
	return Estimates{}, fmt.Errorf("got %q, want %s%s", s, EstimatesWanted, meant)
}

// MustEstimates is ParseEstimates for texts of the program's own. It panics if s is wrong.
func MustEstimates(s string) Estimates {
	e, err := ParseEstimates(s)
	if err != nil {
		panic(err)
	}
	return e
}

// UnmarshalText reads the text of estimates, and "" as unset. MarshalText gives back the same text.
func (e *Estimates) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		*e = Estimates{}
		return nil
	}
	read, err := ParseEstimates(s)
	if err != nil {
		return err
	}
	if *e = read; e.String() != s {
		e.written = s
	}
	return nil
}

// MarshalText returns the text that UnmarshalText has read, or else String.
func (e Estimates) MarshalText() ([]byte, error) {
	if e.written != "" {
		return []byte(e.written), nil
	}
	return []byte(e.String()), nil
}

// IsZero reports whether the estimates are unset.
func (e Estimates) IsZero() bool { return e == Estimates{} }

// Known reports whether policies get any estimates at all.
func (e Estimates) Known() bool { return e.Mode != EstimateUnset && e.Mode != EstimateNone }

// String returns the text of the estimates, "" if they are unset.
func (e Estimates) String() string {
	s := estimateNames[e.Mode]
	switch {
	case e.Mode == EstimateNoisy:
		s = fmt.Sprintf("noisy:%g", e.Sigma)
	case e.File != "":
		s += ":" + e.File
	}
	return s
}

// Causal reports whether estimates come from the run's predictor (Config.Predictor).
func (e Estimates) Causal() bool { return e.Mode == EstimateHistory || e.Mode == EstimateGBDT }

// Rung is what policies know of run times, from nothing to everything. Only results of the same rung compare policies.
type Rung uint8

// The rungs.
const (
	RungNone   Rung = iota // nothing
	RungSubmit             // what was written down at submit: requested times
	RungCausal             // what can be learned from jobs that have ended
	RungNoisy              // the run time with an error that does not depend on the job: easier than any real predictor
	RungExact              // the run time
)

var rungNames = [...]string{"none", "submit-time", "causal", "noisy", "exact"}

func (r Rung) String() string { return rungNames[r] }

// Rung returns what policies with these estimates know.
func (e Estimates) Rung() Rung {
	return [...]Rung{RungNone, RungExact, RungSubmit, RungNoisy, RungNone, RungCausal, RungCausal}[e.Mode]
}

// Label names the estimates and their rung for the headers of tables: "history (causal)", or "exact", where the name
// says the rung, or "" if they are unset.
func (e Estimates) Label() string {
	if e.IsZero() {
		return ""
	}
	name, rung := e.String(), e.Rung().String()
	if strings.HasPrefix(name, rung) {
		return name
	}
	return name + " (" + rung + ")"
}

// Of returns the estimate for j's run time: at least 1 ns, or 0 when there is none. Causal estimates are those of j's
// submit.
func (e Estimates) Of(v *View, j Job) time.Duration {
	if e.Causal() {
		return v.Forecast(j).Median()
	}
	return e.OfJob(v.Trace(j))
}

// OfJob returns the estimate that does not depend on a run, so not a causal one: at least 1 ns, or 0 when there is
// none.
func (e Estimates) OfJob(j *traces.Job) time.Duration {
	switch e.Mode {
	case EstimateUnset, EstimateNone, EstimateHistory, EstimateGBDT:
		return 0
	case EstimateTrace:
		return j.Estimate
	case EstimateNoisy:
		z := rng.Normal(rng.At(e.Seed, rng.Hash("estimate"), rng.Hash(j.ID)))
		w := float64(j.Work) * math.Exp(e.Sigma*z)
		if w >= math.MaxInt64/4 {
			w = math.MaxInt64 / 4
		}
		return max(1, time.Duration(w))
	}
	return max(1, j.Work)
}

// Lasting returns how long j is expected to run in all, given for how long it has run: the estimate, until j outlives
// it. From then on it is what is expected of a job of that age (predict.Forecast.Outliving); an estimate without
// quantiles doubles. It is 0 when there is no estimate.
func (e Estimates) Lasting(v *View, j Job) time.Duration {
	ran := v.Ran(j)
	if e.Causal() {
		return v.Forecast(j).Outliving(ran)
	}
	return Outlived(e.OfJob(v.Trace(j)), ran)
}

// Left returns the estimated time left for j: at least 1 ns, or 0 when there is no estimate.
func (e Estimates) Left(v *View, j Job) time.Duration {
	t := e.Lasting(v, j)
	if t <= 0 {
		return 0
	}
	return max(1, t-v.Ran(j))
}

// Outlived returns estimate, doubled until it exceeds ran; 0 if it is not positive.
func Outlived(estimate, ran time.Duration) time.Duration {
	if estimate <= 0 {
		return 0
	}
	for estimate <= ran && estimate < math.MaxInt64/2 {
		estimate *= 2
	}
	return estimate
}

// Check returns an error if the run cannot give estimates for j, which has arrived: it has no predictor, or the trace
// gives j no requested time.
func (e Estimates) Check(v *View, j Job) error {
	switch {
	case e.Causal() && !v.s.forecasts.told:
		return errors.New("estimates " + e.String() + " come from a predictor, and this run has none")
	case e.Mode == EstimateTrace && v.Trace(j).Estimate <= 0:
		return fmt.Errorf(
			"job %s has no estimate in its trace; use estimates history, exact or noisy:SIGMA, or trace.limit, a time that "+
				"stands for those that are missing", v.Trace(j).ID)
	}
	return nil
}
