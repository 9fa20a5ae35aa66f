package heuristic

import "clustergym/env/sim"

// entry is one job in line.
type entry struct {
	key float64
	pos int
	job sim.Job
}

func (a *entry) before(b *entry) bool {
	return a.key < b.key || a.key == b.key && a.pos < b.pos
}

// compare returns the order of a and b for slices.SortFunc. No key is NaN, which cmp.Compare would look for.
func (a *entry) compare(b *entry) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return a.pos - b.pos
}

// line is a binary heap of entries. It is typed because container/heap would box every entry.
type line []entry

func (l *line) push(e entry) {
	h := append(*l, e)
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !e.before(&h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = e
	*l = h
}

func (l *line) pop() entry {
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
		if k+1 < len(h) && h[k+1].before(&h[k]) {
			k++
		}
		if !h[k].before(&e) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = e
	return top
}
