package history

import (
	"math"

	"clustergym/simulator/predict"
)

const (
	// Keep is the number of run times in a key's sample.
	Keep = 20
	// Recent is the number of started jobs of a key that are looked at as censored observations.
	Recent = 10
	// Enough is the size from which on a sample gives quantiles other than its median.
	Enough = 8
)

// sample is what is known of the jobs of one key. All but the run times fits a line of a processor's cache.
type sample struct {
	head
	last   [Keep]float64 // a ring of the last run times
	sorted [Keep]float64 // the same in ascending order
}

type head struct {
	hash  uint64
	run   uint32 // in which it was last used; in others it has nothing to say
	next  int32  // the sample of the next coarser key of the last job, if that has the right hash
	n, at int8   // how many run times, and the place of the oldest if there are Keep
	stale bool   // sorted lacks a run time
	asked bool   // sorted was looked at since the last run time

	turn  int8          // place of the next start
	live  int8          // starts of jobs that still run
	begun [Recent]int32 // a ring of the last starts, of a finest key: the number of the job + 1, 0 if it runs no more
}

// add takes in a run time, in place of the oldest if there are Keep. Of keys that nobody looks at it leaves the sorting
// for later: most jobs are forecast from one key of their five.
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
func (s *sample) start(number int) (place int8) {
	place = s.turn
	if s.begun[place] == 0 {
		s.live++
	}
	s.begun[place] = int32(number) + 1
	s.turn = (place + 1) % Recent
	return place
}

// stop notes that the job that started at place no longer runs. By then another may have taken its place.
func (s *sample) stop(number int, place int8) {
	if b := &s.begun[place]; *b == int32(number)+1 {
		*b = 0
		s.live--
	}
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
	live := int8(0)
	for _, b := range s.begun {
		if b < 0 {
			return false
		}
		if b > 0 {
			live++
		}
	}
	return s.live == live && s.turn >= 0 && s.turn < Recent
}
