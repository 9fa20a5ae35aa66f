package dag

import "math"

// Timeline is the free time of one processor: the gaps between its tasks, and everything after the last. Call Reset
// before use.
type Timeline struct {
	gaps []gap // in order of time; the last one is infinite
	keep bool  // also keep gaps of no length, into which a task that takes no time still fits
}

type gap struct{ from, to float64 }

// Reset empties the timeline. instant must be true if some task takes no time (Problem.Instant).
func (t *Timeline) Reset(instant bool) {
	t.keep = instant
	t.gaps = append(t.gaps[:0], gap{0, math.Inf(1)})
}

// End returns when the last task ends.
func (t *Timeline) End() float64 { return t.gaps[len(t.gaps)-1].from }

// Gaps returns when the last gap between tasks ends and how long the longest one is, 0 if there is none. A task for
// which no gap ends late enough, or is long enough, goes after the last task.
func (t *Timeline) Gaps() (latest, longest float64) {
	last := len(t.gaps) - 1
	if last == 0 {
		return 0, 0
	}
	for _, g := range t.gaps[:last] {
		longest = max(longest, g.to-g.from)
	}
	return t.gaps[last-1].to, longest
}

// Earliest returns the first time, from ready on, from which the processor is free for exec seconds. It finds the
// first gap that ends late enough by binary search and scans forward from there.
func (t *Timeline) Earliest(ready, exec float64) float64 {
	at, _ := t.find(ready, exec)
	return at
}

// Append returns the first time, from ready on, after all tasks.
func (t *Timeline) Append(ready float64) float64 { return max(ready, t.End()) }

// find returns the time of Earliest and the index of its gap.
func (t *Timeline) find(ready, exec float64) (at float64, k int) {
	g := t.gaps
	low, high := 0, len(g)-1
	if ready >= g[high].from {
		return ready, high
	}
	for least := ready + exec; low < high; { // find the first gap that ends at or after least
		mid := int(uint(low+high) >> 1)
		if g[mid].to < least {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for ; ; low++ {
		at = max(ready, g[low].from)
		if at+exec <= g[low].to {
			return at, low
		}
	}
}

// Take books exec seconds at the time that Earliest (insert) or Append returns, and returns that time.
func (t *Timeline) Take(ready, exec float64, insert bool) (at float64) {
	k := len(t.gaps) - 1
	if insert {
		at, k = t.find(ready, exec)
	} else {
		at = t.Append(ready)
	}
	end := at + exec
	old := t.gaps[k]
	before, after := at > old.from || t.keep, end < old.to || t.keep
	switch {
	case before && after:
		t.gaps = append(t.gaps, gap{})
		copy(t.gaps[k+2:], t.gaps[k+1:])
		t.gaps[k], t.gaps[k+1] = gap{old.from, at}, gap{end, old.to}
	case before:
		t.gaps[k].to = at
	case after:
		t.gaps[k].from = end
	default:
		t.gaps = append(t.gaps[:k], t.gaps[k+1:]...)
	}
	return at
}
