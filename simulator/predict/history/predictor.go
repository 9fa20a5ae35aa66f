package history

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"clustergym/internal/grow"
	"clustergym/internal/snap"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// Predictor implements predict.Predictor and predict.Historian.
type Predictor struct {
	archive *Archive
	origin  time.Duration
	index   table // of samples, also of earlier runs
	samples []sample
	run     uint32
	used    []int32 // the samples of this run, in order of first use
	jobs    []job   // by number
	longer  []float64
	widen   predict.Calibration
}

var (
	_ predict.Historian = (*Predictor)(nil)
	_ predict.Renewer   = (*Predictor)(nil)
)

// job is a job in the system.
type job struct {
	keys  [most]int32 // samples, the finest first
	kind  [most]uint8
	n     int8 // of keys; 0 = no job has this number
	place int8 // among the last that have started of the finest key
	runs  bool
	unit  float64
	start time.Duration // moved back by what it had run before
	q     [predict.Quantiles]time.Duration
}

// prior are the quantiles of a job about which nothing is known, in seconds; asked are those of a job with a requested
// time, as shares of it.
var (
	prior = [predict.Quantiles]float64{10, 60, 600, 3600, 21600}
	asked = [predict.Quantiles]float64{0.01, 0.05, 0.3, 0.7, 1}
)

// median is the place of the median among the quantiles.
const median = predict.Quantiles / 2

// mostIdle bounds the samples that are kept for later runs.
const mostIdle = 1 << 17

// New returns a predictor with the archive a.
func New(a *Archive) *Predictor {
	p := &Predictor{archive: a, run: 1, longer: make([]float64, 0, Recent)}
	p.widen.Reset()
	return p
}

// Reset implements predict.Predictor.
func (p *Predictor) Reset(origin time.Duration) {
	p.origin = origin
	p.jobs, p.used = p.jobs[:0], p.used[:0]
	if len(p.samples) > mostIdle || p.run == 1<<32-1 {
		p.index.clear()
		p.samples, p.run = p.samples[:0], 0
	}
	p.run++
	p.widen.Reset()
}

// sample returns the number of the sample of a key. guess is the number that it probably has.
func (p *Predictor) sample(key uint64, guess int32) int32 {
	i := guess
	if int(i) >= len(p.samples) || p.samples[i].hash != key {
		var ok bool
		if i, ok = p.index.find(key); !ok {
			i = int32(len(p.samples))
			p.index.add(key, i)
			p.samples = append(p.samples, sample{})
		}
	}
	if s := &p.samples[i]; s.run != p.run {
		p.used = append(p.used, i)
		s.head = head{hash: key, run: p.run, next: s.next}
		for _, x := range p.archive.last(key, p.origin) {
			s.add(x)
		}
	}
	return i
}

// over appends to dst for how long those of the last started jobs of s have run that still run and have run for more
// than x, in ascending order. The job of the number itself is left out.
func (p *Predictor) over(s *sample, now time.Duration, x float64, itself int, dst []float64) []float64 {
	for _, number := range s.begun {
		if number == 0 || int(number) == itself+1 {
			continue
		}
		if b := p.known(int(number) - 1); b != nil && b.runs {
			if ran := float64(now-b.start) / b.unit; ran > x {
				dst = append(dst, ran)
			}
		}
	}
	slices.Sort(dst)
	return dst
}

// Predict implements predict.Predictor.
func (p *Predictor) Predict(now time.Duration, number int, j *traces.Job) predict.Forecast {
	var k keys
	k.of(j)
	b := grow.At(&p.jobs, number)
	*b = job{n: int8(k.n), kind: k.kind, unit: unit(j)}
	b.keys[0] = p.sample(k.hash[0], 0)
	for i := 1; i < k.n; i++ {
		finer := b.keys[i-1]
		b.keys[i] = p.sample(k.hash[i], p.samples[finer].next)
		p.samples[finer].next = b.keys[i]
	}
	f := p.forecast(now, b, number, j)
	b.q = f.Q
	return f
}

// Renew implements predict.Renewer.
func (p *Predictor) Renew(now time.Duration, number int, j *traces.Job) predict.Forecast {
	b := p.known(number)
	if b == nil {
		q := [predict.Quantiles]float64{}
		for i := range q {
			q[i] = prior[i] * float64(time.Second)
		}
		return predict.Of(&q, 0)
	}
	return p.forecast(now, b, number, j)
}

// forecast returns the forecast for the job of this number at this time.
func (p *Predictor) forecast(now time.Duration, b *job, itself int, j *traces.Job) predict.Forecast {
	first := 0
	for first < int(b.n) && p.samples[b.keys[first]].n == 0 {
		first++
	}
	var q [predict.Quantiles]float64
	seen := 0
	if first == int(b.n) {
		q = prior
		for i := range q {
			q[i] *= float64(time.Second)
		}
		if predict.Requested(j) > 0 {
			q = asked
		}
	} else {
		s := &p.samples[b.keys[first]]
		seen = int(s.n)
		s.sort()
		p.longer = p.longer[:0]
		if first == 0 && s.live > 0 {
			p.longer = p.over(s, now, s.quantile(0.5), itself, p.longer)
		}
		if len(p.longer) > 0 {
			s.survive(p.longer, &q)
			seen += len(p.longer)
		} else {
			for i, level := range predict.Levels {
				q[i] = s.quantile(level)
			}
		}
		if s.n < Enough {
			p.spread(&q, b, first+1, predict.Requested(j) > 0)
		}
	}
	most := predict.Most(j)
	p.widen.Apply(&q)
	for i := range q {
		q[i] = min(q[i]*b.unit, most)
	}
	return predict.Of(&q, seen)
}

// spread keeps the median of q and takes the ratios of the other quantiles to it from the first key, from number first
// on, that has enough.
func (p *Predictor) spread(q *[predict.Quantiles]float64, b *job, first int, request bool) {
	from := prior
	if request {
		from = asked
	}
	for i := first; i < int(b.n); i++ {
		s := &p.samples[b.keys[i]]
		if s.n < Enough {
			continue
		}
		if s.sort(); s.quantile(0.5) > 0 {
			for k, level := range predict.Levels {
				from[k] = s.quantile(level)
			}
			break
		}
	}
	m := q[median]
	for k := range q {
		q[k] = m * from[k] / from[median]
	}
}

// known returns the job of this number, nil if there is none: what a hostile snapshot says of jobs need not be what its
// simulator says.
func (p *Predictor) known(number int) *job {
	if number >= len(p.jobs) || p.jobs[number].n == 0 {
		return nil
	}
	return &p.jobs[number]
}

// Started implements predict.Predictor.
func (p *Predictor) Started(now time.Duration, number int) {
	b := p.known(number)
	if b == nil || b.runs {
		return
	}
	b.start += now
	b.place = p.samples[b.keys[0]].start(number)
	b.runs = true
}

// stop returns the job of this number, which does not run from now on; nil if there is none.
func (p *Predictor) stop(number int) *job {
	b := p.known(number)
	if b != nil && b.runs {
		p.samples[b.keys[0]].stop(number, b.place)
		b.runs = false
	}
	return b
}

// Stopped implements predict.Predictor.
func (p *Predictor) Stopped(_ time.Duration, number int, ran time.Duration) {
	if b := p.stop(number); b != nil {
		b.start = -ran
	}
}

// Finished implements predict.Predictor.
func (p *Predictor) Finished(_ time.Duration, number int, ran time.Duration) {
	b := p.stop(number)
	if b == nil {
		return
	}
	for _, k := range b.keys[:b.n] {
		p.samples[k].add(float64(ran) / b.unit)
	}
	p.widen.Learn(&b.q, ran)
	b.n = 0
}

// Dropped implements predict.Predictor.
func (p *Predictor) Dropped(_ time.Duration, number int) {
	if b := p.stop(number); b != nil {
		b.n = 0
	}
}

const magic = "CGhist1"

// AppendSnapshot implements predict.Predictor.
func (p *Predictor) AppendSnapshot(dst []byte) []byte {
	c := snap.Appender(snap.Begin(dst, magic))
	place := make(map[int32]int, len(p.used))
	snap.Ints(c, &p.origin)
	snap.List(c, &p.used, snapSample, func(i int, k *int32) {
		place[*k] = i
		p.samples[*k].code(c)
	})
	p.widen.Code(c)
	snap.List(c, &p.jobs, snapJob, func(_ int, j *job) {
		k := *j
		for i := range k.keys[:k.n] {
			k.keys[i] = int32(place[k.keys[i]])
		}
		k.code(c)
	})
	return snap.Seal(c.Appended(), len(dst))
}

// code appends s to a snapshot, or reads it from one; the methods that change s keep sorted up to date. It reports
// whether s can be a sample.
func (s *sample) code(c *snap.Codec) bool {
	n, at := s.n, s.at
	c.U64(&s.hash)
	snap.Ints(c, &n, &at)
	if n < 0 || n > Keep {
		return false
	}
	if c.Reads() {
		for range n {
			x := 0.0
			c.F64(&x)
			s.add(x)
		}
		s.at = at
	} else {
		for i := range s.last[:n] {
			c.F64(&s.last[i])
		}
	}
	snap.Ints(c, &s.turn)
	for i := range s.begun {
		snap.Ints(c, &s.begun[i])
		if c.Reads() && s.begun[i] > 0 {
			s.live++
		}
	}
	return s.valid()
}

// code appends j to a snapshot, or reads it from one. Keys are the places of samples there. It reports whether j can be
// a job.
func (j *job) code(c *snap.Codec) bool {
	snap.Ints(c, &j.n)
	if j.n < 0 || j.n > most {
		return false
	}
	ok := true
	for i := range j.keys[:j.n] {
		snap.Ints(c, &j.keys[i])
		snap.Ints(c, &j.kind[i])
		ok = ok && j.keys[i] >= 0 && j.kind[i] < most
	}
	for i := range j.q {
		snap.Ints(c, &j.q[i])
	}
	snap.Ints(c, &j.place)
	c.Bool(&j.runs)
	c.F64(&j.unit)
	snap.Ints(c, &j.start)
	return ok && j.place >= 0 && j.place < Recent && !(j.n > 0 && !isUnit(j.unit)) && !(j.n == 0 && j.runs)
}

// isUnit reports whether run times can be counted in x.
func isUnit(x float64) bool { return x >= 1 && x <= traces.MaxTime }

// The least numbers of bytes of a sample and of a job in a snapshot.
const (
	snapSample = 8 + 8 + 8 + 8 + Recent*8
	snapJob    = 8 + predict.Quantiles*8 + 8 + 1 + 8 + 8
)

// RestoreSnapshot implements predict.Predictor.
func (p *Predictor) RestoreSnapshot(src []byte) error {
	r, err := snap.Open(src, magic)
	if err != nil {
		return err
	}
	n, c, ok := New(p.archive), r.Codec(), true
	snap.Ints(c, &n.origin)
	snap.List(c, &n.used, snapSample, func(i int, k *int32) {
		s := sample{head: head{run: n.run}}
		valid := ok && s.code(c)
		if _, twice := n.index.find(s.hash); !valid || twice {
			ok = false
			return
		}
		*k = int32(i)
		n.index.add(s.hash, *k)
		n.samples = append(n.samples, s)
	})
	ok = ok && n.widen.Code(c)
	snap.List(c, &n.jobs, snapJob, func(_ int, j *job) {
		ok = ok && j.code(c) && !slices.ContainsFunc(j.keys[:j.n], func(k int32) bool { return int(k) >= len(n.samples) })
	})
	if !ok {
		return errSnapshot
	}
	if err := r.Done(); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	*p = *n
	return nil
}

var errSnapshot = errors.New("history: a number of the snapshot is out of range")
