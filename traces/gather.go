package traces

// Gather collects jobs, or rows that hold jobs, when nobody knows how many will come. Appending to one slice would copy
// each of them several times. The zero value is ready.
type Gather[T any] struct {
	full [][]T
	last []T
	n    int
}

// Len returns the number of elements added since the last call of Take.
func (g *Gather[T]) Len() int { return g.n }

// Add adds a copy of x.
func (g *Gather[T]) Add(x *T) {
	if len(g.last) == cap(g.last) {
		if g.last != nil {
			g.full = append(g.full, g.last)
		}
		g.last = make([]T, 0, min(max(64, g.n), 1<<13))
	}
	g.last = append(g.last, *x)
	g.n++
}

// Take returns all elements in one slice, nil if there are none, and begins anew.
func (g *Gather[T]) Take() []T {
	all := g.last
	if g.full != nil {
		all = make([]T, 0, g.n)
		for i, part := range g.full {
			all = append(all, part...)
			g.full[i] = nil // its memory is free now
		}
		all = append(all, g.last...)
	}
	*g = Gather[T]{}
	return all
}
