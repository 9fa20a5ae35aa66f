package heuristic

import "clustergym/env/cluster"
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

// line is a binary heap of entries. Typed, because container/heap would box every one.
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

// bucket is the line of all jobs with the same request. They fit or do not fit together.
type bucket struct {
	req    cluster.Request
	line   line
	closed bool // does not fit any more in this pass
}

// waitQueue is the waiting jobs: one line where the first in rank alone decides (strict), one for each kind of
// request where jobs that do not fit are stepped over (skip).
type waitQueue struct {
	buckets []bucket
	single  bool
	index   map[cluster.Request]int
	whole   []int // bucket of plain requests by GPUs, −1 = none yet
}

func (q *waitQueue) reset(single bool) {
	for i := range q.buckets {
		q.buckets[i].line = q.buckets[i].line[:0]
	}
	if q.index == nil || single != q.single {
		q.buckets, q.index, q.single, q.whole = nil, map[cluster.Request]int{}, single, nil
	}
}

func (q *waitQueue) push(e entry, r *cluster.Request) {
	q.buckets[q.find(r)].line.push(e)
}

func (q *waitQueue) find(r *cluster.Request) int {
	if q.single {
		if len(q.buckets) == 0 {
			q.buckets = append(q.buckets, bucket{})
		}
		return 0
	}
	plain := r.Milli == 1000 && r.Types == 0 && r.CPUMilli == 0 && r.MemBytes == 0 && r.GPUs < 1<<16
	if plain {
		if r.GPUs < len(q.whole) {
			if i := q.whole[r.GPUs]; i >= 0 {
				return i
			}
		}
		for len(q.whole) <= r.GPUs {
			q.whole = append(q.whole, -1)
		}
	} else if i, ok := q.index[*r]; ok {
		return i
	}
	i := len(q.buckets)
	q.buckets = append(q.buckets, bucket{req: *r})
	if plain {
		q.whole[r.GPUs] = i
	} else {
		q.index[*r] = i
	}
	return i
}

// open lets every bucket take part in a new pass.
func (q *waitQueue) open() {
	for i := range q.buckets {
		q.buckets[i].closed = false
	}
}

// best is the bucket whose first job ranks before all others', −1 if no open bucket has jobs that still wait.
// Jobs that somebody else has started meanwhile are dropped on the way.
func (q *waitQueue) best(v *sim.View) int {
	best := -1
	for i := range q.buckets {
		b := &q.buckets[i]
		if b.closed {
			continue
		}
		for len(b.line) > 0 && stale(v, &b.line[0]) {
			b.line.pop()
		}
		if len(b.line) > 0 && (best < 0 || b.line[0].before(&q.buckets[best].line[0])) {
			best = i
		}
	}
	return best
}

func stale(v *sim.View, e *entry) bool {
	return v.State(e.job) != sim.Waiting || v.Pos(e.job) != e.pos
}
