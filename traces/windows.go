package traces

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"clustergym/internal/rng"
)

// Part is one of the consecutive parts of a workload in order of submit.
type Part uint8

// The parts, in order of time: the first 70 % of the jobs are for training, the next 10 % for choosing between
// checkpoints, the last 20 % for the final evaluation.
const (
	Training Part = iota
	Validation
	Test
)

var partNames = [...]string{"training", "validation", "test"}

// String returns the part's name.
func (p Part) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return fmt.Sprintf("Part(%d)", uint8(p))
}

// Bounds returns the index of the first of n jobs that belongs to part p, and the index after its last. Parts are cut
// by number of jobs, not by time, so that a quiet end of a trace does not leave the test part with few jobs: the last
// fifth of the Philly trace's time has only 11 % of its jobs of up to 8 GPUs.
func (p Part) Bounds(n int) (lo, hi int) {
	cut := [...]int{0, n * 7 / 10, n * 8 / 10, n}
	return cut[p], cut[p+1]
}

// Windows cuts a workload into episodes. Each episode is a run of consecutive jobs, preceded by warm-up jobs that fill
// the machine. No job belongs to two parts, not even a warm-up job. Windows keeps the jobs it was given and never
// changes them. Safe for concurrent use.
type Windows struct {
	jobs         []Job
	length, warm int
	next         int // jobs after a window
}

// NewWindows cuts jobs into windows of length jobs, each preceded by warm jobs. jobs must be in order of submit and
// hold only the jobs wanted (see Filter). It is an error if they are out of order or too few for one window of the
// training part. The other parts may be too short: then Count returns 0 and At an error.
func NewWindows(jobs []Job, length, warm int) (*Windows, error) {
	if length < 1 || warm < 0 {
		return nil, fmt.Errorf("windows of %d jobs with %d before each: want at least 1 job, and 0 or more before it", length,
			warm)
	}
	for i := 1; i < len(jobs); i++ {
		if jobs[i].Submit < jobs[i-1].Submit {
			return nil,
				fmt.Errorf(
					"windows: job %d (%q) is submitted at %v, before the one ahead of it at %v: jobs must be in order of submit",
					i, jobs[i].ID, jobs[i].Submit, jobs[i-1].Submit)
		}
	}
	w := &Windows{jobs: jobs, length: length, warm: warm}
	if w.Count(Training) == 0 {
		return nil, w.tooFew(Training)
	}
	return w, nil
}

// Followed returns windows of the same jobs, each followed by one job that does not count: it is the first job of the
// next window, and says when the time of this one ends.
func (w *Windows) Followed() (*Windows, error) {
	f := &Windows{jobs: w.jobs, length: w.length, warm: w.warm, next: 1}
	if f.Count(Training) == 0 {
		return nil, f.tooFew(Training)
	}
	return f, nil
}

// tooFew is the *TooFewError for a part p without a window; it names the number of jobs that would give every part one.
func (w *Windows) tooFew(p Part) error {
	lo, hi := p.Bounds(len(w.jobs))
	need := max(1, (w.length+w.warm+w.next)*10-20) // slightly too few for the smallest part, which has a tenth
	for !w.enough(need) {
		need++
	}
	return &TooFewError{Part: p, Jobs: len(w.jobs), Have: hi - lo, Cut: Cut{w.length, w.warm, w.next}, Need: need}
}

// enough reports whether n jobs give every part a window.
func (w *Windows) enough(n int) bool {
	for p := range Part(len(partNames)) {
		if lo, hi := p.Bounds(n); hi-lo < w.length+w.warm+w.next {
			return false
		}
	}
	return true
}

// Count returns how many disjoint windows part p has. The part's first warm jobs belong to no window; they only fill
// the machine.
func (w *Windows) Count(p Part) int {
	if int(p) >= len(partNames) {
		return 0
	}
	lo, hi := p.Bounds(len(w.jobs))
	return max(0, hi-lo-w.warm-w.next) / w.length
}

// Jobs returns the jobs of part p, in order. The caller must not change them.
func (w *Windows) Jobs(p Part) []Job {
	if int(p) >= len(partNames) {
		return nil
	}
	lo, hi := p.Bounds(len(w.jobs))
	return w.jobs[lo:hi:hi]
}

// All returns the jobs of all parts, in order. The caller must not change them.
func (w *Windows) All() []Job { return w.jobs[:len(w.jobs):len(w.jobs)] }

// Length returns the number of jobs in a window, without the warm-up jobs before it.
func (w *Windows) Length() int { return w.length }

// Warm returns the number of warm-up jobs before a window, which belong to its part and only fill the machine.
func (w *Windows) Warm() int { return w.warm }

// Window is a run of consecutive jobs of a workload that count, with those around it.
type Window struct {
	// Jobs are the jobs before the counted ones, the counted ones and those after them, in order of submit. They are part
	// of the workload, which the caller must not change.
	Jobs          []Job
	Warm, Counted int // how many are before the counted ones, and how many count
	First         int // position of the first counted job in the workload
}

// Before returns the jobs before those that count.
func (w *Window) Before() []Job { return w.Jobs[:w.Warm:w.Warm] }

// Counting returns the jobs that count.
func (w *Window) Counting() []Job { return w.Jobs[w.Warm : w.Warm+w.Counted : w.Warm+w.Counted] }

// At returns one window of part p. Windows 0 to Count(p)-1 are disjoint, in order and independent of seed. Window -1
// starts at a job drawn uniformly, from seed alone, among all starts that leave room for the jobs around it and in it.
// At copies and allocates nothing.
func (w *Windows) At(p Part, seed uint64, window int) (Window, error) {
	n := w.Count(p)
	switch {
	case int(p) >= len(partNames):
		return Window{}, errors.New("windows: want part training, validation or test")
	case n == 0:
		return Window{}, w.tooFew(p)
	case window < -1 || window >= n:
		return Window{}, fmt.Errorf("window %d of the %s part: want 0 to %d, or -1 for one drawn from the seed", window, p,
			n-1)
	}
	lo, hi := p.Bounds(len(w.jobs))
	first := lo + w.warm + window*w.length
	if window < 0 {
		var pcg rand.PCG
		rng.Seed(&pcg, seed, "traces/window")
		first = lo + w.warm + int(below(&pcg, uint64(hi-lo-w.warm-w.length-w.next+1)))
	}
	end := first + w.length + w.next
	return Window{Jobs: w.jobs[first-w.warm : end : end], Warm: w.warm, Counted: w.length, First: first}, nil
}

// below draws uniformly from [0, n) without allocating a rand.Rand. It rejects the lowest 2^64 mod n numbers, which
// would favour small results, and draws again.
func below(pcg *rand.PCG, n uint64) uint64 {
	for limit := -n % n; ; { // 2^64 mod n
		if x := pcg.Uint64(); x >= limit {
			return x % n
		}
	}
}
