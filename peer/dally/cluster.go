package dally

import "math/bits"

// cluster records which job has which GPU. GPUs are numbered in the order rack, machine, slot, GPU; "in cluster
// order" means in the order of these numbers. A GPU is free if it has no lease.
type cluster struct {
	racks, perRack int // machines in a rack
	machines       int

	owner  []int32   // by GPU; −1 = free
	expire []float64 // by GPU: when its lease ends
	free   []uint8   // by machine: its free GPUs, lowest bit first
	inRack []int     // free GPUs by rack
	count  int       // free GPUs

	// Derived from free; recomputed when a search needs it.
	byMachine, bySlot order
}

// order is the hash order of the machines, or slots, that have free GPUs.
type order struct {
	keys  []int32
	most  int // an upper bound on the free GPUs of any one
	stale bool
}

func newCluster(racks, perRack int) *cluster {
	c := &cluster{racks: racks, perRack: perRack, machines: racks * perRack}
	n := c.machines * perMachine
	c.owner, c.expire = make([]int32, n), make([]float64, n)
	c.free, c.inRack = make([]uint8, c.machines), make([]int, racks)
	for g := range c.owner {
		c.owner[g] = -1
	}
	for m := range c.free {
		c.free[m] = 0xff
	}
	for r := range c.inRack {
		c.inRack[r] = perRack * perMachine
	}
	c.count = n
	c.byMachine.stale, c.bySlot.stale = true, true
	return c
}

// take assigns free GPU g to owner.
func (c *cluster) take(g, owner int32, expire float64) {
	m := g / perMachine
	c.owner[g], c.expire[g] = owner, expire
	c.free[m] &^= 1 << (g % perMachine)
	c.inRack[int(m)/c.perRack]--
	c.count--
	c.byMachine.stale, c.bySlot.stale = true, true
}

// give frees g.
func (c *cluster) give(g int32) {
	m := g / perMachine
	c.owner[g] = -1
	c.free[m] |= 1 << (g % perMachine)
	c.inRack[int(m)/c.perRack]++
	c.count++
	c.byMachine.stale, c.bySlot.stale = true, true
}

// inMachine and inSlot return the number of free GPUs.
func (c *cluster) inMachine(m int32) int { return bits.OnesCount8(c.free[m]) }

func (c *cluster) inSlot(s int32) int {
	return bits.OnesCount8(c.free[s/2] >> (perSlot * (s & 1)) & 0xf)
}

// takeFrom appends the first n free GPUs of machines from to to−1, in cluster order.
func (c *cluster) takeFrom(dst []int32, n, from, to int) []int32 {
	for m := from; m < to && n > 0; m++ {
		for f := c.free[m]; f != 0 && n > 0; f &= f - 1 {
			dst = append(dst, int32(m*perMachine+bits.TrailingZeros8(f)))
			n--
		}
	}
	return dst
}

// place counts the racks, machines and slots of a set.
func (c *cluster) place(gpus []int32, seen *[3][]int32) (racks, machines, slots int) {
	for i := range seen {
		seen[i] = seen[i][:0]
	}
	for _, g := range gpus {
		seen[0] = note(seen[0], g/perMachine/int32(c.perRack))
		seen[1] = note(seen[1], g/perMachine)
		seen[2] = note(seen[2], g/perSlot)
	}
	return len(seen[0]), len(seen[1]), len(seen[2])
}

// note adds x to a small set. Gangs occupy runs of GPUs, so the last element is checked first.
func note(set []int32, x int32) []int32 {
	for i := len(set) - 1; i >= 0; i-- {
		if set[i] == x {
			return set
		}
	}
	return append(set, x)
}

// levelOf returns the level of a gang of n on the given numbers of racks, machines and slots: an index of Job.Grants.
func levelOf(n, racks, machines, slots int) int {
	switch {
	case n == 1:
		return 0
	case racks > 1:
		return 4
	case machines > 1:
		return 3
	case slots > 1:
		return 2
	}
	return 1
}
