package cluster

import (
	"fmt"

	"clustergym/internal/nearest"
)

// Placement chooses the GPUs of a gang among those that are free. Place appends them to dst[:0] and reports whether
// the gang is placed. On a counter the list stays empty; for a job without GPUs it is the Slot of one node. Place does
// not allocate the GPUs. A placement may hold scratch space: use each one on one goroutine, preferably for clusters of
// one Spec.
//
// A rule places every gang that fits, and spreads one that no single node has room for, unless Constrained says
// otherwise.
type Placement interface {
	Name() string
	Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool)
}

// Constrained reports whether p may refuse a gang although enough GPUs are free for it (Cluster.Fits).
func Constrained(p Placement) bool {
	k, ok := p.(interface{ Constrained() bool })
	return ok && k.Constrained()
}

// rule is a placement that looks at nothing but what is free.
type rule struct {
	name  string
	slot  choice // of the node for a job without GPUs
	picky bool   // see Constrained
	gangs gangs
}

// gangs appends the GPUs of a gang that fits c, which is no counter, to dst, which is empty; none if it refuses the
// gang.
type gangs func(c *Cluster, r *Request, dst []GPU) []GPU

func (p *rule) Name() string { return p.name }

func (p *rule) Constrained() bool { return p.picky }

func (p *rule) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	switch {
	case !c.Fits(r):
		return dst, false
	case c.pool:
		return dst, true
	case r.GPUs == 0:
		return c.placeCPU(r, dst, p.slot), true
	}
	dst = p.gangs(c, r, dst)
	return dst, len(dst) == r.GPUs
}

// placements are the placements that NewPlacement makes: rules, and those without make, which are types of their own.
var placements = []struct {
	name  string
	slot  choice
	picky bool
	make  func() gangs
}{
	{name: "first-fit", slot: lowest, make: func() gangs { return firstFit }},
	{name: "best-fit", slot: fullest, make: func() gangs { return new(bestFit).place }},
	{name: "worst-fit", slot: emptiest, make: func() gangs { return new(worstFit).place }},
	{name: "pack", slot: fullest, make: func() gangs { return new(pack).place }},
	{name: "first-available", slot: lowest, make: func() gangs { return firstAvailable }},
	{name: "load-balance", slot: emptiest, make: func() gangs { return new(loadBalance).place }},
	{name: "closest-a", slot: lowest, make: func() gangs { return (&closest{variant: 'a'}).place }},
	{name: "closest-b", slot: lowest, make: func() gangs { return (&closest{variant: 'b'}).place }},
	{name: "closest-c", slot: lowest, make: func() gangs { return (&closest{variant: 'c'}).place }},
	{name: "consolidate-first", slot: lowest, picky: true, make: func() gangs { return new(consolidate).place }},
	{name: "consolidate-best", slot: fullest, picky: true, make: func() gangs { return (&consolidate{best: true}).place }},
	{name: "rack", slot: fullest, make: func() gangs { return new(rack).place }},
	{name: "tetris", slot: aligned, make: func() gangs { return new(tetris).place }},
	{name: "fgd"},
	{name: "random"},
	{name: "optimal", slot: fullest, make: func() gangs { return new(optimal).place }},
}

// PlacementNames returns the names of the rules that NewPlacement makes.
func PlacementNames() []string {
	names := make([]string, len(placements))
	for i := range placements {
		names[i] = placements[i].name
	}
	return names
}

// NewPlacement returns the rule called name. "random" starts with seed 0 and "fgd" without known requests: see
// Random.Reseed and FGD.SetClasses.
func NewPlacement(name string) (Placement, error) {
	switch name {
	case "fgd":
		return NewFGD(nil), nil
	case "random":
		return NewRandom(0), nil
	}
	for _, p := range placements {
		if p.name == name {
			return &rule{name, p.slot, p.picky, p.make()}, nil
		}
	}
	return nil, fmt.Errorf("placement %q is unknown, want %s", name, nearest.OneOf(name, PlacementNames()))
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

// takeFullest is takeFrom, except that shares go to the GPUs with the least left that suffices.
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

// firstFit takes the first node with room for the whole gang, lowest number first; if there is none, all that each
// node has, in order.
func firstFit(c *Cluster, r *Request, dst []GPU) []GPU {
	for n := range c.rackOf {
		if c.Room(n, r) >= r.GPUs {
			return c.takeFrom(n, r.GPUs, r, dst)
		}
	}
	for n := range c.rackOf {
		dst = c.takeFrom(n, min(c.Room(n, r), r.GPUs-len(dst)), r, dst)
	}
	return dst
}

// bestFit takes the node where the fewest GPUs are left over; if none holds the gang, the node with most room, and so
// on until the rest fits one node. Shares go to the fullest GPU that suffices.
type bestFit struct{ rooms rooms }

func (p *bestFit) place(c *Cluster, r *Request, dst []GPU) []GPU {
	if r.Milli < 1000 && r.GPUs == 1 {
		return append(dst, c.fullestShare(r))
	}
	p.rooms.count(c, r)
	return p.rooms.spread(c, r, dst, r.GPUs, 0, len(p.rooms), 1)
}

// fullestShare returns the GPU with the least left that suffices for one share, lowest number on ties.
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

// rooms is scratch space: how many members of a gang each node has room for; 0 after the node is used.
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

// spread appends need GPUs of the nodes [from, to), which must have room for them, node by node. Of the nodes that
// hold all that is still needed it takes the one with the least room (sign 1) or the most (sign -1); if there is none,
// the one with most room. A gang in chunks finds the same room wherever it finds any; each of its chunks takes the node
// with the fewest free GPUs (sign 1) or the most.
func (s rooms) spread(c *Cluster, r *Request, dst []GPU, need, from, to int, sign int32) []GPU {
	if r.Chunks() {
		for ; need > 0; need -= r.Each {
			best := -1
			for n := from; n < to; n++ {
				if s[n] > 0 && (best < 0 || sign*c.nodeFree[n] < sign*c.nodeFree[best]) {
					best = n
				}
			}
			dst = c.takeFullest(best, r.Each, r, dst)
			s[best] = 0
		}
		return dst
	}
	for {
		fit, most := -1, from
		for n := from; n < to; n++ {
			if k := s[n]; int(k) >= need {
				if fit < 0 || sign*k < sign*s[fit] {
					fit = n
				}
			} else if k > s[most] {
				most = n
			}
		}
		if fit >= 0 {
			return c.takeFullest(fit, need, r, dst)
		}
		dst = c.takeFullest(most, int(s[most]), r, dst)
		need -= int(s[most])
		s[most] = 0
	}
}

// first returns the lowest index whose room is at least need, -1 if there is none.
func first(room []int32, need int) int {
	for n, k := range room {
		if int(k) >= need {
			return n
		}
	}
	return -1
}

// tightest returns the index of the least room that is at least need, lowest on ties, -1 if there is none.
func tightest(room []int32, need int) int {
	best := -1
	for n, k := range room {
		if int(k) >= need && (best < 0 || k < room[best]) {
			best = n
		}
	}
	return best
}

// freest returns the index of most room, lowest on ties.
func freest(room []int32) int {
	best := 0
	for n, k := range room {
		if k > room[best] {
			best = n
		}
	}
	return best
}

// roomIdle returns how many members of the gang node could hold if nothing ran there.
func (c *Cluster) roomIdle(node int, r *Request) int {
	if !c.admits(node, r.Types, r.VC) {
		return 0
	}
	return r.whole(c.limit(node, int(c.gpu0[node+1]-c.gpu0[node]), c.nodeCPU[node], c.nodeMem[node], r))
}

// admits reports whether node is of one of types and may be used by virtual cluster vc.
func (c *Cluster) admits(node int, types uint64, vc int32) bool {
	if types != 0 && types>>c.nodeType[node]&1 == 0 {
		return false
	}
	return vc == 0 || int(vc) < len(c.vcs.domain) && c.Serves(node, vc)
}

// choice says which of the nodes with room a job without GPUs takes; ties go to the lowest number.
type choice uint8

const (
	lowest   choice = iota
	fullest         // fewest free cores
	emptiest        // most free cores
	aligned         // best alignment of demand and free capacity, see tetris
)

// placeCPU places a job without GPUs, which fits.
func (c *Cluster) placeCPU(r *Request, dst []GPU, which choice) []GPU {
	best, least := -1, 0.0
	for n := range c.rackOf {
		if c.Room(n, r) == 0 {
			continue
		}
		v := 0.0
		switch which {
		case lowest:
			return append(dst, Slot(n))
		case fullest:
			v = float64(c.freeCPU[n])
		case emptiest:
			v = -float64(c.freeCPU[n])
		case aligned:
			v = -c.alignment(n, r)
		}
		if best < 0 || v < least {
			best, least = n, v
		}
	}
	return append(dst, Slot(best))
}

// worstFit takes the node with most room; a larger gang takes nodes in decreasing order of room.
type worstFit struct{ rooms rooms }

func (p *worstFit) place(c *Cluster, r *Request, dst []GPU) []GPU {
	p.rooms.count(c, r)
	return p.rooms.spread(c, r, dst, r.GPUs, 0, len(p.rooms), -1)
}

// pack fills nodes in use before it opens idle ones: the fullest node in use that holds the gang, else the smallest
// idle node that does. A larger gang takes what the nodes in use have, fullest first, then idle nodes, largest first.
type pack struct{ rooms rooms }

func (p *pack) place(c *Cluster, r *Request, dst []GPU) []GPU {
	if r.Milli < 1000 && r.GPUs == 1 {
		return append(dst, c.fullestShare(r))
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
		return c.takeFullest(fit, r.GPUs, r, dst)
	}
	for len(dst) < r.GPUs {
		next, score := -1, int32(0)
		for n, k := range room {
			if k == 0 {
				continue
			}
			if r.Chunks() { // all have the same room
				k = c.nodeFree[n]
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
	return dst
}
