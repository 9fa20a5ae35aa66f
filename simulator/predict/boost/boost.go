// Package boost fits gradient-boosted regression trees to quantiles, as LightGBM does with objective=quantile (Ke et
// al., "LightGBM: A Highly Efficient Gradient Boosting Decision Tree", NeurIPS 2017).
//
// Fit makes one ensemble of trees for each level. An ensemble's prediction is its start, the level's quantile of the
// targets, plus one leaf's value from each tree. Trees are added one by one:
//
//   - Values of features become bins, at most 255 a feature. Rows without a value (NaN) have a bin of their own.
//   - The gradient of the pinball loss of level a is 1-a in a row whose target is at most the prediction so far, and -a
//     in the others. A tree grows leaf by leaf: the split that gains most, of all leaves, is made next. The gain of a
//     split is GL²/(nL+l2) + GR²/(nR+l2) - G²/(n+l2), with sums of gradients G and numbers of rows n; the second
//     derivative counts as 1. A split tries the rows without a value on both sides.
//   - The gradient says on which side of the prediction a target is, but not how far away. A finished leaf therefore
//     gets the level's quantile of the residuals in it, times Options.Rate.
//
// There are two gradients only, so a histogram needs no sums of gradients: it counts the rows of each bin, and those
// whose target is at most the prediction. Both counts share one word (tally). Sums of whole numbers are exact, in any
// order, and so is the difference of two histograms.
//
// It differs from LightGBM in this: bins come from all rows rather than from a sample, zero has no bin of its own, in a
// split that no row without a value has reached such rows go with the majority, and quantiles of few residuals stand
// nearer to the ends (see quantile).
//
// The ensembles know nothing of each other, so their quantiles may cross. Predict puts them in ascending order, which
// lowers the sum of the pinball losses wherever they have crossed (Chernozhukov, Fernández-Val and Galichon, "Quantile
// and Probability Curves Without Crossing", Econometrica 2010).
package boost

import (
	"fmt"
	"slices"
)

// Model predicts quantiles. It never changes, and is safe for concurrent use.
type Model struct {
	names  []string
	levels []float64
	gains  []float64  // by feature
	parts  []ensemble // by level
}

// ensemble predicts one quantile. The trees' nodes stand one after the other, as do the values of their leaves.
type ensemble struct {
	start  float64
	roots  []int32 // of the trees, in nodes
	nodes  []node
	values []float64
}

// node is a split. A row goes to child[0] if its value is at most threshold, and to child[missing] without a value. A
// child below 0 is the leaf whose value is values[^child].
type node struct {
	threshold float32
	feature   uint16
	missing   uint8
	child     [2]int32
}

// Names returns the names of the features, in the order of a row's columns. Do not change it.
func (m *Model) Names() []string { return m.names }

// Levels returns the levels of the quantiles, ascending. Do not change it.
func (m *Model) Levels() []float64 { return m.levels }

// Gains returns by how much the splits on each feature have reduced the loss that trees are grown by, all levels
// together. A feature that no split uses has 0. Do not change it.
func (m *Model) Gains() []float64 { return m.gains }

// Predict writes the quantiles of row to dst, in the order of Levels, ascending. row has a value for each of Names; NaN
// = not known. Predict allocates nothing.
func (m *Model) Predict(row []float32, dst []float64) {
	if len(row) != len(m.names) || len(dst) != len(m.levels) {
		panic(fmt.Errorf("boost: a row of %d values and %d quantiles, want %d and %d", len(row), len(dst), len(m.names),
			len(m.levels)))
	}
	for i := range m.parts {
		dst[i] = m.parts[i].predict(row)
	}
	slices.Sort(dst)
}

// predict walks through four trees at a time: a step waits for memory, and four of them wait together.
func (e *ensemble) predict(row []float32) float64 {
	sum, roots := e.start, e.roots
	for ; len(roots) >= 4; roots = roots[4:] {
		a, b, c, d := roots[0], roots[1], roots[2], roots[3]
		for a&b&c&d >= 0 { // until all are leaves
			a, b, c, d = e.step(a, row), e.step(b, row), e.step(c, row), e.step(d, row)
		}
		sum += e.values[^a] + e.values[^b] + e.values[^c] + e.values[^d]
	}
	for _, i := range roots {
		for i >= 0 {
			i = e.step(i, row)
		}
		sum += e.values[^i]
	}
	return sum
}

// step returns the child of node i that row goes to, or i if it is a leaf. It has no branches, because the processor
// could not predict them.
func (e *ensemble) step(i int32, row []float32) int32 {
	leaf := i >> 31 // all ones or all zeros
	n := &e.nodes[i&^leaf]
	x := row[n.feature]
	var above, unknown uint8
	if x > n.threshold {
		above = 1
	}
	if x != x {
		unknown = 1
	}
	return i&leaf | n.child[(above|unknown&n.missing)&1]&^leaf
}
