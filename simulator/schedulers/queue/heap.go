package queue

import "clustergym/simulator/sim"

// Entry is one job in line.
type Entry struct {
	Key float64
	Pos int
	Job sim.Job
}

// Before reports whether a ranks before b.
func (a *Entry) Before(b *Entry) bool {
	return a.Key < b.Key || a.Key == b.Key && a.Pos < b.Pos
}

// Compare returns the order of a and b for slices.SortFunc. No key is NaN, which cmp.Compare would look for.
func (a *Entry) Compare(b *Entry) int {
	switch {
	case a.Key < b.Key:
		return -1
	case a.Key > b.Key:
		return 1
	}
	return a.Pos - b.Pos
}

// Heap is a binary heap of entries. It is typed because container/heap would box every entry.
type Heap []Entry

// Push adds e.
func (l *Heap) Push(e Entry) {
	h := append(*l, e)
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !e.Before(&h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = e
	*l = h
}

// Pop removes and returns the first in rank.
func (l *Heap) Pop() Entry {
	h := *l
	top, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*l = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1].Before(&h[k]) {
			k++
		}
		if !h[k].Before(&e) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = e
	return top
}

// Stale reports whether e no longer waits, or its number is now that of another job.
func Stale(v *sim.View, e *Entry) bool {
	return v.State(e.Job) != sim.Waiting || v.Pos(e.Job) != e.Pos
}
