package cluster

import (
	"math/rand/v2"

	"clustergym/internal/rng"
)

// Random takes GPUs at random. If nodes limit neither cores nor memory, every set of usable GPUs is drawn with equal
// probability; otherwise it first draws how many GPUs of each node, then which; for a gang with Request.Each, which nodes. It is the baseline that any other rule
// should beat.
//
// The draw depends only on the seed, what is free and the request, so that a run that is repeated, resumed or planned
// ahead on a copy of the cluster draws the same.
type Random struct {
	seed  uint64
	pcg   rand.PCG
	rand  *rand.Rand
	rooms rooms
}

// NewRandom returns the random placement of seed.
func NewRandom(seed uint64) *Random {
	p := &Random{seed: seed}
	p.rand = rand.New(&p.pcg)
	return p
}

// Name implements Placement.
func (*Random) Name() string { return "random" }

// Reseed sets the seed.
func (p *Random) Reseed(seed uint64) { p.seed = seed }

// draw starts the random stream of one placement.
func (p *Random) draw(c *Cluster, r *Request) {
	h := rng.At(uint64(r.GPUs), uint64(r.Milli), r.Types, uint64(r.CPUMilli), uint64(r.MemBytes))
	if r.Each > 0 {
		h = rng.At(h, uint64(r.Each))
	}
	for _, f := range c.gpuFree {
		h = (h ^ uint64(f)) * 0x9e3779b97f4a7c15
	}
	if c.limits {
		for _, f := range c.freeCPU {
			h = (h ^ uint64(f)) * 0x9e3779b97f4a7c15
		}
	}
	rng.Seed(&p.pcg, rng.At(p.seed, h), "cluster/placement/random")
}

// Place implements Placement.
func (p *Random) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	p.draw(c, r)
	if r.GPUs == 0 {
		return p.placeCPU(c, r, dst), true
	}
	room := p.rooms.count(c, r)
	if r.Each > 0 {
		return p.placeChunks(c, r, dst), true
	}
	left := 0
	for _, k := range room {
		left += int(k)
	}
	// Selection sampling (Knuth, TAOCP 2, algorithm 3.4.2 S), first over the places of the cluster, then over each
	// node's GPUs.
	need := r.GPUs
	for n, k := range room {
		from := len(dst)
		took := 0
		for range k {
			if need > 0 && p.rand.IntN(left) < need {
				took++
				need--
			}
			left--
		}
		if took == 0 {
			continue
		}
		dst = p.some(c, n, from+took, r, dst)
		if need == 0 {
			break
		}
	}
	return dst, true
}

// some draws usable GPUs of node until dst has n.
func (p *Random) some(c *Cluster, node, n int, r *Request, dst []GPU) []GPU {
	usable := 0
	for _, f := range c.gpuFree[c.gpu0[node]:c.gpu0[node+1]] {
		if int(f) >= r.Milli {
			usable++
		}
	}
	for g := c.gpu0[node]; len(dst) < n; g++ {
		if int(c.gpuFree[g]) < r.Milli {
			continue
		}
		if p.rand.IntN(usable) < n-len(dst) {
			dst = append(dst, GPU(g))
		}
		usable--
	}
	return dst
}

// placeChunks draws the nodes of a gang that takes Each GPUs on each of them, and then its GPUs.
func (p *Random) placeChunks(c *Cluster, r *Request, dst []GPU) []GPU {
	left := 0
	for _, k := range p.rooms {
		if k > 0 {
			left++
		}
	}
	for n := 0; len(dst) < r.GPUs; n++ {
		if p.rooms[n] == 0 {
			continue
		}
		if p.rand.IntN(left) < (r.GPUs-len(dst))/r.Each {
			dst = p.some(c, n, len(dst)+r.Each, r, dst)
		}
		left--
	}
	return dst
}

// placeCPU draws one of the nodes that have room (reservoir sampling).
func (p *Random) placeCPU(c *Cluster, r *Request, dst []GPU) []GPU {
	node, seen := 0, 0
	for n := range c.rackOf {
		if c.Room(n, r) > 0 {
			if seen++; p.rand.IntN(seen) == 0 {
				node = n
			}
		}
	}
	return append(dst, Slot(node))
}
