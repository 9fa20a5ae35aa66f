package gbdt

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"clustergym/simulator/predict"
	"clustergym/simulator/predict/boost"
	"clustergym/simulator/predict/history"
	"clustergym/traces"
)

// Slices is the number of points of an archive's trace at which trees are fitted.
const Slices = 10

// Maker makes predictors. Safe for concurrent use.
type Maker struct {
	name    string
	past    *history.Archive
	workers int
	fixed   bool         // runs fit no trees of their own
	given   *boost.Model // of a file; nil = none
	from    int          // jobs to which it was fitted
	slices  []*slice     // of an archive, in order of time
	table   table
}

// slice is a point of a trace and the trees fitted to what had ended by then.
type slice struct {
	at   time.Duration
	once sync.Once
	fit  *boost.Model
}

// table are the jobs of an archive, made when the first trees are fitted.
type table struct {
	once sync.Once
	jobs []traces.Job
	x    []float32
	y    []float64
	end  []time.Duration
}

// New returns a maker of predictors that fit trees in their run alone, on up to workers goroutines; the forecasts do
// not depend on their number.
func New(workers int) *Maker {
	return &Maker{name: "gbdt", past: history.NewArchive(nil), workers: workers}
}

// NewFitted returns a maker of predictors with the trees of f, which stay as they are, and with the archive of jobs.
func NewFitted(f *Fitted, jobs []traces.Job, workers int) *Maker {
	past := history.NewArchive(jobs)
	return &Maker{
		name: fmt.Sprintf("gbdt of a file (%016x), %s", f.sum,
			past), past: past, workers: workers, fixed: true, given: f.model, from: len(f.jobs),
	}
}

// NewArchive returns a maker of predictors that know, of jobs, which are in order of submit, those that had ended when
// their run begins. Jobs are taken to have ended after their work, counted from their submit.
func NewArchive(jobs []traces.Job, workers int) *Maker {
	past := history.NewArchive(jobs)
	m := &Maker{name: "gbdt, " + past.String(), past: past, workers: workers}
	m.table.jobs = jobs
	for i := 1; i <= Slices && len(jobs) > 0; i++ {
		if n := i * len(jobs) / (Slices + 1); n >= First {
			m.slices = append(m.slices, &slice{at: jobs[n].Submit})
		}
	}
	return m
}

// NewFixed returns a maker like NewArchive's whose predictors use one model, fitted to what had ended when the job at
// position first was submitted, and fit none of their own. Runs that begin earlier have history's forecasts.
func NewFixed(jobs []traces.Job, first, workers int) *Maker {
	m := NewArchive(jobs, workers)
	m.name = fmt.Sprintf("gbdt fitted once, before job %d, %s", first, m.past)
	m.fixed = true
	m.slices = []*slice{{at: jobs[first].Submit}}
	return m
}

// New implements predict.Maker.
func (m *Maker) New() predict.Predictor {
	p := &predictor{maker: m, history: history.New(m.past), model: m.given}
	p.widen.Reset()
	return p
}

// String implements predict.Maker.
func (m *Maker) String() string { return m.name }

// at returns the model with which a run begins at origin, nil if there is none.
func (m *Maker) at(origin time.Duration) *boost.Model {
	n := sort.Search(len(m.slices), func(i int) bool { return m.slices[i].at > origin })
	if n == 0 {
		return m.given
	}
	s := m.slices[n-1]
	s.once.Do(func() { s.fit = m.table.fit(s.at, m.workers) })
	return s.fit
}

// known returns the number of jobs to which the model is fitted with which a run begins at origin.
func (m *Maker) known(origin time.Duration) int {
	n := sort.Search(len(m.slices), func(i int) bool { return m.slices[i].at > origin })
	if n == 0 {
		return m.from
	}
	_, y := m.before(m.slices[n-1].at, Rows)
	return len(y)
}

// before returns the features and targets of the last n jobs of the archive, or fewer, that had ended before t.
func (m *Maker) before(t time.Duration, n int) (x []float32, y []float64) {
	if len(m.slices) == 0 {
		return nil, nil
	}
	return m.table.before(t, n)
}

func (t *table) before(at time.Duration, n int) (x []float32, y []float64) {
	t.once.Do(t.fill)
	to := sort.Search(len(t.end), func(i int) bool { return t.end[i] >= at })
	from := max(0, to-n)
	return t.x[from*columns : to*columns], t.y[from:to]
}

// fit fits trees to the last Rows jobs that had ended before t, nil if they are too few.
func (t *table) fit(before time.Duration, workers int) *boost.Model {
	x, y := t.before(before, Rows)
	if len(y) < First {
		return nil
	}
	return fit(x, y, workers)
}

// fill describes all jobs, in order of their ends.
func (t *table) fill() {
	t.x, t.y = make([]float32, 0, len(t.jobs)*columns), make([]float64, 0, len(t.jobs))
	_ = Describe(t.jobs, func(r *Row) error { // it has no error of its own
		t.x, t.y, t.end = append(t.x, r.Features...), append(t.y, r.Target), append(t.end, r.End)
		return nil
	})
}
