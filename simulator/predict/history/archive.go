package history

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// Archive makes predictors that know, of the jobs of a trace, those that had ended when their run begins. Its jobs
// never change, so that all predictors share them. Safe for concurrent use.
type Archive struct {
	name string
	of   map[uint64]segment // by key
	ends []time.Duration    // of all keys, in order within each; jobs that end together are in order of the trace
	ran  []float64          // the run times, in the same order
}

// segment is where a key's jobs are in the lists.
type segment struct{ from, n int }

// NewArchive returns an archive of jobs, which are in order of submit. Jobs are taken to have ended after their work,
// counted from their submit. nil is an archive that knows nothing.
func NewArchive(jobs []traces.Job) *Archive {
	a := &Archive{name: "history", of: map[uint64]segment{}}
	if len(jobs) == 0 {
		return a
	}
	type row struct {
		key uint64
		end time.Duration
		ran float64
	}
	rows := make([]row, 0, 4*len(jobs))
	seen := uint64(0)
	for i := range jobs {
		j := &jobs[i]
		var k keys
		k.of(j)
		for _, h := range k.hash[:k.n] {
			rows = append(rows, row{h, j.Submit + j.Work, float64(j.Work) / unit(j)})
			seen = rng.Mix(seen ^ h)
		}
		// Cores and memory are no key, but features of other predictors with this archive.
		for _, x := range [...]int64{int64(j.Submit), int64(j.Work), int64(j.Estimate), j.CPUMilli, j.MemBytes} {
			seen = rng.Mix(seen ^ uint64(x))
		}
	}
	a.name = fmt.Sprintf("history with an archive of %d jobs (%016x)", len(jobs), seen)
	slices.SortStableFunc(rows, func(x, y row) int {
		if c := cmp.Compare(x.key, y.key); c != 0 {
			return c
		}
		return cmp.Compare(x.end, y.end)
	})
	a.ends, a.ran = make([]time.Duration, len(rows)), make([]float64, len(rows))
	for i, r := range rows {
		a.ends[i], a.ran[i] = r.end, r.ran
		if i == 0 || rows[i-1].key != r.key {
			a.of[r.key] = segment{from: i}
		}
		s := a.of[r.key]
		s.n++
		a.of[r.key] = s
	}
	return a
}

// New implements predict.Maker.
func (a *Archive) New() predict.Predictor { return New(a) }

// String implements predict.Maker.
func (a *Archive) String() string { return a.name }

// last returns the run times of the last Keep jobs of a key that ended before t, in order of their ends.
func (a *Archive) last(key uint64, t time.Duration) []float64 {
	s := a.of[key]
	ends := a.ends[s.from : s.from+s.n]
	n := sort.Search(len(ends), func(i int) bool { return ends[i] >= t })
	return a.ran[s.from+max(0, n-Keep) : s.from+n]
}
