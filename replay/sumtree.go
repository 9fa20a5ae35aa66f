package replay

// sumTree is a complete binary tree in which every inner node is the sum of its two children. Setting a leaf, and
// finding one by its share of the total, take logarithmic time (Schaul et al. 2016, appendix B.2.1). Nodes are
// recomputed on every change, never corrected by a difference, so a node is exactly the sum of its children after any
// number of changes and rounding errors do not accumulate.
type sumTree struct {
	leaves int       // a power of two
	node   []float64 // node[1] is the root, node[leaves+i] is leaf i
}

func newSumTree(n int) sumTree {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	return sumTree{leaves: leaves, node: make([]float64, 2*leaves)}
}

func (t *sumTree) total() float64 { return t.node[1] }

func (t *sumTree) leaf(i int) float64 { return t.node[t.leaves+i] }

// set sets leaf i to v, which must not be negative.
func (t *sumTree) set(i int, v float64) {
	k := t.leaves + i
	t.node[k] = v
	for k /= 2; k >= 1; k /= 2 {
		t.node[k] = t.node[2*k] + t.node[2*k+1]
	}
}

// find returns the leaf that contains x, in [0, total), when leaves are laid end to end. It never returns a leaf of
// size 0, even if rounding moves x beyond the last one, unless the total is 0.
func (t *sumTree) find(x float64) int {
	k := 1
	for k < t.leaves {
		k *= 2
		if left := t.node[k]; (x >= left || left == 0) && t.node[k+1] > 0 {
			x -= left
			k++
		}
	}
	return k - t.leaves
}
