package gbdt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/internal/grow"
	"clustergym/internal/snap"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/boost"
	"clustergym/simulator/predict/history"
	"clustergym/traces"
)

const (
	// First is the number of ended jobs to which a run fits its first trees.
	First = 500
	// Again is the share of the last fit's jobs, 1/Again, after which a run fits anew.
	Again = 3
	// Rows is the number of ended jobs to which trees are fitted at most: the last ones.
	Rows = 20000
)

// Options returns the settings of the trees. Leaves hold 100 jobs and more: quantiles of fewer are noise.
func Options() boost.Options {
	o := boost.DefaultOptions()
	o.MinLeaf, o.Trees = 100, 60
	return o
}

// rows are ended jobs: a ring of the last Rows.
type rows struct {
	x     []float32
	y     []float64
	next  int // of the ring, once it is full
	since int // added since the last fit
}

func (r *rows) add(x []float32, y float64) {
	r.since++
	if len(r.y) < Rows {
		r.x, r.y = append(r.x, x...), append(r.y, y)
		return
	}
	copy(r.x[r.next*columns:], x)
	r.y[r.next] = y
	r.next = (r.next + 1) % Rows
}

// due reports whether trees are to be fitted, of which the last were fitted to fitted jobs.
func (r *rows) due(fitted int) bool { return r.since >= max(First, fitted/Again) }

// fit fits trees. Its only error would be one of this package.
func fit(x []float32, y []float64, workers int) *boost.Model {
	m, err := fitTrees(context.Background(), x, y, workers)
	if err != nil {
		panic(err)
	}
	return m
}

func fitTrees(ctx context.Context, x []float32, y []float64, workers int) (*boost.Model, error) {
	o := Options()
	o.MinLeaf = min(o.MinLeaf, max(1, len(y)/20))
	return boost.Fit(ctx, Features(), x, y, predict.Levels[:], o, workers)
}

// predictor implements predict.Predictor.
type predictor struct {
	maker   *Maker
	origin  time.Duration
	history *history.Predictor
	model   *boost.Model // nil until the first fit
	fitted  int          // jobs to which this run has fitted it, 0 = it has not
	rows    rows
	jobs    []job // by number
	free    []int // rows of pending that are not used
	pending []float32
	q       [predict.Quantiles]float64
	widen   predict.Calibration
}

var _ predict.Historian = (*predictor)(nil)

// job is a job in the system.
type job struct {
	known bool
	row   int32 // in pending
	unit  float64
	q     [predict.Quantiles]time.Duration
}

// Reset implements predict.Predictor.
func (p *predictor) Reset(origin time.Duration) {
	p.origin = origin
	p.history.Reset(origin)
	p.model, p.fitted = p.maker.at(origin), 0
	p.rows = rows{x: p.rows.x[:0], y: p.rows.y[:0]}
	p.jobs, p.free, p.pending = p.jobs[:0], p.free[:0], p.pending[:0]
	p.widen.Reset()
}

// Predict implements predict.Predictor.
func (p *predictor) Predict(now time.Duration, number int, j *traces.Job) predict.Forecast {
	f := p.history.Predict(now, number, j)
	b := grow.At(&p.jobs, number)
	*b = job{known: true, unit: history.Unit(j)}
	if n := len(p.free); n > 0 {
		b.row, p.free = int32(p.free[n-1]), p.free[:n-1]
	} else {
		b.row = int32(len(p.pending) / columns)
		for range columns {
			p.pending = append(p.pending, 0)
		}
	}
	row := p.row(b)
	describe(row, p.history, p.origin+now, number, j)
	if p.model != nil {
		p.model.Predict(row, p.q[:])
		for i, x := range p.q {
			p.q[i] = math.Exp(x) * b.unit
		}
		p.widen.Apply(&p.q)
		most := predict.Most(j)
		for i := range p.q {
			p.q[i] = min(p.q[i], most)
		}
		f = predict.Of(&p.q, max(p.fitted, len(p.rows.y), p.maker.from))
	}
	b.q = f.Q
	return f
}

// Past implements predict.Historian.
func (p *predictor) Past(number int) (user, vc predict.Past) { return p.history.Past(number) }

func (p *predictor) row(b *job) []float32 { return p.pending[int(b.row)*columns:][:columns] }

// leave forgets the job of this number, and returns what was known; known is false if there is none.
func (p *predictor) leave(number int) (b job) {
	if number >= len(p.jobs) || !p.jobs[number].known {
		return b
	}
	b = p.jobs[number]
	p.jobs[number].known = false
	p.free = append(p.free, int(b.row))
	return b
}

// Started implements predict.Predictor.
func (p *predictor) Started(now time.Duration, number int) { p.history.Started(now, number) }

// Stopped implements predict.Predictor.
func (p *predictor) Stopped(now time.Duration, number int, ran time.Duration) {
	p.history.Stopped(now, number, ran)
}

// Finished implements predict.Predictor.
func (p *predictor) Finished(now time.Duration, number int, ran time.Duration) {
	p.history.Finished(now, number, ran)
	b := p.leave(number)
	if !b.known {
		return
	}
	if p.model != nil {
		p.widen.Learn(&b.q, ran)
	}
	p.rows.add(p.row(&b), target(ran, b.unit))
	if !p.maker.fixed && p.rows.due(max(p.fitted, p.maker.known(p.origin))) {
		p.refit()
	}
}

// refit fits trees to the last Rows jobs that have ended, in the run or before it.
func (p *predictor) refit() {
	x, y := p.rows.x, p.rows.y
	if pastX, pastY := p.maker.before(p.origin, Rows-len(y)); len(pastY) > 0 {
		x, y = slices.Concat(pastX, x), slices.Concat(pastY, y)
	}
	p.fitted, p.rows.since = len(y), 0
	p.model = fit(x, y, p.maker.workers)
}

// Dropped implements predict.Predictor.
func (p *predictor) Dropped(now time.Duration, number int) {
	p.history.Dropped(now, number)
	p.leave(number)
}

const magic = "CGgbdt1"

// AppendSnapshot implements predict.Predictor.
func (p *predictor) AppendSnapshot(dst []byte) []byte {
	c := snap.Appender(snap.Begin(dst, magic))
	var model []byte
	if p.fitted > 0 {
		model = p.model.AppendBinary(nil)
	}
	past := p.history.AppendSnapshot(nil)
	p.code(c, &past, &model)
	return snap.Seal(c.Appended(), len(dst))
}

// code appends p to a snapshot, or reads it from one, past and model being those of its parts. It reports whether p can
// be a predictor.
func (p *predictor) code(c *snap.Codec, past, model *[]byte) bool {
	c.Bytes(past)
	snap.Ints(c, &p.origin)
	snap.Ints(c, &p.fitted)
	c.Bytes(model)
	ok := p.widen.Code(c) && p.fitted >= 0
	snap.Ints(c, &p.rows.next, &p.rows.since)
	snap.List(c, &p.rows.y, 8, func(_ int, y *float64) {
		c.F64(y)
		ok = ok && math.Abs(*y) <= 1000
	})
	count := len(p.rows.y)
	if count > Rows || p.rows.next < 0 || p.rows.next >= Rows || p.rows.next > 0 && count < Rows || p.rows.since < 0 {
		return false
	}
	if c.Reads() {
		p.rows.x = make([]float32, count*columns)
	}
	c.F32(p.rows.x)
	snap.List(c, &p.jobs, 1, func(_ int, j *job) {
		if c.Bool(&j.known); !j.known {
			return
		}
		c.F64(&j.unit)
		for i := range j.q {
			snap.Ints(c, &j.q[i])
		}
		if c.Reads() {
			j.row = int32(len(p.pending) / columns)
			p.pending = append(p.pending, make([]float32, columns)...)
		}
		c.F32(p.row(j))
		ok = ok && j.unit > 0 && !math.IsInf(j.unit, 0)
	})
	return ok
}

var errSnapshot = errors.New("gbdt: a number of the snapshot is out of range")

// RestoreSnapshot implements predict.Predictor.
func (p *predictor) RestoreSnapshot(src []byte) error {
	r, err := snap.Open(src, magic)
	if err != nil {
		return err
	}
	n := p.maker.New().(*predictor)
	var past, model []byte
	if !n.code(r.Codec(), &past, &model) {
		return errSnapshot
	}
	if err := r.Done(); err != nil {
		return fmt.Errorf("gbdt: %w", err)
	}
	n.model = p.maker.at(n.origin)
	if n.fitted != 0 || len(model) != 0 {
		if n.model, err = boost.Parse(model); err != nil {
			return fmt.Errorf("gbdt: %w", err)
		}
		if !fits(n.model) {
			return errSnapshot
		}
	}
	if err := n.history.RestoreSnapshot(past); err != nil {
		return err
	}
	*p = *n
	return nil
}

// fits reports whether m's columns and quantiles are those of this package.
func fits(m *boost.Model) bool {
	names, levels := m.Names(), m.Levels()
	if len(names) != columns || len(levels) != predict.Quantiles {
		return false
	}
	for i, n := range Features() {
		if names[i] != n {
			return false
		}
	}
	for i, l := range predict.Levels {
		if levels[i] != l {
			return false
		}
	}
	return true
}
