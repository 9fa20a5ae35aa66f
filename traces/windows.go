package traces

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"clustergym/internal/rng"
)

// Part is a share of a workload by order of submit.
type Part uint8

// The parts, in order of time: the first 70 % of the jobs train, the next 10 % choose between checkpoints, the
// last 20 % judge.
const (
	Training Part = iota
	Validation
	Test
)

var partNames = [...]string{"training", "validation", "test"}

// String is the part's name.
func (p Part) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return fmt.Sprintf("Part(%d)", uint8(p))
}

// ParsePart reads a part's name.
func ParsePart(s string) (Part, error) {
	for i, n := range partNames {
		if n == s {
			return Part(i), nil
		}
	}
	return 0, fmt.Errorf("part of a workload: got %q, want training, validation or test", s)
}

// bounds are the first job of part p among n and the one after its last. Cutting by count instead of by time on
// the clock keeps a quiet end of a trace from leaving the test with few jobs: of the Philly trace's jobs of up to
// 8 GPUs the last fifth of the time holds 11 %.
func (p Part) bounds(n int) (lo, hi int) {
	cut := [...]int{0, n * 7 / 10, n * 8 / 10, n}
	return cut[p], cut[p+1]
}

// Windows cuts a workload into episodes: runs of consecutive jobs, each with the jobs before it to fill the
// machine. No job belongs to two parts, not even among the jobs before a window. It keeps the jobs it was given
// and changes nothing. Safe for concurrent use.
type Windows struct {
	jobs         []Job
	length, warm int
}

// NewWindows cuts jobs, which are in order of submit and hold only jobs that are wanted (see Filter), into
// windows of length jobs with warm jobs before each. It is an error when the jobs are out of order or too few
// for one window of the training part. The other parts may be too short: Count is 0 then, and At says so.
func NewWindows(jobs []Job, length, warm int) (*Windows, error) {
	if length < 1 || warm < 0 {
		return nil, fmt.Errorf("windows of %d jobs with %d before each: want at least 1 job, and 0 or more before it", length, warm)
	}
	for i := 1; i < len(jobs); i++ {
		if jobs[i].Submit < jobs[i-1].Submit {
			return nil, fmt.Errorf("windows: job %d (%q) is submitted at %v, before the one ahead of it at %v: jobs must be in order of submit",
				i, jobs[i].ID, jobs[i].Submit, jobs[i-1].Submit)
		}
	}
	w := &Windows{jobs: jobs, length: length, warm: warm}
	if w.Count(Training) == 0 {
		return nil, w.tooFew(Training)
	}
	return w, nil
}

// tooFew says that part p holds no window, and how many jobs would give every part one.
func (w *Windows) tooFew(p Part) error {
	lo, hi := p.bounds(len(w.jobs))
	share := [...]int{7, 1, 2}[p]
	need := max(1, (w.length+w.warm)*10-20) // a little too few for the smallest part, which has a tenth
	for !w.enough(need) {
		need++
	}
	return fmt.Errorf("too few jobs: the %s part (%d0 %%) has %d of the %d; one window of %d with %d before it in every part needs %d jobs in all; shorter windows need fewer",
		p, share, hi-lo, len(w.jobs), w.length, w.warm, need)
}

// enough says whether n jobs give every part a window.
func (w *Windows) enough(n int) bool {
	for p := range Part(len(partNames)) {
		if lo, hi := p.bounds(n); hi-lo < w.length+w.warm {
			return false
		}
	}
	return true
}

// Count is how many disjoint windows part p has; its first warm jobs only fill the machine.
func (w *Windows) Count(p Part) int {
	if int(p) >= len(partNames) {
		return 0
	}
	lo, hi := p.bounds(len(w.jobs))
	return max(0, hi-lo-w.warm) / w.length
}

// Jobs are the jobs of part p, in order. The caller must not change them.
func (w *Windows) Jobs(p Part) []Job {
	if int(p) >= len(partNames) {
		return nil
	}
	lo, hi := p.bounds(len(w.jobs))
	return w.jobs[lo:hi:hi]
}

// Length is the number of jobs in a window, Warm the number before it.
func (w *Windows) Length() int { return w.length }

// Warm is the number of jobs before a window that belong to its part and only fill the machine.
func (w *Windows) Warm() int { return w.warm }

// At gives one window of part p: window 0, 1, … are disjoint and in order, below Count(p), and do not depend on
// seed; window -1 starts at a job drawn uniformly, from seed alone, among all starts that leave room for the
// jobs before it and in it. counted are its jobs, warm those right before them, first is the position of
// counted[0] in the workload. The slices are parts of the workload, which the caller must not change; nothing is
// copied or allocated.
func (w *Windows) At(p Part, seed uint64, window int) (warm, counted []Job, first int, err error) {
	n := w.Count(p)
	switch {
	case int(p) >= len(partNames):
		return nil, nil, 0, errors.New("windows: want part training, validation or test")
	case n == 0:
		return nil, nil, 0, w.tooFew(p)
	case window < -1 || window >= n:
		return nil, nil, 0, fmt.Errorf("window %d of the %s part: want 0 to %d, or -1 for one drawn from the seed", window, p, n-1)
	}
	lo, hi := p.bounds(len(w.jobs))
	first = lo + w.warm + window*w.length
	if window < 0 {
		var pcg rand.PCG
		rng.Seed(&pcg, seed, "traces/window")
		first = lo + w.warm + int(below(&pcg, uint64(hi-lo-w.warm-w.length+1)))
	}
	end := first + w.length
	return w.jobs[first-w.warm : first : first], w.jobs[first:end:end], first, nil
}

// below draws uniformly from [0, n) without the allocation of a rand.Rand: numbers at the top of the range that
// would favour small results are drawn again.
func below(pcg *rand.PCG, n uint64) uint64 {
	for limit := -n % n; ; { // 2^64 mod n
		if x := pcg.Uint64(); x >= limit {
			return x % n
		}
	}
}

// Source is part p as a Source: its windows without the jobs before them.
func (w *Windows) Source(p Part) *PartSource { return &PartSource{w, p} }

// PartSource is one part of a workload as a Source. Safe for concurrent use.
type PartSource struct {
	w *Windows
	p Part
}

var _ Source = (*PartSource)(nil)

// Windows implements Source.
func (s *PartSource) Windows() int { return s.w.Count(s.p) }

// Open implements Source.
func (s *PartSource) Open(seed uint64, window int) (Stream, error) {
	_, counted, _, err := s.w.At(s.p, seed, window)
	if err != nil {
		return nil, err
	}
	return &Slice{Jobs: counted}, nil
}
