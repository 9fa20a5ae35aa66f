package tpch

// Rule says how the run times of a stage's tasks, measured at several numbers of executors, are combined into one.
type Rule uint8

// The rules.
const (
	// Decima is the mean of all run times after Decima's cleaning: fresh durations are removed from the first wave, and
	// a first wave that is then empty is replaced by that of the next smaller number of executors. It is the estimate
	// that Decima's agent sees.
	Decima Rule = iota
	// All is the mean of all run times as written, so fresh ones count twice.
	All
	// Rest is the mean of the rest wave at the largest number of executors that has one, else of the first wave at the
	// largest number that has one: warm executors under the heaviest load.
	Rest
)

// duration returns the work of one task of st in milliseconds.
func (r Rule) duration(st *stage, executors []int) float64 {
	switch r {
	case Rest:
		for i := len(executors) - 1; i >= 0; i-- {
			if l := st.rest[executors[i]]; len(l) > 0 {
				return mean(l)
			}
		}
		for i := len(executors) - 1; i >= 0; i-- {
			if l := st.first[executors[i]]; len(l) > 0 {
				return mean(l)
			}
		}
	case Decima:
		return mean(gather(executors, clean(st, executors), st.rest, st.fresh))
	}
	return mean(gather(executors, st.first, st.rest, st.fresh))
}

// clean returns the first wave without fresh durations; an empty one is replaced as Decima says.
func clean(st *stage, executors []int) waves {
	out := waves{}
	var last []float64
	for _, e := range executors {
		fresh := map[float64]int{}
		for _, d := range st.fresh[e] {
			fresh[d]++
		}
		var kept []float64
		for _, d := range st.first[e] {
			if fresh[d] > 0 {
				fresh[d]--
			} else {
				kept = append(kept, d)
			}
		}
		if len(kept) == 0 {
			kept = last
		}
		out[e], last = kept, kept
	}
	return out
}

// gather returns the run times of all of ws, each in order of executors.
func gather(executors []int, ws ...waves) []float64 {
	var all []float64
	for _, w := range ws {
		for _, e := range executors {
			all = append(all, w[e]...)
		}
	}
	return all
}

// mean returns the mean, or 0 of no numbers.
func mean(l []float64) float64 {
	if len(l) == 0 {
		return 0
	}
	sum := 0.0
	for _, d := range l {
		sum += d
	}
	return sum / float64(len(l))
}

// waves are run times in milliseconds by number of executors.
type waves map[int][]float64
