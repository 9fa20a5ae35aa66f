package traces

// Order appends the tasks of g to dst so that each comes after its parents (Kahn's algorithm; among the ready tasks,
// the one that became ready last goes first). ok is false if the graph has a cycle; the order then leaves out the tasks
// on a cycle and all their descendants.
func (g *Graph) Order(dst []int32) (order []int32, ok bool) {
	needs := make([]int32, len(g.Tasks))
	first := make([]int32, len(g.Tasks)+1) // index in children of each parent's first edge
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
