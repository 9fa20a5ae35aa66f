package queuerank

import (
	"slices"

	"clustergym/simulator/sim"
)

// queue keeps the waiting jobs in three sorted.
type queue struct {
	sorted
	saved sorted
	shown []bool // by index in bySubmit
}

type sorted struct{ bySubmit, byTime, bySize []waiting }

var _ Queue = (*queue)(nil)

// waiting is one job with its sort key; ties are broken by pos.
type waiting struct {
	key int64
	pos int
	job sim.Job
}

func (a waiting) compare(b waiting) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return a.pos - b.pos
}

func (o *sorted) copyFrom(p *sorted) {
	o.bySubmit, o.byTime, o.bySize = append(o.bySubmit[:0],
		p.bySubmit...), append(o.byTime[:0], p.byTime...), append(o.bySize[:0], p.bySize...)
}

// Save implements Queue.
func (q *queue) Save() { q.saved.copyFrom(&q.sorted) }

// Restore implements Queue.
func (q *queue) Restore() { q.sorted.copyFrom(&q.saved) }

// Reset implements Queue.
func (q *queue) Reset() { q.sorted.copyFrom(&sorted{}) }

// Len implements Queue.
func (q *queue) Len() int { return len(q.bySubmit) }

// InOrder implements Queue: in order of submit.
func (q *queue) InOrder(dst []sim.Job, _ sim.Job) []sim.Job {
	for i := range q.bySubmit {
		dst = append(dst, q.bySubmit[i].job)
	}
	return dst
}

func insert(list []waiting, w waiting) []waiting {
	i, _ := slices.BinarySearchFunc(list, w, waiting.compare)
	return slices.Insert(list, i, w)
}

func remove(list []waiting, w waiting) []waiting {
	i, ok := slices.BinarySearchFunc(list, w, waiting.compare)
	if !ok {
		panic("queuerank: a job that waits is not in the queue")
	}
	return slices.Delete(list, i, i+1)
}

// Add implements Queue.
func (q *queue) Add(w Waiting) {
	q.bySubmit = insert(q.bySubmit, waiting{int64(w.Pos), w.Pos, w.Job}) // positions are in order of submit
	q.byTime = insert(q.byTime, waiting{w.E, w.Pos, w.Job})
	q.bySize = insert(q.bySize, waiting{w.Milli, w.Pos, w.Job})
}

// Drop implements Queue.
func (q *queue) Drop(w Waiting) {
	q.bySubmit = remove(q.bySubmit, waiting{int64(w.Pos), w.Pos, w.Job})
	q.byTime = remove(q.byTime, waiting{w.E, w.Pos, w.Job})
	q.bySize = remove(q.bySize, waiting{w.Milli, w.Pos, w.Job})
}

// Fill implements Queue: in order of submit. If more than k wait, they are the oldest and then, alternately,
// the shortest and the smallest not chosen yet.
func (q *queue) Fill(dst []sim.Job, k int) []sim.Job {
	if len(q.bySubmit) <= k {
		return q.InOrder(dst, -1)
	}
	q.shown = slices.Grow(q.shown[:0], len(q.bySubmit))[:len(q.bySubmit)]
	clear(q.shown)
	q.shown[0] = true
	lists := [2][]waiting{q.byTime, q.bySize}
	var next [2]int
	for have, turn := 1, 0; have < k; have, turn = have+1, 1-turn {
		for {
			w := lists[turn][next[turn]]
			next[turn]++
			if i := q.place(w.pos); !q.shown[i] {
				q.shown[i] = true
				break
			}
		}
	}
	for i, w := range q.bySubmit {
		if q.shown[i] {
			dst = append(dst, w.job)
		}
	}
	return dst
}

// place returns the index in bySubmit of the job at position pos.
func (q *queue) place(pos int) int {
	i, _ := slices.BinarySearchFunc(q.bySubmit, int64(pos), func(w waiting, key int64) int {
		switch {
		case w.key < key:
			return -1
		case w.key > key:
			return 1
		}
		return 0
	})
	return i
}
