package cluster

import "math"

// vcs is the division into virtual clusters. A domain is a range of neighbouring nodes that the same jobs may use.
// Domain i, from 1, is the nodes that virtual cluster i owns. Domain 0 is the nodes without an owner, for all virtual
// clusters without nodes of their own. Everything is empty if the Spec has no virtual clusters.
type vcs struct {
	names  []string
	index  map[string]int32 // by name, from 1
	owner  []int32          // domain of each node
	domain []int32          // by virtual cluster; [0] is not used
	node0  []int32          // by domain, first node; the nodes of domain 0 come last
	node1  []int32          // by domain, past the last node
	quota  []int            // thousandths, by virtual cluster; MaxInt = unlimited
	used   []int            // thousandths held, by virtual cluster; counted only if there is a quota
	free   []int32          // wholly free GPUs, by domain
}

func (c *Cluster) addVCs() {
	v := &c.vcs
	if len(c.spec.VCs) == 0 {
		return
	}
	n := len(c.spec.VCs) + 1
	v.index = make(map[string]int32, n)
	v.domain, v.quota, v.used = make([]int32, n), make([]int, n), make([]int, n)
	v.node0, v.node1, v.free = make([]int32, n), make([]int32, n), make([]int32, n)
	v.owner = make([]int32, len(c.rackOf))
	v.quota[0] = math.MaxInt
	next := int32(0)
	for i, s := range c.spec.VCs {
		i := int32(i + 1)
		v.names = append(v.names, s.Name)
		v.index[s.Name] = i
		v.quota[i] = math.MaxInt
		if s.Quota > 0 {
			v.quota[i] = s.Quota * 1000
		}
		if s.Nodes > 0 {
			v.domain[i] = i
			v.node0[i] = next
			for range s.Nodes {
				v.owner[next] = i
				next++
			}
			v.node1[i] = next
		}
	}
	v.node0[0], v.node1[0] = next, int32(len(c.rackOf))
}

func (c *Cluster) resetVCs() {
	clear(c.vcs.used)
	for d := range c.vcs.free {
		if !c.pool {
			c.vcs.free[d] = c.gpu0[c.vcs.node1[d]] - c.gpu0[c.vcs.node0[d]]
		}
	}
}

// VCs returns the names of the virtual clusters, in the order of Spec.VCs: number i+1 is VCs()[i]. It is empty if the
// cluster has none.
func (c *Cluster) VCs() []string { return c.vcs.names }

// VCOf returns the virtual cluster that owns node, 0 = none.
func (c *Cluster) VCOf(node int) int32 {
	if len(c.vcs.owner) == 0 {
		return 0
	}
	return c.vcs.owner[node]
}

// VCNodes returns the range [from, to) of the nodes that jobs of virtual cluster vc may use: its own, or the nodes
// without an owner if it owns none. VCNodes(0) is all nodes.
func (c *Cluster) VCNodes(vc int32) (from, to int) {
	if vc == 0 {
		return 0, len(c.rackOf)
	}
	d := c.vcs.domain[vc]
	return int(c.vcs.node0[d]), int(c.vcs.node1[d])
}

// VCFree returns the number of wholly free GPUs on the nodes that jobs of vc may use, regardless of its quota.
// VCFree(0) is Free.
func (c *Cluster) VCFree(vc int32) int {
	if vc == 0 || c.pool {
		return c.Free()
	}
	return int(c.vcs.free[c.vcs.domain[vc]])
}

// VCRoom returns how many more thousandths of a GPU the quota of vc allows its jobs to take, MaxInt if it has none.
func (c *Cluster) VCRoom(vc int32) int {
	if vc == 0 || c.vcs.quota[vc] == math.MaxInt {
		return math.MaxInt
	}
	return c.vcs.quota[vc] - c.vcs.used[vc]
}

// addUsed charges milli thousandths to the quota of vc, which must not be 0.
func (c *Cluster) addUsed(vc int32, milli int) {
	if c.vcs.quota[vc] != math.MaxInt {
		c.vcs.used[vc] += milli
	}
}
