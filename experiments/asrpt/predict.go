package asrpt

import (
	"fmt"
	"maps"
	"math"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/predict/history"
	"clustergym/traces"
)

// The predictors by their names in tables.
const (
	byNobody  = "none"
	byMean    = "mean of the group"
	byHistory = "history"
	byGBDT    = "gbdt"
	byForest  = "random forest"
	byExact   = "exact"
)

// predictors are those of the tables, from the one that knows least.
func named() []string {
	return []string{byNobody, byMean, byHistory, byGBDT, byForest, byExact}
}

// predictor predicts numbers of iterations. Jobs are known by their position.
type predictor interface {
	// submitted returns what is expected of a job.
	submitted(now float64, j int) float64
	// finished says that it has ended; only now its iterations are known.
	finished(now float64, j int)
}

// knowledge is what the predictors of a workload share: the jobs before it, and what is fitted to them.
type knowledge struct {
	jobs   []job
	past   stats
	forest *forest
	all    []traces.Job  // those before the workload, and its own, on the clock of their trace
	origin time.Duration // of the workload on that clock
	gbdt   predict.Maker
}

// learn returns what can be known of jobs from those before them, which are in order of submit and were submitted
// before 0. They are taken to have started when they were submitted.
func learn(before, jobs []job, trees int, seed uint64, workers int) (*knowledge, error) {
	k := &knowledge{jobs: jobs, past: stats{}}
	var rows [][]float64
	var targets []float64
	running := &ends{}
	for i := range before {
		b := &before[i]
		running.until(b.submit, func(j int) { k.past.add(&before[j]) })
		if b.submit+b.solo() > 0 {
			continue
		}
		row, seen := k.past.features(b)
		if seen {
			rows, targets = append(rows, row), append(targets, math.Log(b.iterations)-row[groupMean])
		}
		running.add(b.submit+b.solo(), i)
	}
	running.until(0, func(j int) { k.past.add(&before[j]) })
	if len(rows) < 2*minLeaf {
		return nil, fmt.Errorf("%d jobs had ended before the workload, want %d or more to learn from", len(rows), 2*minLeaf)
	}
	k.forest = fit(rows, targets, trees, seed)
	for _, list := range [][]job{before, jobs} {
		for i := range list {
			k.all = append(k.all, list[i].meta)
		}
	}
	k.origin = jobs[0].meta.Submit
	k.gbdt = gbdt.NewFixed(k.all, len(before), workers)
	return k, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// ends are the finishes of running jobs.
type ends struct{ list []entry }

func (e *ends) add(at float64, j int) {
	i := len(e.list)
	for i > 0 && e.list[i-1].key < at {
		i--
	}
	e.list = append(e.list, entry{})
	copy(e.list[i+1:], e.list[i:])
	e.list[i] = entry{j, at}
}

// until calls done for all jobs that end by now.
func (e *ends) until(now float64, done func(j int)) {
	for n := len(e.list); n > 0 && e.list[n-1].key <= now; n-- {
		j := e.list[n-1].job
		e.list = e.list[:n-1]
		done(j)
	}
}

// predictor returns the predictor called name, as it is when the workload begins.
func (k *knowledge) predictor(name string) predictor {
	switch name {
	case byNobody:
		return constant{math.Exp(k.past[""].mean())}
	case byMean:
		return &byStats{k: k, past: maps.Clone(k.past)}
	case byForest:
		return &byStats{k: k, past: maps.Clone(k.past), forest: k.forest}
	case byHistory:
		return k.wrap(history.NewArchive(k.all))
	case byGBDT:
		return k.wrap(k.gbdt)
	default:
		return &noisy{jobs: k.jobs}
	}
}

// constant expects the same of every job.
type constant struct{ iterations float64 }

func (c constant) submitted(float64, int) float64 { return c.iterations }
func (c constant) finished(float64, int)          {}

// noisy knows every job, but for an error whose logarithm has this standard deviation.
type noisy struct {
	jobs  []job
	sigma float64
	seed  uint64
}

func (n *noisy) submitted(_ float64, j int) float64 {
	if n.sigma == 0 {
		return n.jobs[j].iterations
	}
	return n.jobs[j].iterations * math.Exp(n.sigma*rng.Normal(rng.At(n.seed, uint64(j))))
}

func (n *noisy) finished(float64, int) {}

// wrapped is a predictor of run times. It is told run times on the empty cluster, so that it predicts iterations.
type wrapped struct {
	k *knowledge
	p predict.Predictor
}

func (k *knowledge) wrap(m predict.Maker) *wrapped {
	w := &wrapped{k, m.New()}
	w.p.Reset(k.origin)
	return w
}

func (w *wrapped) submitted(now float64, j int) float64 {
	f := w.p.Predict(seconds(now), j, &w.k.jobs[j].meta)
	w.p.Started(seconds(now), j)
	return f.Median().Seconds() / w.k.jobs[j].best
}

func (w *wrapped) finished(now float64, j int) {
	w.p.Finished(seconds(now), j, w.k.jobs[j].meta.Work)
}

// stats are statistics of the jobs that have ended, by what they have in common.
type stats map[string]tally

// tally are sums over iterations and their logarithms.
type tally struct{ n, sum, logs, squares, last float64 }

func (t tally) mean() float64 { return t.logs / t.n }

func (t tally) spread() float64 {
	return math.Sqrt(max(0, t.squares/t.n-t.mean()*t.mean()))
}

// keys returns what a job has in common with others, the closest first. The last one is of all jobs.
func keys(j *job) [3]string {
	m := &j.meta
	own := "u" + m.User + "|" + m.VC + "|" + fmt.Sprint(m.GPUs)
	group := own + "|" + m.Name
	if m.Group != "" {
		group = "g" + m.Group
	}
	return [3]string{group, own, ""}
}

// add counts a job that has ended.
func (s stats) add(j *job) {
	x := math.Log(j.iterations)
	for _, key := range keys(j) {
		t := s[key]
		s[key] = tally{t.n + 1, t.sum + j.iterations, t.logs + x, t.squares + x*x, x}
	}
}

// groupMean is the place of the mean logarithm of the group's iterations among the features. The forest predicts by how
// much a job differs from it: trees follow a straight line in steps only.
const groupMean = 7

// features returns what the forest looks at, and whether any job has ended. Where nothing is known of a key, the
// numbers are those of the next one.
func (s stats) features(j *job) (row []float64, seen bool) {
	m := &j.meta
	row = []float64{
		math.Log(float64(j.graph.gpus)), float64(len(j.graph.stages)), math.Log(j.best),
		math.Mod(m.Submit.Hours(), 24), code(m.User + "|" + m.VC), code(keys(j)[0]),
	}
	own := keys(j)
	for i := range own {
		t := tally{}
		for _, key := range own[i:] {
			if t = s[key]; t.n > 0 {
				break
			}
		}
		if t.n == 0 {
			return nil, false
		}
		row = append(row, math.Log1p(s[own[i]].n), t.mean(), t.last, t.spread())
	}
	return row, true
}

// code returns a number between 0 and 1 for a word, by which trees can tell words apart.
func code(word string) float64 { return rng.Uniform(rng.Mix(rng.Hash(word))) }

// byStats predicts from the jobs that have ended: the mean of the group, or what a forest makes of the statistics.
type byStats struct {
	k      *knowledge
	past   stats
	forest *forest
}

func (b *byStats) submitted(_ float64, j int) float64 {
	o := &b.k.jobs[j]
	if b.forest != nil {
		row, _ := b.past.features(o)
		return math.Exp(row[groupMean] + b.forest.predict(row))
	}
	for _, key := range keys(o) {
		if t := b.past[key]; t.n > 0 {
			return t.sum / t.n
		}
	}
	return 1
}

func (b *byStats) finished(_ float64, j int) { b.past.add(&b.k.jobs[j]) }
