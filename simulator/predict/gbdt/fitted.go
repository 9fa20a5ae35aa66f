package gbdt

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"clustergym/internal/rng"
	"clustergym/internal/snap"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/boost"
	"clustergym/traces"
)

// Fitted are trees that have been fitted to jobs of a trace, and what is needed to notice that they are measured on
// these same jobs. It never changes.
type Fitted struct {
	// Trace names the trace, for people.
	Trace string
	// Until is the time on the trace's clock before which the jobs had ended.
	Until time.Duration

	model *boost.Model
	jobs  []uint64 // marks of the jobs, ascending
	sum   uint64   // of the bytes that it was read from
}

// Row is what trees are fitted to: a job that has ended, with its features as of its submit.
type Row struct {
	Job *traces.Job
	End time.Duration
	// Features are in the order of Features. They are valid until the next row.
	Features []float32
	// Unit is what run times are counted in: the requested time, or a nanosecond without one.
	Unit time.Duration
	// Target is ln(run time / Unit), with run times below a millisecond counted as that.
	Target float64
}

// Describe calls each for every job of jobs, which are in order of submit, in the order of their ends. Jobs are taken
// to have started when they were submitted. It ends with the first error of each.
func Describe(jobs []traces.Job, each func(r *Row) error) (err error) {
	p := New(1).New().(*predictor)
	p.maker.fixed = true
	Replay(jobs, p, func(end time.Duration, number int, j *traces.Job) {
		if err != nil {
			return
		}
		b := &p.jobs[number]
		err = each(&Row{Job: j, End: end, Features: p.row(b), Unit: time.Duration(b.unit), Target: target(j.Work, b.unit)})
	})
	return err
}

// ErrTooFew says that there are fewer than First jobs to fit trees to.
var ErrTooFew = fmt.Errorf("gbdt: fewer than %d jobs had ended", First)

// Fit fits trees to all of jobs, which are in order of submit, that had ended before until. The error is ErrTooFew, or
// that of ctx. The result is the same for any number of workers.
func Fit(ctx context.Context, trace string, jobs []traces.Job, until time.Duration, workers int) (*Fitted, error) {
	f := &Fitted{Trace: trace, Until: until}
	// Later jobs are not looked at, so that they cannot tell anything.
	jobs = jobs[:sort.Search(len(jobs), func(i int) bool { return jobs[i].Submit >= until })]
	x, y := make([]float32, 0, len(jobs)*columns), make([]float64, 0, len(jobs))
	err := Describe(jobs, func(r *Row) error {
		if r.End < until {
			x, y, f.jobs = append(x, r.Features...), append(y, r.Target), append(f.jobs, mark(r.Job))
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	if len(y) < First {
		return nil, ErrTooFew
	}
	slices.Sort(f.jobs)
	if f.model, err = fitTrees(ctx, x, y, workers); err != nil {
		return nil, err
	}
	return f, nil
}

// mark returns a number that identifies a job of a trace, wherever the trace begins.
func mark(j *traces.Job) uint64 {
	h := rng.Hash(j.ID)
	for _, x := range []uint64{uint64(j.Work), uint64(predict.Requested(j)), uint64(j.GPUs), uint64(j.GPUMilli),
		rng.Hash(j.User), rng.Hash(j.VC)} {
		h = rng.Mix(h ^ x)
	}
	return h
}

// Jobs returns the number of jobs to which the trees have been fitted.
func (f *Fitted) Jobs() int { return len(f.jobs) }

// Knows reports whether j is one of them.
func (f *Fitted) Knows(j *traces.Job) bool {
	_, ok := slices.BinarySearch(f.jobs, mark(j))
	return ok
}

// Gains returns, for each of Features, by how much the splits on it have reduced the loss that trees are grown by. Do
// not change it.
func (f *Fitted) Gains() []float64 { return f.model.Gains() }

// Predict returns what the trees say of a row: the forecast of a predictor that has just begun, without the widening by
// what jobs have outlived since.
func (f *Fitted) Predict(r *Row) predict.Forecast {
	var q [predict.Quantiles]float64
	f.model.Predict(r.Features, q[:])
	most := predict.Most(r.Job)
	for i, x := range q {
		q[i] = min(math.Exp(x)*float64(r.Unit), most)
	}
	return predict.Of(&q, len(f.jobs))
}

// fileMagic begins a file and names the version of its format.
const fileMagic = "clustergym gbdt 1\n"

// AppendBinary appends f to dst and returns the longer slice: the name of the trace, Until, the marks of the jobs, and
// the model as package boost writes it.
func (f *Fitted) AppendBinary(dst []byte) []byte {
	start := len(dst)
	b := snap.Begin(dst, fileMagic)
	b = snap.String(b, f.Trace)
	b = snap.Int(b, int(f.Until))
	b = snap.Int(b, len(f.jobs))
	for _, m := range f.jobs {
		b = snap.U64(b, m)
	}
	b = snap.Bytes(b, f.model.AppendBinary(nil))
	return snap.Seal(b, start)
}

// The errors of Parse.
var (
	ErrNoModel  = errors.New("it is no model of gymctl predict fit")
	ErrVersion  = errors.New("it comes from another version of gymctl; fit it again")
	ErrDamaged  = errors.New("it is damaged or cut short; fit it again, or copy it again")
	ErrFeatures = errors.New("its features or quantiles are not those of this gymctl; fit it again")
)

// Parse reads what AppendBinary wrote. src may be hostile: Parse checks every number, and takes memory in proportion to
// the bytes present.
func Parse(src []byte) (*Fitted, error) {
	const family = "clustergym gbdt "
	switch {
	case strings.HasPrefix(fileMagic, string(src[:min(len(src), len(fileMagic))])) && len(src) > 0 &&
		len(src) < len(fileMagic):
		return nil, ErrDamaged
	case !strings.HasPrefix(string(src[:min(len(src), len(family))]), family):
		return nil, ErrNoModel
	case !strings.HasPrefix(string(src[:min(len(src), len(fileMagic))]), fileMagic):
		return nil, ErrVersion
	}
	r, err := snap.Open(src, fileMagic)
	if err != nil {
		return nil, ErrDamaged
	}
	h := fnv.New64a()
	h.Write(src)
	f := &Fitted{Trace: r.String(), Until: time.Duration(r.Int()), sum: h.Sum64()}
	for range r.Count(8) {
		f.jobs = append(f.jobs, r.U64())
	}
	model := r.Bytes()
	if r.Done() != nil || !slices.IsSorted(f.jobs) {
		return nil, ErrDamaged
	}
	if f.model, err = boost.Parse(model); err != nil {
		return nil, ErrDamaged
	}
	if !fits(f.model) {
		return nil, ErrFeatures
	}
	return f, nil
}
