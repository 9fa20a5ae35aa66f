package tape

import (
	"math"

	"gorgonia.org/gorgonia"

	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// valueMemory allocates memory for the values of a program and reuses it once no later step reads a value. A step's
// output is then more often in the caches, because an earlier step has used the same memory.
type valueMemory[T kernel.Float] struct {
	last map[int64]int   // by owning node: the last step that reads it
	done map[int][]int64 // by step: the nodes that it is the last to read
	held map[int64][]T   // by node: memory that will be freed
	size int             // total elements
	free [][]T           // the most recently freed at the end
}

// newValueMemory finds the last reader of every value. The memory of given, which the caller reads, is never reused.
func newValueMemory[T kernel.Float](order, given []*gorgonia.Node) *valueMemory[T] {
	r := &valueMemory[T]{last: map[int64]int{}, done: map[int][]int64{}, held: map[int64][]T{}}
	for i, n := range order {
		r.last[base(n).ID()] = max(r.last[base(n).ID()], i)
		for _, c := range op.Inputs(n) {
			r.last[base(c).ID()] = i
		}
	}
	for _, n := range given {
		if n != nil {
			r.last[base(n).ID()] = math.MaxInt
		}
	}
	for _, n := range order { // in the order of the graph, so that every compilation assigns the same memory
		if id := n.ID(); base(n) == n {
			r.done[r.last[id]] = append(r.done[r.last[id]], id)
		}
	}
	return r
}

// take returns memory for n: the smallest free piece that is large enough, the most recently freed among equals.
func (r *valueMemory[T]) take(n *gorgonia.Node) []T {
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

// over returns the memory of n's input if it has the same size and step i is the last to read it, otherwise other
// memory.
func (r *valueMemory[T]) over(n, input *gorgonia.Node, i int) []T {
	from := base(input).ID()
	d, ok := r.held[from]
	if !ok || r.last[from] != i || elements(input) != elements(n) {
		return r.take(n)
	}
	delete(r.held, from)
	r.held[n.ID()] = d
	return d[:elements(n)]
}

// after frees the memory that step i was the last to read.
func (r *valueMemory[T]) after(i int) {
	for _, id := range r.done[i] {
		if d, ok := r.held[id]; ok {
			r.free = append(r.free, d)
			delete(r.held, id)
		}
	}
}
