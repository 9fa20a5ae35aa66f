package rlscheduler

import (
	"cmp"
	"math"
	"slices"
)

// StateTraits is how many traits of the state a StateKey weighs.
const StateTraits = 5

// StateKey ranks a waiting job by what never changes and by the machine's state. With the delay of a job, the time in
// seconds until it fits by the requests of what runs (0 if it fits now), the traits of the state are: 1 if the job does
// not fit; ln(1 + delay/60); ln(1 + delay·Σ 1/max(request, 10)) over the waiting jobs, as far as those become slower by
// the delay; the logarithm of (wait + request)/request, with requests of at least 10; and the logarithm of the request
// if the job does not fit.
type StateKey struct {
	Job   Linear
	State [StateTraits]float64
}

// Stated is a policy that chooses the waiting job of the least StateKey; ties go to the job that arrived first. Not
// safe for concurrent use.
type Stated struct {
	key  *StateKey
	keys []float64 // of what never changes, by place in the list of jobs
	logs []float64 // of requests, at least 10
	ends []ending  // of what runs, in order, with the processors that are free from then on

	costs []float64 // by processors: the two traits of the delay, weighed, at decision of
	of    []int
	looks int // decisions
}

// NewStated returns the policy of a key.
func NewStated(key *StateKey) *Stated { return &Stated{key: key} }

// Reset computes the parts of the keys that do not change. It must be called after the machine's Reset.
func (s *Stated) Reset(m *Machine) {
	s.keys, s.logs = s.keys[:0], s.logs[:0]
	if n := m.Procs() + 1; len(s.of) < n {
		s.costs, s.of, s.looks = make([]float64, n), make([]int, n), 0
	}
	for i := range m.jobs {
		j := &m.jobs[i]
		s.keys, s.logs = append(s.keys, s.key.Job.Key(j)), append(s.logs, math.Log(float64(max(j.Request, 10))))
	}
}

// Choose implements Policy.
func (s *Stated) Choose(m *Machine) int {
	if len(m.waiting) == 1 {
		return 0
	}
	pace, blocked := 0.0, false // of the waiting jobs' slowdowns
	for _, at := range m.waiting {
		j := &m.jobs[at]
		pace += 1 / float64(max(j.Request, 10))
		blocked = blocked || j.Procs > m.free
	}
	if blocked {
		s.frees(m)
		s.looks++
	}
	best, first, least := -1, int32(0), 0.0
	for i, at := range m.waiting {
		j, w := &m.jobs[at], &s.key.State
		x := s.keys[at]
		if w[3] != 0 {
			x += w[3] * (math.Log(float64(m.now-j.Submit+max(j.Request, 10))) - s.logs[at])
		}
		if j.Procs > m.free {
			if s.of[j.Procs] != s.looks { // jobs of as many processors have the same delay
				d := s.delay(m, j.Procs)
				s.of[j.Procs], s.costs[j.Procs] = s.looks, w[0]+w[1]*math.Log1p(d/60)+w[2]*math.Log1p(d*pace)
			}
			x += s.costs[j.Procs] + w[4]*s.logs[at]
		}
		if best < 0 || x < least || x == least && at < first {
			best, first, least = i, at, x
		}
	}
	return best
}

// frees lists when how many processors are free, by the requests of what runs.
func (s *Stated) frees(m *Machine) {
	s.ends = append(s.ends[:0], m.running...)
	for i := range s.ends {
		s.ends[i].at = max(s.ends[i].asked, m.now) // it can outlive its request
	}
	slices.SortFunc(s.ends, func(a, b ending) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	free := m.free
	for i := range s.ends {
		free += s.ends[i].procs
		s.ends[i].procs = free
	}
}

// delay returns the seconds until need processors are free.
func (s *Stated) delay(m *Machine, need int32) float64 {
	lo, hi := 0, len(s.ends)-1
	for lo < hi {
		mid := (lo + hi) / 2
		if s.ends[mid].procs >= need {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return float64(s.ends[lo].at - m.now)
}

// PlayStated plays jobs on m by a key of the state, and returns the mean bounded slowdown.
func PlayStated(m *Machine, s *Stated, jobs []Job) float64 {
	m.Reset(jobs)
	s.Reset(m)
	return Play(m, s)
}
