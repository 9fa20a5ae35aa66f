package cluster

import (
	"fmt"
	"strings"
)

// Placement chooses the GPUs of a gang among those that are free. Place appends them to dst[:0] and says
// whether the gang fits; on a counter the list stays empty. It does not allocate them. A placement may hold
// scratch space: use one for one cluster, in one goroutine.
//
// Every rule here places whatever fits: a gang that no single node has room for is spread.
type Placement interface {
	Name() string
	Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool)
}

// PlacementNames are the rules that NewPlacement knows.
func PlacementNames() []string {
	return []string{"first-fit", "best-fit", "worst-fit", "pack", "closest-a", "closest-b", "closest-c"}
}

// NewPlacement returns the rule called name.
func NewPlacement(name string) (Placement, error) {
	switch name {
	case "first-fit":
		return firstFit{}, nil
	case "best-fit":
		return bestFit{}, nil
	case "worst-fit":
		return worstFit{}, nil
	case "pack":
		return pack{}, nil
	case "closest-a", "closest-b", "closest-c":
		return &closest{variant: name[len(name)-1]}, nil
	}
	return nil, fmt.Errorf("placement %q is unknown, want one of %s", name, strings.Join(PlacementNames(), ", "))
}

// takeFrom appends up to n usable GPUs of node, lowest index first.
func (c *Cluster) takeFrom(node int, n int, r *Request, dst []GPU) []GPU {
	for g := c.gpu0[node]; g < c.gpu0[node+1] && n > 0; g++ {
		if int(c.gpuFree[g]) >= r.Milli {
			dst = append(dst, GPU(g))
			n--
		}
	}
	return dst
}

// takeFullest is takeFrom, but shares go to the GPUs with the least left that suffices.
func (c *Cluster) takeFullest(node int, n int, r *Request, dst []GPU) []GPU {
	if r.Milli == 1000 || n != 1 {
		return c.takeFrom(node, n, r, dst)
	}
	best := GPU(-1)
	for g := c.gpu0[node]; g < c.gpu0[node+1]; g++ {
		if f := c.gpuFree[g]; int(f) >= r.Milli && (best < 0 || f < c.gpuFree[best]) {
			best = GPU(g)
		}
	}
	return append(dst, best)
}

// firstFit takes the first node with room for the whole gang, lowest number first; failing that, what each node
// has, in order.
type firstFit struct{}

func (firstFit) Name() string { return "first-fit" }

func (firstFit) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	for n := range c.rackOf {
		if c.Room(n, r) >= r.GPUs {
			return c.takeFrom(n, r.GPUs, r, dst), true
		}
	}
	for n := range c.rackOf {
		dst = c.takeFrom(n, min(c.Room(n, r), r.GPUs-len(dst)), r, dst)
	}
	return dst, true
}

// bestFit takes the node where the fewest GPUs are left; failing one that holds the gang, the node with most
// room, and so on until the rest fits one node. Shares go to the fullest GPU that suffices.
type bestFit struct{}

func (bestFit) Name() string { return "best-fit" }

func (bestFit) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	if r.Milli < 1000 && r.GPUs == 1 {
		return append(dst, c.fullestShare(r)), true
	}
	return c.spread(r, dst, func(room, need int) int { return room - need }), true
}

// fullestShare is the GPU with the least left that suffices for one share, lowest number on ties.
func (c *Cluster) fullestShare(r *Request) GPU {
	best, left := GPU(-1), int32(1001)
	for n := range c.rackOf {
		if c.Room(n, r) == 0 {
			continue
		}
		for g := c.gpu0[n]; g < c.gpu0[n+1]; g++ {
			if f := c.gpuFree[g]; int(f) >= r.Milli && f < left {
				best, left = GPU(g), f
			}
		}
	}
	return best
}

// spread fills dst node by node: the node that holds all that is still needed with the least score, else the
// one with most room.
func (c *Cluster) spread(r *Request, dst []GPU, score func(room, need int) int) []GPU {
	for len(dst) < r.GPUs {
		need := r.GPUs - len(dst)
		fit, fitScore, most, mostRoom := -1, 0, -1, 0
		for n := range c.rackOf {
			room := c.Room(n, r)
			if room == 0 || c.has(dst, n) {
				continue
			}
			if room >= need {
				if s := score(room, need); fit < 0 || s < fitScore {
					fit, fitScore = n, s
				}
			} else if room > mostRoom {
				most, mostRoom = n, room
			}
		}
		if fit >= 0 {
			return c.takeFullest(fit, need, r, dst)
		}
		dst = c.takeFullest(most, mostRoom, r, dst)
	}
	return dst
}

// has says whether node is among those that dst already uses; dst is short.
func (c *Cluster) has(dst []GPU, node int) bool {
	for _, g := range dst {
		if int(c.nodeOf[g]) == node {
			return true
		}
	}
	return false
}

// worstFit takes the node with most room; a larger gang takes the nodes in that order.
type worstFit struct{}

func (worstFit) Name() string { return "worst-fit" }

func (worstFit) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	return c.spread(r, dst, func(room, need int) int { return need - room }), true
}

// pack fills nodes that are already in use before it opens idle ones: the fullest started node that holds the
// gang, else the smallest idle node that does; a larger gang takes what the started nodes have, fullest first,
// then idle nodes, largest first.
type pack struct{}

func (pack) Name() string { return "pack" }

func (pack) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	if r.Milli < 1000 && r.GPUs == 1 {
		return append(dst, c.fullestShare(r)), true
	}
	const idle = 1 << 20 // any idle node comes after every started one
	fit, score := -1, 0
	for n := range c.rackOf {
		room := c.Room(n, r)
		if room < r.GPUs {
			continue
		}
		s := room
		if c.nodeFree[n] == c.gpu0[n+1]-c.gpu0[n] {
			s += idle
		}
		if fit < 0 || s < score {
			fit, score = n, s
		}
	}
	if fit >= 0 {
		return c.takeFullest(fit, r.GPUs, r, dst), true
	}
	for len(dst) < r.GPUs {
		next, score := -1, 0
		for n := range c.rackOf {
			room := c.Room(n, r)
			if room == 0 || c.has(dst, n) {
				continue
			}
			s := room
			if c.nodeFree[n] == c.gpu0[n+1]-c.gpu0[n] {
				s = 2*idle - room
			}
			if next < 0 || s < score {
				next, score = n, s
			}
		}
		dst = c.takeFullest(next, min(c.Room(next, r), r.GPUs-len(dst)), r, dst)
	}
	return dst, true
}
