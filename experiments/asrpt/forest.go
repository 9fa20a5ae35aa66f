package asrpt

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
)

// forest is a random forest for regression (Breiman, 2001): trees, each fitted to a bootstrap sample. Every split looks
// at a third of the features. It never changes once it is fitted.
type forest struct{ trees [][]node }

// node is a split, or a leaf if feature is −1.
type node struct {
	feature int
	at      float64 // values up to it go to the node that follows, others to node right
	right   int
	value   float64 // of a leaf
}

// fit fits trees to rows, whose targets are the numbers of target.
func fit(rows [][]float64, target []float64, trees int, seed uint64) *forest {
	f := &forest{}
	g := grower{rows: rows, target: target, r: rng.Stream(seed, "asrpt/forest")}
	g.sorted = make([][]int, len(rows[0]))
	for k := range g.sorted {
		g.sorted[k] = indices(len(rows))
		slices.SortFunc(g.sorted[k],
			func(a, b int) int { return cmp.Or(cmp.Compare(rows[a][k], rows[b][k]), cmp.Compare(a, b)) })
	}
	g.weight, g.left, g.spare = make([]float64, len(rows)), make([]bool, len(rows)), make([]int, len(rows))
	for range trees {
		f.trees = append(f.trees, g.tree())
	}
	return f
}

// predict returns the mean of the trees' predictions for a row.
func (f *forest) predict(row []float64) float64 {
	sum := 0.0
	for _, t := range f.trees {
		i := 0
		for t[i].feature >= 0 {
			if row[t[i].feature] <= t[i].at {
				i++
			} else {
				i = t[i].right
			}
		}
		sum += t[i].value
	}
	return sum / float64(len(f.trees))
}

// minLeaf is the number of rows of a leaf at least, counted as often as they were drawn. Smaller leaves predicted worse
// in workloads that no table has.
const minLeaf = 20

// grower grows one tree after another.
type grower struct {
	rows   [][]float64
	target []float64
	r      *rand.Rand
	sorted [][]int // by feature, all rows in order of its values

	weight []float64 // of a row: how often it was drawn for the tree
	left   []bool    // whether a row goes to the left in the split at hand
	spare  []int
	nodes  []node
}

// tree returns a tree fitted to a bootstrap sample.
func (g *grower) tree() []node {
	clear(g.weight)
	for range g.rows {
		g.weight[g.r.IntN(len(g.rows))]++
	}
	own := make([][]int, len(g.sorted))
	for k, order := range g.sorted {
		for _, i := range order {
			if g.weight[i] > 0 {
				own[k] = append(own[k], i)
			}
		}
	}
	g.nodes = nil
	g.grow(own)
	return g.nodes
}

// grow appends the tree of the rows in own, which has them in the order of each feature and is reordered.
func (g *grower) grow(own [][]int) {
	at := len(g.nodes)
	g.nodes = append(g.nodes, node{feature: -1})
	n, sum := 0.0, 0.0
	for _, i := range own[0] {
		n += g.weight[i]
		sum += g.weight[i] * g.target[i]
	}
	g.nodes[at].value = sum / n
	feature, limit, ok := g.split(own, n, sum)
	if !ok {
		return
	}
	for _, i := range own[0] {
		g.left[i] = g.rows[i][feature] <= limit
	}
	l, r := make([][]int, len(own)), make([][]int, len(own))
	for k, order := range own {
		kept, others := 0, g.spare[:0]
		for _, i := range order {
			if g.left[i] {
				order[kept] = i
				kept++
			} else {
				others = append(others, i)
			}
		}
		copy(order[kept:], others)
		l[k], r[k] = order[:kept], order[kept:]
	}
	g.grow(l)
	g.nodes[at].feature, g.nodes[at].at, g.nodes[at].right = feature, limit, len(g.nodes)
	g.grow(r)
}

// split returns the split of the rows in own, by one of a random third of the features, that leaves the least sum of
// squares. n is their weight, sum that of their targets.
func (g *grower) split(own [][]int, n, sum float64) (feature int, limit float64, ok bool) {
	mean := sum / n
	best := 1e-9 // a split must gain more than rounding does
	for _, k := range g.r.Perm(len(own))[:max(1, len(own)/3)] {
		order := own[k]
		count, left := 0.0, 0.0 // targets are counted from the mean
		for at := 1; at < len(order); at++ {
			i := order[at-1]
			count += g.weight[i]
			left += g.weight[i] * (g.target[i] - mean)
			a, b := g.rows[i][k], g.rows[order[at]][k]
			if a == b || count < minLeaf || n-count < minLeaf {
				continue
			}
			if gain := left*left/count + left*left/(n-count); gain > best {
				best, feature, limit, ok = gain, k, a+(b-a)/2, true
				if limit >= b { // halfway between neighbours is rounded up to the greater
					limit = a
				}
			}
		}
	}
	return feature, limit, ok
}
