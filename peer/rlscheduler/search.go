package rlscheduler

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/fault"
	"clustergym/internal/rng"
)

// SearchConfig says how far and how often a search looks ahead.
type SearchConfig struct {
	Candidates int     `yaml:"candidates"` // of each order: the first in the base's order, and the first of those that fit
	Futures    int     `yaml:"futures"`    // that the last candidates are compared in
	Horizon    int     `yaml:"horizon"`    // jobs that arrive in a future
	Confidence float64 `yaml:"confidence"` // standard errors by which a gain must exceed 0
}

// Validate reports every value that is out of range.
func (c *SearchConfig) Validate() error {
	var l fault.List
	l.Add(c.Candidates >= 1 && c.Candidates <= 1000, "candidates", c.Candidates, "1 to 1000")
	l.Add(c.Futures >= 4 && c.Futures <= 100000, "futures", c.Futures, "4 to 100000")
	l.Add(c.Horizon >= 1 && c.Horizon <= 100000, "horizon", c.Horizon, "1 to 100000 jobs")
	l.Add(c.Confidence >= 0 && c.Confidence <= 100, "confidence", c.Confidence, "0 to 100 standard errors")
	return l.Err()
}

// Tally counts what a search did.
type Tally struct {
	Decisions int // with more than one job to choose from
	Deviated  int // in which the base would have chosen another job
	Rollouts  int
}

// Search is a policy that looks ahead. At each decision it tries some of the waiting jobs: the first in the base's
// order, the first in that order of those that fit now, the shortest, the least area, the widest and the largest
// slowdown so far. In each of several futures every candidate is committed to on a copy of the machine, and the base
// plays on until all jobs have started. The cost is the sum of their bounded slowdowns.
//
// All candidates play the same futures, so costs are compared in pairs (common random numbers). The candidates are
// halved twice (sequential halving: Karnin, Koren and Somekh, ICML 2013); the base's choice stays. At the end the best
// of the others replaces it only if its mean gain exceeds Confidence standard errors.
//
// It knows what any policy may know: what waits, what runs, and the requests, which stand for run times. A future is a
// stretch of recorded jobs that begins at the same time of day, on a day drawn from the pool. It always has Horizon
// jobs, so the end of the real jobs is not known. Draws follow from the seed, the clock and the number of started jobs.
// Not safe for concurrent use.
type Search struct {
	cfg  SearchConfig
	base Key
	pool []stretch
	days int64 // of all stretches
	seed uint64

	pcg        rand.PCG
	rand       *rand.Rand
	root, copy Machine
	jobs       []Job // those that wait, then a future's
	keyed      Keyed
	waits      int
	list       []candidate
	order      []int
	taken      []bool
	tally      Tally
}

// stretch is a run of consecutive jobs, and how many days after its first submit a future can begin.
type stretch struct {
	jobs []Job
	days int64
}

// candidate is a waiting job that is tried, with its costs by future.
type candidate struct {
	place int
	costs []float64
}

const day = 24 * 3600

// NewSearch returns a search that improves the base. Futures are drawn from pool, runs of consecutive jobs in order of
// submit. It is an error if none of them has a day and a horizon of jobs after it.
func NewSearch(base Key, pool [][]Job, cfg SearchConfig, seed uint64) (*Search, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Search{cfg: cfg, base: base, seed: seed, keyed: Keyed{key: base}}
	for _, jobs := range pool {
		if len(jobs) <= cfg.Horizon {
			continue
		}
		// A future begins up to a day after the begin of its day, and needs a horizon of jobs from there.
		if d := (jobs[len(jobs)-1-cfg.Horizon].Submit - jobs[0].Submit) / day; d >= 1 {
			s.pool = append(s.pool, stretch{jobs, d})
			s.days += d
		}
	}
	if s.days == 0 {
		return nil, fmt.Errorf("rlscheduler: no run of jobs to draw futures from has %d jobs after a day", cfg.Horizon)
	}
	s.rand = rand.New(&s.pcg)
	return s, nil
}

// Tally returns what the search did so far.
func (s *Search) Tally() Tally { return s.tally }

// Choose implements Policy.
func (s *Search) Choose(m *Machine) int {
	if len(m.waiting) == 1 {
		return 0
	}
	s.tally.Decisions++
	m.bySubmit()
	s.begin(m)
	s.candidates(m)
	if len(s.list) == 1 {
		return s.list[0].place
	}
	s.pcg.Seed(rng.At(s.seed, rng.Hash("rlscheduler/search"), uint64(m.now), uint64(m.started)), 0)
	done := 0
	for _, share := range [3]int{4, 2, 1} { // of the futures, by the end of a round
		for ; done < s.cfg.Futures/share; done++ {
			s.future(m.now)
			for c := range s.list {
				s.list[c].costs = append(s.list[c].costs, s.rollout(s.list[c].place))
			}
		}
		if share > 1 {
			s.halve()
		}
	}
	best, most := 0, 0.0
	for c := 1; c < len(s.list); c++ {
		if gain, err := s.gain(c); gain > s.cfg.Confidence*err && gain > most {
			best, most = c, gain
		}
	}
	if best > 0 {
		s.tally.Deviated++
	}
	return s.list[best].place
}

// begin copies the machine as policies see it: with requests for run times, and the jobs that wait alone.
func (s *Search) begin(m *Machine) {
	s.root.CopyFrom(m)
	s.jobs = s.jobs[:0]
	for i, at := range s.root.waiting {
		j := m.jobs[at]
		j.Run = j.Request
		s.jobs = append(s.jobs, j)
		s.root.waiting[i] = int32(i)
	}
	s.waits = len(s.jobs)
	h := s.root.running
	for i := range h {
		h[i].at = max(h[i].asked, m.now) // it can outlive its request
		h[i].asked = h[i].at
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		sink(h, i)
	}
	s.root.next, s.root.sum, s.root.started = s.waits, 0, 0
	s.keyed.keys = s.keyed.keys[:0]
	for i := range s.jobs {
		s.keyed.keys = append(s.keyed.keys, s.base.Key(&s.jobs[i]))
	}
}

// candidates lists the jobs to try, the base's choice first. Places are those in the queue of m.
func (s *Search) candidates(m *Machine) {
	s.order = s.order[:0]
	for i := range s.waits {
		s.order = append(s.order, i)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.keyed.keys[a], s.keyed.keys[b]) })
	s.taken = slices.Grow(s.taken[:0], s.waits)[:s.waits]
	clear(s.taken)
	s.list = s.list[:0]
	for _, fits := range [2]bool{false, true} {
		n := 0
		for _, i := range s.order {
			if n == s.cfg.Candidates {
				break
			}
			if !fits || s.jobs[i].Procs <= m.free {
				s.add(i)
				n++
			}
		}
	}
	for _, key := range [4]func(j *Job, now int64) float64{
		func(j *Job, _ int64) float64 { return float64(j.Request) },
		func(j *Job, _ int64) float64 { return float64(j.Request) * float64(j.Procs) },
		func(j *Job, _ int64) float64 { return -float64(j.Procs) },
		func(j *Job, now int64) float64 { return -float64(now-j.Submit) / float64(j.Request) },
	} {
		best := 0
		for i := range s.waits {
			if key(&s.jobs[i], m.now) < key(&s.jobs[best], m.now) {
				best = i
			}
		}
		s.add(best)
	}
}

// add lists job i, once.
func (s *Search) add(i int) {
	if s.taken[i] {
		return
	}
	s.taken[i] = true
	if n := len(s.list); n < cap(s.list) {
		s.list = s.list[:n+1]
		s.list[n].place, s.list[n].costs = i, s.list[n].costs[:0]
		return
	}
	s.list = append(s.list, candidate{place: i, costs: make([]float64, 0, s.cfg.Futures)})
}

// future draws the jobs that arrive after now.
func (s *Search) future(now int64) {
	d := s.rand.Int64N(s.days)
	k := 0
	for d >= s.pool[k].days {
		d -= s.pool[k].days
		k++
	}
	jobs := s.pool[k].jobs
	from := jobs[0].Submit + d*day // the first job's day begins at any hour
	from += ((now-from)%day + day) % day
	i, _ := slices.BinarySearchFunc(jobs, from, func(j Job, at int64) int { return cmp.Compare(j.Submit, at+1) })
	i = min(i, len(jobs)-s.cfg.Horizon)
	s.jobs, s.keyed.keys = s.jobs[:s.waits], s.keyed.keys[:s.waits]
	for _, j := range jobs[i : i+s.cfg.Horizon] {
		j.Submit = max(now, j.Submit+now-from)
		s.jobs = append(s.jobs, j)
		s.keyed.keys = append(s.keyed.keys, s.base.Key(&s.jobs[len(s.jobs)-1]))
	}
	s.root.jobs = s.jobs
}

// rollout returns the cost of committing to a waiting job in the current future.
func (s *Search) rollout(place int) float64 {
	s.tally.Rollouts++
	s.copy.CopyFrom(&s.root)
	s.copy.Commit(place)
	for len(s.copy.waiting) > 0 {
		s.copy.Commit(s.keyed.Choose(&s.copy))
	}
	return s.copy.sum
}

// gain returns by how much candidate c costs less than the base's choice, and the standard error of that mean.
func (s *Search) gain(c int) (mean, err float64) {
	a, b := s.list[0].costs, s.list[c].costs
	n, sum, squares := float64(len(a)), 0.0, 0.0
	for f := range a {
		d := a[f] - b[f]
		sum += d
		squares += d * d
	}
	mean = sum / n
	return mean, math.Sqrt(max(0, squares/n-mean*mean) / (n - 1))
}

// halve keeps the base's choice and the better half of the others, in their order.
func (s *Search) halve() {
	keep := len(s.list) / 2
	for len(s.list)-1 > keep {
		worst, least := 0, math.Inf(1)
		for c := 1; c < len(s.list); c++ {
			if g, _ := s.gain(c); g < least {
				worst, least = c, g
			}
		}
		gone := s.list[worst]
		copy(s.list[worst:], s.list[worst+1:])
		s.list[len(s.list)-1] = gone // its memory is used again
		s.list = s.list[:len(s.list)-1]
	}
}
