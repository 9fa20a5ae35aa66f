package hostlist

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// maxTasks bounds the ranges that a step takes apart.
const maxTasks = 1 << 17

// Tasks are the numbers of an array's tasks, as ranges in order: the first and the last of each.
type Tasks [][2]int64

// ParseTasks reads 1-10:2,15%4: the tasks that one record stands for, and how many run at a time; limit 0 = all.
func ParseTasks(s string) (all Tasks, limit int64, err error) {
	fault := fmt.Errorf("got %.80q, want tasks as 1-10,15%%4", s)
	s, at, limited := strings.Cut(s, "%")
	if limited {
		if limit, err = strconv.ParseInt(at, 10, 32); err != nil {
			return nil, 0, fault
		}
	}
	for r := range strings.SplitSeq(s, ",") {
		r, step, stepped := strings.Cut(r, ":")
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseInt(from, 10, 32)
		b, errB := strconv.ParseInt(to, 10, 32)
		by := int64(1)
		if stepped {
			by, err = strconv.ParseInt(step, 10, 32)
		}
		if errA != nil || errB != nil || err != nil || a < 0 || b < a || by < 1 {
			return nil, 0, fault
		}
		if by == 1 {
			all = append(all, [2]int64{a, b})
			continue
		}
		if (b-a)/by > maxTasks {
			return nil, 0, fault
		}
		for ; a <= b; a += by {
			all = append(all, [2]int64{a, a})
		}
	}
	return all, limit, nil
}

// Len returns the number of tasks.
func (t Tasks) Len() (n int64) {
	for _, r := range t {
		n += r[1] - r[0] + 1
	}
	return n
}

// Has reports whether task is among t.
func (t Tasks) Has(task int64) bool {
	return slices.ContainsFunc(t, func(r [2]int64) bool { return r[0] <= task && task <= r[1] })
}

// All yields the tasks one by one. There may be 2^31 of a range: look at Len first.
func (t Tasks) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, r := range t {
			for i := r[0]; i <= r[1]; i++ {
				if !yield(i) {
					return
				}
			}
		}
	}
}
