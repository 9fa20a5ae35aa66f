package jobselect

import (
	"slices"

	"clustergym/env/sched"
	"clustergym/simulator/sim"
)

// slots shows K of the waiting jobs: the K/2 oldest, then up to K/2 others of least e·n that fit now, then the next
// oldest. If oldest is set, it shows the K oldest, as TopDRL's precursor does.
type slots struct {
	k      int
	oldest bool

	// The queue in order of position, as a doubly linked list by job; head and tail are −1 when it is empty.
	next, prev []sim.Job
	head, tail sim.Job
	byArea     []areaEntry
	shown      []bool // by job: is in a slot
}

type areaEntry struct {
	area float64
	pos  int
	job  sim.Job
}

func (a areaEntry) compare(b areaEntry) int {
	switch {
	case a.area < b.area:
		return -1
	case a.area > b.area:
		return 1
	}
	return a.pos - b.pos
}

var _ sched.Slots = (*slots)(nil)

func (q *slots) Reset() {
	q.head, q.tail = -1, -1
	q.byArea = q.byArea[:0]
	clear(q.shown)
}

func (q *slots) Add(s *sched.State, j sim.Job) {
	for int(j) >= len(q.next) {
		q.next, q.prev, q.shown = append(q.next, -1), append(q.prev, -1), append(q.shown, false)
	}
	// A job that was stopped goes back to its place, which is not the end.
	after, before := q.tail, sim.Job(-1)
	for after >= 0 && s.View.Pos(after) > s.View.Pos(j) {
		after, before = q.prev[after], after
	}
	q.next[j], q.prev[j], q.shown[j] = before, after, false
	if after >= 0 {
		q.next[after] = j
	} else {
		q.head = j
	}
	if before >= 0 {
		q.prev[before] = j
	} else {
		q.tail = j
	}
	if q.oldest {
		return
	}
	e := areaEntry{s.Known[j].Area, s.View.Pos(j), j}
	i, _ := slices.BinarySearchFunc(q.byArea, e, areaEntry.compare)
	q.byArea = slices.Insert(q.byArea, i, e)
}

func (q *slots) Remove(s *sched.State, j sim.Job) {
	if p := q.prev[j]; p >= 0 {
		q.next[p] = q.next[j]
	} else {
		q.head = q.next[j]
	}
	if n := q.next[j]; n >= 0 {
		q.prev[n] = q.prev[j]
	} else {
		q.tail = q.prev[j]
	}
	if q.oldest {
		return
	}
	e := areaEntry{s.Known[j].Area, s.View.Pos(j), j}
	if i, ok := slices.BinarySearchFunc(q.byArea, e, areaEntry.compare); ok {
		q.byArea = slices.Delete(q.byArea, i, i+1)
	}
}

func (q *slots) Fill(s *sched.State) {
	s.Slots, s.Fits = s.Slots[:0], s.Fits[:0]
	half := q.k / 2
	if q.oldest {
		half = q.k
	}
	at := q.head
	for ; at >= 0 && len(s.Slots) < half; at = q.next[at] {
		q.show(s, at, s.CanFit(at))
	}
	if at >= 0 && !q.oldest {
		// The queue is longer than half the slots. When no GPU is free, no job fits and the search is skipped.
		more := half + q.k/2
		if s.View.Cluster().FreeMilli() > 0 {
			for _, e := range q.byArea {
				if len(s.Slots) == more {
					break
				}
				if !q.shown[e.job] && s.CanFit(e.job) {
					q.show(s, e.job, true)
				}
			}
		}
		for ; at >= 0 && len(s.Slots) < q.k; at = q.next[at] {
			if !q.shown[at] {
				q.show(s, at, s.CanFit(at))
			}
		}
	}
	for _, j := range s.Slots {
		q.shown[j] = false
	}
}

func (q *slots) show(s *sched.State, j sim.Job, fits bool) {
	q.shown[j] = true
	s.Slots = append(s.Slots, j)
	s.Fits = append(s.Fits, fits)
}
