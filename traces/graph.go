package traces

// Order appends the tasks of g to dst so that each stands after its parents (Kahn's algorithm; among tasks that are
// ready the one that became so last goes first). ok is false where a task needs itself by way of its parents; the
// order then holds only the tasks that are neither on such a cycle nor behind it.
func (g *Graph) Order(dst []int32) (order []int32, ok bool) {
	needs := make([]int32, len(g.Tasks))
	first := make([]int32, len(g.Tasks)+1) // of a parent's edges in children
	for _, e := range g.Edges {
		needs[e.Child]++
		first[e.Parent+1]++
	}
	for i := range g.Tasks {
		first[i+1] += first[i]
	}
	children, next := make([]int32, len(g.Edges)), append([]int32(nil), first...)
	for _, e := range g.Edges {
		children[next[e.Parent]] = e.Child
		next[e.Parent]++
	}
	var ready []int32
	for i := len(needs) - 1; i >= 0; i-- {
		if needs[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	n := len(dst)
	for len(ready) > 0 {
		k := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		dst = append(dst, k)
		for _, c := range children[first[k]:first[k+1]] {
			if needs[c]--; needs[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	return dst, len(dst)-n == len(g.Tasks)
}
