package history

import (
	"math"
	"slices"
	"time"

	"clustergym/env/predict"
)

const (
	// Keep is the number of run times in a key's sample.
	Keep = 20
	// Recent is the number of started jobs of a key that are looked at as censored observations.
	Recent = 10
	// Enough is the size from which on a sample gives quantiles other than its median.
	Enough = 8
)

// sample is what is known of the jobs of one key.
type sample struct {
	hash   uint64
	run    uint32 // in which it was last used; in others it has nothing to say
	next   int32  // the sample of the next coarser key of the last job, if that has the right hash
	recent int32  // place of its starts + 1, 0 = none
	n, at  int8   // how many run times, and the place of the oldest if there are Keep
	stale  bool   // sorted lacks a run time
	asked  bool   // sorted was looked at since the last run time

	last   [Keep]float64 // a ring of the last run times
	sorted [Keep]float64 // the same in ascending order
}

// recent are the last starts of jobs of a key that is the finest of some.
type recent struct {
	begun [Recent]begun // a ring
	next  int8          // place of the next
	live  int8          // those that still run
}

// begun is a job that has started.
type begun struct {
	number int32
	runs   bool
	at     time.Duration // the start, moved back by what it had run before
	unit   float64
}

// add takes in a run time, in place of the oldest if there are Keep. Of keys that nobody looks at it leaves the sorting for
// later: most jobs are forecast from one key of their five.
func (s *sample) add(x float64) {
	switch {
	case s.stale:
	case s.asked:
		s.insert(x)
		s.asked = false
	default:
		s.stale = true
	}
	if s.n < Keep {
		s.last[s.n] = x
		s.n++
		return
	}
	s.last[s.at] = x
	s.at = (s.at + 1) % Keep
}

// insert takes x into the sorted run times, in place of the oldest if there are Keep.
func (s *sample) insert(x float64) {
	i := int(s.n)
	if i == Keep {
		old := s.last[s.at]
		for i = 0; s.sorted[i] != old; i++ {
		}
		for ; i+1 < Keep && s.sorted[i+1] < x; i++ {
			s.sorted[i] = s.sorted[i+1]
		}
	}
	for ; i > 0 && s.sorted[i-1] > x; i-- {
		s.sorted[i] = s.sorted[i-1]
	}
	s.sorted[i] = x
}

// sort brings the sorted run times up to date.
func (s *sample) sort() {
	s.asked = true
	if !s.stale {
		return
	}
	s.stale = false
	for k, x := range s.last[:s.n] {
		i := k
		for ; i > 0 && s.sorted[i-1] > x; i-- {
			s.sorted[i] = s.sorted[i-1]
		}
		s.sorted[i] = x
	}
}

// quantile returns the quantile of level p: of n+1 equally likely gaps between n run times, the next one falls into a
// share p below it. Neighbours are interpolated linearly. sort comes before it.
func (s *sample) quantile(p float64) float64 {
	x := min(max(p*float64(s.n+1)-1, 0), float64(s.n-1))
	i := int(x)
	if i+1 >= int(s.n) {
		return s.sorted[i]
	}
	return s.sorted[i] + (s.sorted[i+1]-s.sorted[i])*(x-float64(i))
}

// start notes that a job has started, and returns its place among the last.
func (r *recent) start(number int, at time.Duration, unit float64) (place int8) {
	place = r.next
	if r.begun[place].runs {
		r.live--
	}
	r.begun[place] = begun{int32(number), true, at, unit}
	r.live++
	r.next = (place + 1) % Recent
	return place
}

// stop notes that the job that started at place no longer runs. By then another may have taken its place.
func (r *recent) stop(number int, place int8) {
	if b := &r.begun[place]; b.runs && b.number == int32(number) {
		b.runs = false
		r.live--
	}
}

// over appends to dst for how long those jobs have run that still run and have run for more than x, in ascending order.
func (r *recent) over(now time.Duration, x float64, dst []float64) []float64 {
	for i := range r.begun {
		if b := &r.begun[i]; b.runs {
			if ran := float64(now-b.at) / b.unit; ran > x {
				dst = append(dst, ran)
			}
		}
	}
	slices.Sort(dst)
	return dst
}

// survive sets q to the quantiles of the Kaplan–Meier estimate for s's run times and the times in longer, which ascend
// and are censored. Where the estimate ends above a quantile, the quantile is the longest time known, and half as much
// again for each such quantile.
func (s *sample) survive(longer []float64, q *[predict.Quantiles]float64) {
	n, at, c, left := int(s.n), 0, 0, 1.0
	risk := n + len(longer)
	level := 0
	for ; at < n; at++ {
		for c < len(longer) && longer[c] < s.sorted[at] {
			c++
			risk--
		}
		left *= 1 - 1/float64(risk)
		risk--
		for level < predict.Quantiles && left <= 1-predict.Levels[level]+1e-12 {
			q[level] = s.sorted[at]
			level++
		}
	}
	longest := max(s.sorted[n-1], longer[len(longer)-1])
	for ; level < predict.Quantiles; level++ {
		longest *= 1.5
		q[level] = longest
	}
}

// valid reports whether s, which was read, is one that the methods above leave behind.
func (s *sample) valid() bool {
	if s.n < 0 || s.n > Keep || s.at < 0 || s.at >= Keep || s.n < Keep && s.at != 0 {
		return false
	}
	for _, x := range s.last[:s.n] {
		if !(x >= 0) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
