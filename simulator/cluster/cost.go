package cluster

import "slices"

// The tree's communication cost, as in TopDRL's precursor (Deng et al., Canadian AI 2024). It sums the edges from the
// site's centre to every GPU of the gang, each counted once: an edge to a rack weighs 1/2, to a node 1/4 and to a GPU
// 1/40. A gang of n GPUs on M nodes in R racks costs R/2 + M/4 + n/40.
const (
	rackWeight = 1.0 / 2
	nodeWeight = 1.0 / 4
	gpuWeight  = 1.0 / 40
)

// costTable holds the best and worst cost by gang size, grown on demand.
type costTable struct{ best, worst []float64 }

// Cost returns the tree cost of gpus, which must be distinct; on a counter, and for a job without GPUs, it is 1.
func (c *Cluster) Cost(gpus []GPU) float64 {
	if c.pool || len(gpus) == 0 || gpus[0] < 0 {
		return 1
	}
	c.epoch++
	if c.epoch == 0 { // wrapped around: old marks could look new
		clear(c.seenNode)
		clear(c.seenRack)
		c.epoch = 1
	}
	racks, nodes := 0, 0
	for _, g := range gpus {
		n := c.nodeOf[g]
		if c.seenNode[n] == c.epoch {
			continue
		}
		c.seenNode[n] = c.epoch
		nodes++
		if r := c.rackOf[n]; c.seenRack[r] != c.epoch {
			c.seenRack[r] = c.epoch
			racks++
		}
	}
	return treeCost(racks, nodes, len(gpus))
}

func treeCost(racks, nodes, gpus int) float64 {
	return float64(racks)*rackWeight + float64(nodes)*nodeWeight + float64(gpus)*gpuWeight
}

// BestCost returns the lowest tree cost of any n GPUs of the empty cluster, n from 1 to GPUs(). BestCost(0) is 1.
func (c *Cluster) BestCost(n int) float64 {
	if c.pool || n == 0 {
		return 1
	}
	c.growCosts(n)
	return c.cost.best[n]
}

// WorstCost returns the highest tree cost of any n GPUs of the empty cluster. WorstCost(0) is 1.
func (c *Cluster) WorstCost(n int) float64 {
	if c.pool || n == 0 {
		return 1
	}
	c.growCosts(n)
	return c.cost.worst[n]
}

func (c *Cluster) growCosts(n int) {
	if n < len(c.cost.best) {
		return
	}
	n = min(c.total, max(2*len(c.cost.best), n, 64))
	c.cost.best, c.cost.worst = c.bestCosts(n), make([]float64, n+1)
	nodes, racks := 0, 0 // counting only those with GPUs
	for r := range c.Racks() {
		some := false
		for k := c.node0[r]; k < c.node0[r+1]; k++ {
			if c.gpu0[k+1] > c.gpu0[k] {
				nodes++
				some = true
			}
		}
		if some {
			racks++
		}
	}
	for k := 1; k <= n; k++ {
		c.cost.worst[k] = treeCost(min(k, racks), min(k, nodes), k)
	}
}

// bestCosts finds, for every gang size up to n, the cheapest numbers of racks and nodes that can hold it. Within a
// rack the largest nodes come first, so holds[R][M], the most GPUs on M nodes in R racks, follows from a knapsack over
// the racks.
func (c *Cluster) bestCosts(n int) []float64 {
	racks, nodes := min(n, c.Racks()), min(n, len(c.rackOf))
	const none = -1
	holds := make([][]int, racks+1)
	for r := range holds {
		holds[r] = make([]int, nodes+1)
		for m := range holds[r] {
			holds[r][m] = none
		}
	}
	holds[0][0] = 0
	var sizes []int
	for r := range c.Racks() {
		sizes = sizes[:0]
		for k := c.node0[r]; k < c.node0[r+1]; k++ {
			sizes = append(sizes, int(c.gpu0[k+1]-c.gpu0[k]))
		}
		slices.SortFunc(sizes, func(a, b int) int { return b - a })
		// Downwards, so that this rack is used at most once.
		for used := min(racks, r+1); used >= 1; used-- {
			for m := nodes; m >= 1; m-- {
				sum := 0
				for k := 1; k <= min(m, len(sizes)); k++ {
					sum += sizes[k-1]
					if before := holds[used-1][m-k]; before != none {
						holds[used][m] = max(holds[used][m], before+sum)
					}
					if sum >= n {
						break
					}
				}
			}
		}
	}
	best := make([]float64, n+1)
	for r := 1; r <= racks; r++ {
		for m := 1; m <= nodes; m++ {
			for k := 1; k <= min(n, holds[r][m]); k++ {
				if v := treeCost(r, m, k); best[k] == 0 || v < best[k] {
					best[k] = v
				}
			}
		}
	}
	return best
}
