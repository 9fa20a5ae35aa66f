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
		return &bestFit{}, nil
	case "worst-fit":
		return &worstFit{}, nil
	case "pack":
		return &pack{}, nil
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
type bestFit struct{ rooms rooms }

func (*bestFit) Name() string { return "best-fit" }

func (p *bestFit) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
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
	return p.rooms.spread(c, r, dst, 1), true
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

// rooms is scratch space: how many members of a gang each node has room for; 0 once the node is used.
type rooms []int32

func (s *rooms) count(c *Cluster, r *Request) []int32 {
	if len(*s) != len(c.rackOf) {
		*s = make(rooms, len(c.rackOf))
	}
	if r.plain() {
		copy(*s, c.nodeFree)
		return *s
	}
	for n := range *s {
		(*s)[n] = int32(c.Room(n, r))
	}
	return *s
}

// spread fills dst node by node: of the nodes that hold all that is still needed the one with the least room
// (sign 1) or the most (sign -1), else the one with most room.
func (s *rooms) spread(c *Cluster, r *Request, dst []GPU, sign int32) []GPU {
	room := s.count(c, r)
	for {
		need := int32(r.GPUs - len(dst))
		fit, most := -1, 0
		for n, k := range room {
			if k >= need {
				if fit < 0 || sign*k < sign*room[fit] {
					fit = n
				}
			} else if k > room[most] {
				most = n
			}
		}
		if fit >= 0 {
			return c.takeFullest(fit, int(need), r, dst)
		}
		dst = c.takeFullest(most, int(room[most]), r, dst)
		room[most] = 0
	}
}

// worstFit takes the node with most room; a larger gang takes the nodes in that order.
type worstFit struct{ rooms rooms }

func (*worstFit) Name() string { return "worst-fit" }

func (p *worstFit) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	return p.rooms.spread(c, r, dst, -1), true
}

// pack fills nodes that are already in use before it opens idle ones: the fullest started node that holds the
// gang, else the smallest idle node that does; a larger gang takes what the started nodes have, fullest first,
// then idle nodes, largest first.
type pack struct{ rooms rooms }

func (*pack) Name() string { return "pack" }

func (p *pack) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
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
	room := p.rooms.count(c, r)
	const idle = 1 << 20 // any idle node comes after every started one
	started := func(n int) bool { return c.nodeFree[n] < c.gpu0[n+1]-c.gpu0[n] }
	fit, score := -1, int32(0)
	for n, k := range room {
		if int(k) < r.GPUs {
			continue
		}
		if !started(n) {
			k += idle
		}
		if fit < 0 || k < score {
			fit, score = n, k
		}
	}
	if fit >= 0 {
		return c.takeFullest(fit, r.GPUs, r, dst), true
	}
	for len(dst) < r.GPUs {
		next, score := -1, int32(0)
		for n, k := range room {
			if k == 0 {
				continue
			}
			if !started(n) {
				k = 2*idle - k
			}
			if next < 0 || k < score {
				next, score = n, k
			}
		}
		dst = c.takeFullest(next, min(int(room[next]), r.GPUs-len(dst)), r, dst)
		room[next] = 0
	}
	return dst, true
}
