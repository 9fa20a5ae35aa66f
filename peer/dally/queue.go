package dally

// The classes of events, in the order in which they are handled at one time. The authors' program also has starts of
// blocks, between the ends of blocks and the passes. They are not events here, because nothing that happens before
// them at the same time depends on them.
const (
	arrival int8 = iota // also the statistics tick
	blockEnd
	pass
)

const tick = -1 // in place of an event's job

// event is a future event. start is when its block began.
type event struct {
	at, start float64
	seq       uint64
	job       int32
	class     int8
}

// queue is a heap of events.
type queue struct {
	heap []event
	tied func(a, b *event) bool // whether a comes before b, both block ends with equal begin and end
}

func (q *queue) less(a, b *event) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.class != b.class {
		return a.class < b.class
	}
	if a.class == blockEnd {
		if a.start != b.start { // the block that began earlier was noted earlier
			return a.start < b.start
		}
		return q.tied(a, b)
	}
	return a.seq < b.seq
}

func (q *queue) push(e event) {
	h := append(q.heap, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !q.less(&e, &h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	q.heap = h
}

func (q *queue) pop() event {
	h := q.heap
	top := h[0]
	e := h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && q.less(&h[c+1], &h[c]) {
			c++
		}
		if !q.less(&h[c], &e) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = e
	return top
}
