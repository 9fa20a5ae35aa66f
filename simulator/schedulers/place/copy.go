package place

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// CopyOf returns a cluster built like c. If same is true, dst already is one and is reused.
func CopyOf(c, dst *cluster.Cluster, same bool) *cluster.Cluster {
	if same && dst != nil {
		return dst
	}
	return c.Twin()
}

// Take allocates gpus if they are free. It reports whether they were.
func Take(c *cluster.Cluster, r *cluster.Request, gpus []cluster.GPU) bool {
	for _, g := range gpus { // check first, to avoid building an error that is never read
		if g >= 0 && c.GPUFree(g) < r.Milli {
			return false
		}
	}
	return c.Allocate(r, gpus) == nil
}

// Types returns the number of GPU types of c, at least 1.
func Types(c *cluster.Cluster) int { return max(1, len(c.Types())) }

// TypeOf returns the GPU type that j has, or had last; MixedTypes if its GPUs are of several types.
func TypeOf(v *sim.View, j sim.Job) int {
	c := v.Cluster()
	if c.Pool() {
		return 0
	}
	kind := MixedTypes
	for i, g := range v.GPUs(j) {
		if k := c.TypeOf(c.NodeOf(g)); i == 0 {
			kind = k
		} else if k != kind {
			return MixedTypes
		}
	}
	return kind
}

// MixedTypes is the type of gangs whose GPUs are of several types.
const MixedTypes = -2

// Takes reports whether r accepts GPUs of type kind.
func Takes(r *cluster.Request, kind int) bool { return r.Types == 0 || r.Types>>kind&1 != 0 }

// OwnGPUs returns how many GPUs are c's own, at least 1: keys divide by it, and a virtual cluster may have no GPU.
func OwnGPUs(c *cluster.Cluster) int { return max(1, c.Own()) }

// SoleQueue returns the number of the only virtual cluster that jobs of c can be in, 0 if there are none, -1 if several
// share nodes.
func SoleQueue(c *cluster.Cluster) int {
	if c.Owner() != 0 {
		return 0
	}
	sole := 0
	for i, vc := range c.Spec().VCs {
		if vc.Hosts != nil {
			return -1 // even if there is no other: it may not have all nodes
		}
		if vc.Nodes > 0 {
			continue // it has a part of its own
		}
		if sole > 0 {
			return -1
		}
		sole = i + 1
	}
	return sole
}
