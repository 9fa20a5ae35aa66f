package place

import "clustergym/simulator/cluster"

// Tier is how far a gang is spread.
type Tier uint8

// The tiers, nearest first.
const (
	InNode Tier = iota
	InRack
	AcrossRacks
)

// Spread returns how far gpus are spread on c.
func Spread(c *cluster.Cluster, gpus []cluster.GPU) Tier {
	if len(gpus) < 2 || c.Pool() {
		return InNode
	}
	first, t := c.NodeOf(gpus[0]), InNode
	for _, g := range gpus[1:] {
		if n := c.NodeOf(g); n != first {
			if c.RackOf(n) != c.RackOf(first) {
				return AcrossRacks
			}
			t = InRack
		}
	}
	return t
}
