package dally

import "cmp"

// gandiva is the state of the authors' program's Gandiva.
type gandiva struct {
	random javaRandom
	ranked []int32 // live jobs, in the order of the last ranking
	free   []int32 // in the order of the shuffle
	keys   []int32 // machines in hash order
	// affinity maps a number of GPUs to a machine's number within its rack; −1 = none, for good.
	affinity map[int32]int32
	taken    map[int32]bool // machine numbers that are some gang size's affinity
	put      []bool         // by machine: it is in the map
	hash     []uint32       // by machine
}

// before orders candidates: started last first, never started last; then the fewest GPUs in nxt, then the earliest
// last assignment, then the lowest id.
func (m *machine) before(a, b int32) bool {
	x, y := &m.jobs[a], &m.jobs[b]
	switch {
	case x.first != y.first:
		return x.first > y.first
	case len(x.nxt) != len(y.nxt):
		return len(x.nxt) < len(y.nxt)
	case x.last != y.last:
		return x.last < y.last
	}
	return cmp.Or(cmp.Compare(m.load[a].ID, m.load[b].ID), int(a-b)) < 0
}

// gandivaPass asks all waiting jobs and the running ones in a bad place.
func (m *machine) gandivaPass() {
	v := &m.gandiva
	if v.affinity == nil {
		v.affinity, v.taken = map[int32]int32{}, map[int32]bool{}
		v.put = make([]bool, m.cl.machines)
		for k := range m.cl.machines {
			v.hash = append(v.hash, machineHash(k, m.cl.perRack))
		}
	}
	m.rankAll()
	v.free = m.find.anywhere(v.free[:0], m.cl.count)
	for _, i := range v.ranked {
		if len(v.free) == 0 {
			return
		}
		j := &m.jobs[i]
		if !j.waiting && j.level <= 3 || int(j.n) > len(v.free) {
			continue
		}
		if j.n <= perMachine { // only these need the map
			m.mapFree()
		}
		v.random.shuffle(v.free)
		gpus := m.gandivaPlace(i)
		if len(gpus) == 0 {
			continue
		}
		m.grant(i, gpus)
		if !j.waiting {
			j.swap = true
		}
		kept := v.free[:0]
		for _, g := range v.free {
			if m.cl.owner[g] < 0 {
				kept = append(kept, g)
			}
		}
		v.free = kept
	}
}

// rankAll sorts the live jobs. Few change places from one pass to the next.
func (m *machine) rankAll() {
	v := &m.gandiva
	kept := v.ranked[:0]
	for _, i := range v.ranked {
		if m.jobs[i].seen {
			kept = append(kept, i)
		}
	}
	// jobs that have arrived since the last pass are at the end
	for k := len(m.live) - 1; k >= 0 && len(kept) < m.alive; k-- {
		if i := m.live[k]; i >= 0 && !m.jobs[i].ranked {
			m.jobs[i].ranked = true
			kept = append(kept, i)
		}
	}
	for k := 1; k < len(kept); k++ {
		i := kept[k]
		at := k
		for at > 0 && m.before(i, kept[at-1]) {
			kept[at] = kept[at-1]
			at--
		}
		kept[at] = i
	}
	v.ranked = kept
}

// mapFree computes the hash order of the machines with free GPUs, inserted in the order of the free list.
func (m *machine) mapFree() {
	v := &m.gandiva
	m.find.hash.clear(m.cl.machines)
	for _, g := range v.free {
		if k := g / perMachine; !v.put[k] {
			v.put[k] = true
			m.find.hash.put(k, v.hash[k])
		}
	}
	v.keys = m.find.hash.keys(v.keys[:0])
	for _, k := range v.keys {
		v.put[k] = false
	}
}

// gandivaPlace is Gandiva's placement. GPUs are taken in the order of the shuffle.
func (m *machine) gandivaPlace(i int32) []int32 {
	v, j := &m.gandiva, &m.jobs[i]
	n := int(j.n)
	switch {
	case !j.waiting && n > perMachine*m.cl.perRack:
		return nil
	case n > perMachine && j.waiting: // anywhere
		return m.among(n, 0, m.cl.machines)
	case n > perMachine:
		if j.level < 5 {
			return nil
		}
		for r, free := range m.cl.inRack {
			if free >= n {
				return m.among(n, r*m.cl.perRack, (r+1)*m.cl.perRack)
			}
		}
		return nil
	case m.cl.inMachine(v.keys[len(v.keys)-1]) < n: // the authors' program tests a loop variable after the loop
		return nil
	}
	best := int32(-1)
	own, has := v.affinity[j.n]
	for _, k := range v.keys {
		free := m.cl.inMachine(k)
		if free < n || best >= 0 && free <= m.cl.inMachine(best) {
			continue
		}
		number := k % int32(m.cl.perRack)
		if !j.waiting || has && number == own || !has && !v.taken[number] {
			best = k
		}
	}
	if j.waiting && !has {
		number := int32(-1)
		if best >= 0 {
			number = best % int32(m.cl.perRack)
		}
		v.affinity[j.n], v.taken[number] = number, true
	}
	if best < 0 {
		return m.among(n, 0, m.cl.machines)
	}
	return m.among(n, int(best), int(best)+1)
}

// among returns the first n GPUs of the shuffled list on machines from to to−1.
func (m *machine) among(n, from, to int) []int32 {
	m.found = m.found[:0]
	for _, g := range m.gandiva.free {
		if k := int(g / perMachine); k >= from && k < to {
			if m.found = append(m.found, g); len(m.found) == n {
				break
			}
		}
	}
	return m.found
}

// swap moves job i, at the end of a block, to the GPUs that it got while it ran.
func (m *machine) swap(i int32) {
	j := &m.jobs[i]
	j.swap = false
	for _, g := range j.cur {
		m.cl.give(g)
	}
	m.note(event{at: m.now + float64(len(j.cur)), class: pass})
	m.startBlock(i)
	m.tell(Migrate, i, j.cur)
}

// remembered returns gandiva's factor: the first one found for a tier and a number of GPUs is kept for every later
// shape. The job's level is updated only when a factor is first found.
func (m *machine) remembered(i int32, n, racks, machines, slots int) float64 {
	j := &m.jobs[i]
	tier := 0
	switch {
	case racks > 1:
		tier = 3
	case machines > 1:
		tier = 2
	case slots > 1:
		tier = 1
	}
	for _, s := range j.factors[tier] {
		if s.n == n {
			return s.f
		}
	}
	s := shapeOf(n, racks, machines, slots)
	f := m.lookUp(i, s)
	j.factors[tier] = append(j.factors[tier], seenAt{n, f})
	switch {
	case racks > 1:
		j.level = 5
	case machines > 1:
		j.level = 4
	case s[0] < 0:
		j.level = 3
	default:
		j.level = 0
	}
	return f
}
