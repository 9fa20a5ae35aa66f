package rltune

import "fmt"

// Cluster is one of the three environments of the program.
type Cluster struct {
	Name  string
	Pools []Named

	// PerNode divides requests in observations.
	PerNode int
	// AllNodes says that the share of partial nodes is of all nodes, not of those with a free GPU.
	AllNodes bool
	// Wide1 says that observations count no ways of one node more than needed.
	Wide1 bool
	// Skips says that back-filling passes over the job after each that it has started, as it deletes from the list that it
	// walks over.
	Skips bool
	// WholePool says that the integer programme is over all nodes of the pool that have a free GPU, not only those of the
	// ways.
	WholePool bool

	gpus int
}

// GPUs returns the GPUs of all pools.
func (c *Cluster) GPUs() int { return c.gpus }

// Clusters returns the names of the clusters.
func Clusters() []string { return []string{"philly", "helios", "alibaba"} }

// NewCluster returns the cluster called name.
func NewCluster(name string) (*Cluster, error) {
	c := &Cluster{Name: name, PerNode: 8}
	add := func(name string, first int, blocks ...Block) {
		c.Pools = append(c.Pools, Named{NewPool(blocks...), name, first})
	}
	switch name {
	case "philly":
		c.AllNodes = true
		add("philly", 0, Block{Nodes: 16, Each: 2, Most: 4}, Block{Nodes: 20, Each: 8})
	case "helios":
		c.Wide1, c.Skips, c.WholePool = true, true, true
		for i, n := range []int{6, 4, 3, 2, 2} {
			add(fmt.Sprintf("vc%d", i+1), 1, Block{Nodes: n, Each: 8})
		}
	case "alibaba":
		add("T4", 1, Block{Nodes: 8, Each: 2})
		add("MISC", 1, Block{Nodes: 8, Each: 8})
		add("P100", 1, Block{Nodes: 15, Each: 2})
		add("V100", 1, Block{Nodes: 10, Each: 8})
		add("V100M32", 1, Block{Nodes: 8, Each: 8})
	default:
		return nil, fmt.Errorf("cluster %q is unknown, want philly, helios or alibaba", name)
	}
	for _, p := range c.Pools {
		c.gpus += p.gpus
	}
	return c, nil
}

// Named is a pool of the program.
type Named struct {
	*Pool
	Name  string
	First int // the program's number of the first node
}

// Each returns the GPUs of the node at a position.
func (p Named) Each(node int) int {
	for i := range p.Blocks {
		if b := &p.Blocks[i]; node < b.Nodes {
			return b.Each
		}
		node -= p.Blocks[i].Nodes
	}
	panic(fmt.Sprintf("rltune: pool %s has no node %d", p.Name, node))
}
