package estimates

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/lab/predictors"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// The names of what is known of run times.
const (
	knowNone      = "none"
	knowRequested = "requested"
	knowLastTwo   = "last two"
	knowHistory   = "history"
	knowGBDT      = "gbdt"
	knowOnce      = "gbdt once"
	knowNoisy1    = "noisy:1"
	knowNoisy2    = "noisy:2"
	knowExact     = "exact"
)

// ladder are all names, from those who know least to those who know most.
var ladder = []string{knowNone, knowRequested, knowLastTwo, knowHistory, knowGBDT, knowOnce, knowNoisy2, knowNoisy1,
	knowExact}

// rungOf returns the rung of a name.
func rungOf(known string) sim.Rung {
	switch known {
	case knowNone:
		return sim.RungNone
	case knowRequested:
		return sim.RungSubmit
	case knowNoisy1, knowNoisy2:
		return sim.RungNoisy
	case knowExact:
		return sim.RungExact
	}
	return sim.RungCausal
}

// rungs returns the names of the rungs, from the lowest.
func rungs() (names []string) {
	for r := sim.RungNone; r <= sim.RungExact; r++ {
		names = append(names, r.String())
	}
	return names
}

// withRung returns a name with its rung: "history (causal)".
func withRung(known string) string { return known + " (" + rungOf(known).String() + ")" }

// labelsOf returns the labels of what is known.
func labelsOf(known string) map[string]string {
	return map[string]string{"rung": rungOf(known).String(), "estimates": known}
}

// labels returns the labels of rows about a log and what is known.
func labels(log, known string) map[string]string {
	own := labelsOf(known)
	own["log"] = log
	return own
}

// keyOf returns a name as a word of a cell's key.
func keyOf(known string) string { return strings.NewReplacer(" ", "-", ":", "-").Replace(known) }

// seedsOf returns the number of seeds with which a name is played.
func (s *settings) seedsOf(known string) int {
	if rungOf(known) == sim.RungNoisy {
		return s.Seeds
	}
	return 1
}

// knowledge is what policies are given in a run.
type knowledge struct {
	estimates sim.Estimates
	maker     predict.Maker // nil unless estimates are causal
	jobs      []traces.Job  // with the estimates of last two in the place of requested times
}

// know returns the knowledge by a name of the jobs of a log. If half is true, runs begin in its second half and know
// what had ended before, as if each job had started when it was submitted.
func know(known string, jobs []traces.Job, half bool, seed uint64, workers int) (knowledge, error) {
	k := knowledge{jobs: jobs}
	text := known
	switch known {
	case knowRequested:
		text = "trace"
	case knowLastTwo:
		text = "trace"
		k.jobs = withLastTwo(jobs)
	case knowHistory:
		var past []traces.Job
		if half {
			past = jobs
		}
		k.maker = history.NewArchive(past)
	case knowGBDT:
		k.maker = gbdt.New(workers)
		if half {
			k.maker = gbdt.NewArchive(jobs, workers)
		}
	case knowOnce:
		text = knowGBDT
		k.maker = gbdt.NewFixed(jobs, len(jobs)/2, workers)
	}
	var err error
	k.estimates, err = sim.ParseEstimates(text)
	k.estimates.Seed = seed
	return k, err
}

// recorder is a predictor that remembers what it says.
type recorder struct {
	predict.Predictor
	origin time.Duration
	said   []predictors.Forecast
}

// Reset begins at the recorder's own origin.
func (r *recorder) Reset(time.Duration) { r.Predictor.Reset(r.origin) }

// Predict implements predict.Predictor.
func (r *recorder) Predict(now time.Duration, number int, j *traces.Job) predict.Forecast {
	f := r.Predictor.Predict(now, number, j)
	r.said = append(r.said, predictors.Forecast{Job: j.ID, Submit: j.Submit, Work: j.Work, Q: f.Q, Seen: int(f.Seen)})
	return f
}

// forecasts returns what maker's predictors say of the jobs from position first on, each of which starts when it is
// submitted.
func forecasts(maker predict.Maker, jobs []traces.Job, first int) []predictors.Forecast {
	r := &recorder{Predictor: maker.New(), origin: jobs[first].Submit}
	gbdt.Replay(from(jobs[first:]), r, func(time.Duration, int, *traces.Job) {})
	return r.said
}

// from returns copies of jobs whose clock shows 0 at the first submit.
func from(jobs []traces.Job) []traces.Job {
	own := slices.Clone(jobs)
	for i := range own {
		own[i].Submit -= jobs[0].Submit
	}
	return own
}

// points returns the estimates for jobs that are one number each.
func points(k *knowledge) ([]predictors.Forecast, error) {
	all := make([]predictors.Forecast, len(k.jobs))
	for i := range k.jobs {
		j := &k.jobs[i]
		e := k.estimates.OfJob(j)
		if e <= 0 {
			return nil, fmt.Errorf("job %s has no estimate %s", j.ID, k.estimates)
		}
		all[i] = predictors.Forecast{Job: j.ID, Submit: j.Submit, Work: j.Work}
		for q := range all[i].Q {
			all[i].Q[q] = e
		}
	}
	return all, nil
}
