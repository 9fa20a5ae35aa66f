package tape

import (
	"math"

	"gorgonia.org/gorgonia"

	"clustergym/nets/kernel"
)

// room hands out memory for the values of a program, and takes it back when nobody will read them any more: what a step
// writes then lies in the caches more often, because a step before it has worked there.
type room[T kernel.Float] struct {
	last map[int64]int   // by node whose memory it is: the last step that reads it
	done map[int][]int64 // by step: the nodes whose last it is
	held map[int64][]T   // by node: memory that comes back
	size int             // of all memory together
	free [][]T           // the one that came back last at the end
}

// newRoom looks at all steps in order. The memory of what a program gives to its caller is never used for anything else.
func newRoom[T kernel.Float](order, given []*gorgonia.Node) *room[T] {
	r := &room[T]{last: map[int64]int{}, done: map[int][]int64{}, held: map[int64][]T{}}
	for i, n := range order {
		r.last[base(n).ID()] = max(r.last[base(n).ID()], i)
		for _, c := range inputs(n) {
			r.last[base(c).ID()] = i
		}
	}
	for _, n := range given {
		if n != nil {
			r.last[base(n).ID()] = math.MaxInt
		}
	}
	for _, n := range order { // in the order of the graph, so that every run of the program gives out the same
		if id := n.ID(); base(n) == n {
			r.done[r.last[id]] = append(r.done[r.last[id]], id)
		}
	}
	return r
}

// take is memory for n: of what is free the smallest that is large enough, the last that came back among equals.
func (r *room[T]) take(n *gorgonia.Node) []T {
	size, best := elements(n), -1
	for i, d := range r.free {
		if len(d) >= size && (best < 0 || len(d) <= len(r.free[best])) {
			best = i
		}
	}
	var d []T
	if best < 0 {
		d = make([]T, size)
		r.size += size
	} else {
		d = r.free[best]
		r.free = append(r.free[:best], r.free[best+1:]...)
	}
	r.held[n.ID()] = d
	return d[:size]
}

// over is the memory of an input of n of the same size, where step i is the last to read it, and else new memory.
func (r *room[T]) over(n, input *gorgonia.Node, i int) []T {
	from := base(input).ID()
	d, ok := r.held[from]
	if !ok || r.last[from] != i || elements(input) != elements(n) {
		return r.take(n)
	}
	delete(r.held, from)
	r.held[n.ID()] = d
	return d[:elements(n)]
}

// after takes back what step i was the last to read.
func (r *room[T]) after(i int) {
	for _, id := range r.done[i] {
		if d, ok := r.held[id]; ok {
			r.free = append(r.free, d)
			delete(r.held, id)
		}
	}
}
