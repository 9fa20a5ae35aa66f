package cluster

import (
	"math"
	"math/bits"
	"slices"
	"strconv"

	"clustergym/internal/hostlist"
)

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
	// mask has bit i−1 of a node if jobs of virtual cluster i may use it; nil unless some virtual cluster names hosts. Then
	// every virtual cluster has a domain of its own, which others may overlap: from its first node to its last.
	mask  []uint64
	used  []int   // thousandths held, by virtual cluster; counted only if there is a quota
	free  []int32 // wholly free GPUs, by domain
	apart uint64  // bit i−1 if jobs of virtual cluster i may use some GPUs only, as others may
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
	if slices.ContainsFunc(c.spec.VCs, func(s VCSpec) bool { return s.Hosts != nil }) {
		c.addMask()
	}
}

// addMask notes which virtual clusters may use which nodes. The specification is valid.
func (c *Cluster) addMask() {
	v := &c.vcs
	v.mask = make([]uint64, len(c.rackOf))
	find := c.spec.finder()
	for i, s := range c.spec.VCs {
		vc := i + 1
		v.domain[vc] = int32(vc)
		bit := uint64(1) << i
		if s.Hosts == nil {
			for n := range v.mask {
				v.mask[n] |= bit
			}
		}
		for _, list := range s.Hosts {
			names, _ := hostlist.Expand(list)
			for _, name := range names {
				v.mask[find(name)] |= bit
			}
		}
		v.node0[vc], v.node1[vc] = int32(len(v.mask)), 0
		for n, m := range v.mask {
			if m&bit != 0 {
				v.node0[vc], v.node1[vc] = min(v.node0[vc], int32(n)), int32(n+1)
			} else if c.gpu0[n+1] > c.gpu0[n] {
				v.apart |= bit
			}
		}
		v.node0[vc] = min(v.node0[vc], v.node1[vc])
	}
}

// finder returns a function from the name or, for a name that no node has, the number of a node to the node; -1 = none.
func (s *Spec) finder() func(name string) int {
	index, nodes := map[string]int{}, 0
	for n, name := range s.NodeNames() {
		if name != "" {
			index[name] = n
		}
	}
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			nodes += r.Count.N() * n.Count.N()
		}
	}
	return func(name string) int {
		if n, ok := index[name]; ok {
			return n
		}
		if n, err := strconv.ParseUint(name, 10, 31); err == nil && int(n) < nodes {
			return int(n)
		}
		return -1
	}
}

// Serves reports whether jobs of virtual cluster vc may use node; vc 0 stands for jobs of a cluster without virtual
// clusters.
func (c *Cluster) Serves(node int, vc int32) bool {
	switch {
	case vc == 0:
		return true
	case c.vcs.mask != nil:
		return c.vcs.mask[node]>>(vc-1)&1 != 0
	}
	return c.vcs.owner[node] == c.vcs.domain[vc]
}

// addFree counts k more wholly free GPUs on node for the virtual clusters that may use it. There are some.
func (c *Cluster) addFree(node int, k int32) {
	if c.vcs.mask == nil {
		c.vcs.free[c.vcs.owner[node]] += k
		return
	}
	for m := c.vcs.mask[node]; m != 0; m &= m - 1 {
		c.vcs.free[bits.TrailingZeros64(m)+1] += k
	}
}

func (c *Cluster) resetVCs() {
	clear(c.vcs.used)
	if c.vcs.mask != nil {
		clear(c.vcs.free)
		for n := range c.rackOf {
			c.addFree(n, c.gpu0[n+1]-c.gpu0[n])
		}
		return
	}
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
// without an owner if it owns none. VCNodes(0) is all nodes. If virtual clusters name hosts, it is the least range that
// has all those of vc, and Serves says which they are.
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
