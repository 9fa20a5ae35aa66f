package dally

import "math"

// search finds GPUs for gangs. It reuses hash orders until GPUs are taken or freed.
type search struct {
	c    *cluster
	hash hashMap
	seen [3][]int32
}

// machineOrder returns the hash order of the machines with free GPUs.
func (s *search) machineOrder() *order {
	o := &s.c.byMachine
	if o.stale {
		s.hash.clear(s.c.machines)
		o.most = 0
		for m, f := range s.c.free {
			if f != 0 {
				s.hash.put(int32(m), machineHash(m, s.c.perRack))
				o.most = max(o.most, s.c.inMachine(int32(m)))
			}
		}
		o.keys, o.stale = s.hash.keys(o.keys[:0]), false
	}
	return o
}

// slotOrder returns the hash order of the slots with free GPUs.
func (s *search) slotOrder() *order {
	o := &s.c.bySlot
	if o.stale {
		s.hash.clear(2 * s.c.machines)
		o.most = 0
		for m, f := range s.c.free {
			for k := range 2 {
				if f>>(perSlot*k)&0xf != 0 {
					slot := 2*m + k
					s.hash.put(int32(slot), slotHash(slot, s.c.perRack))
					o.most = max(o.most, s.c.inSlot(int32(slot)))
				}
			}
		}
		o.keys, o.stale = s.hash.keys(o.keys[:0]), false
	}
	return o
}

// slot appends n GPUs of the first slot in hash order that has as many free.
func (s *search) slot(dst []int32, n int) []int32 {
	if n > perSlot {
		return dst
	}
	o := s.slotOrder()
	if n > o.most {
		return dst
	}
	for _, k := range o.keys {
		if s.c.inSlot(k) >= n {
			m := int(k / 2)
			for i := range perSlot {
				if b := perSlot*int(k%2) + i; s.c.free[m]>>b&1 != 0 && len(dst) < n {
					dst = append(dst, int32(m*perMachine+b))
				}
			}
			return dst
		}
	}
	return dst
}

// machine appends n GPUs of the first machine in hash order that has as many free.
func (s *search) machine(dst []int32, n int) []int32 {
	if n > perMachine {
		return dst
	}
	o := s.machineOrder()
	if n > o.most {
		return dst
	}
	for _, m := range o.keys {
		if s.c.inMachine(m) >= n {
			return s.c.takeFrom(dst, n, int(m), int(m)+1)
		}
	}
	return dst
}

// rack appends n GPUs of the first rack that has as many free.
func (s *search) rack(dst []int32, n int) []int32 {
	for r, free := range s.c.inRack {
		if free >= n {
			return s.c.takeFrom(dst, n, r*s.c.perRack, (r+1)*s.c.perRack)
		}
	}
	return dst
}

// anywhere appends the first n free GPUs.
func (s *search) anywhere(dst []int32, n int) []int32 {
	return s.c.takeFrom(dst, n, 0, s.c.machines)
}

// tiresias is Tiresias' placement: one machine; a rack if more than a machine's GPUs are about to be free or the
// model may be spread; anything if the gang is larger than a rack or the model may be spread.
func (m *machine) tiresias(i int32) []int32 {
	j, n := &m.jobs[i], int(m.jobs[i].n)
	if m.found = m.find.machine(m.found[:0], n); len(m.found) > 0 {
		return m.found
	}
	spreads := m.spreads[i]
	if m.cl.count+1 > perMachine || spreads {
		if m.found = m.find.rack(m.found, n); len(m.found) > 0 {
			return m.found
		}
		if int(j.n) > perMachine*m.cl.perRack || spreads {
			m.found = m.find.anywhere(m.found, n)
		}
	}
	return m.found
}

// spreadable are the models that Tiresias does not consolidate.
var spreadable = map[string]bool{"ResNet50": true, "ResNet18": true, "BERT": true}

// dally is delay scheduling: one slot or machine is always taken; a rack or the network only after the job has waited
// for as long as its timers say, or if nothing smaller can hold it.
func (m *machine) dally(i int32, now float64) []int32 {
	j, n := &m.jobs[i], int(m.jobs[i].n)
	waited := now - j.last
	h := m.history(n)
	m.found = m.find.slot(m.found[:0], n)
	if len(m.found) == 0 {
		m.found = m.find.machine(m.found, n)
	}
	if len(m.found) > 0 {
		h.machine.note(now, waited/m.cfg.Lease, m.memory)
		return m.found
	}
	rackWait, nwWait := m.cfg.RackWait, m.cfg.NetworkWait
	if rackWait == Auto && nwWait == Auto {
		hist := m.cfg.History
		rackWait = min(math.Ceil(0.8*hist), max(6, math.Ceil(h.machine.stat())))
		nwWait = min(hist, max(12, math.Ceil(h.rack.stat())))
	}
	if waited >= m.cfg.Lease*rackWait || n > perMachine {
		if m.found = m.find.rack(m.found, n); len(m.found) > 0 {
			h.rack.note(now, waited/m.cfg.Lease, m.memory)
			return m.found
		}
	}
	if waited >= m.cfg.Lease*nwWait || n > perMachine*m.cl.perRack {
		m.found = m.find.anywhere(m.found, n)
	}
	return m.found
}

// histories are the delays after which gangs of one size took a machine, and a rack.
type histories struct{ machine, rack delays }

func (m *machine) history(n int) *histories {
	for n >= len(m.histories) {
		m.histories = append(m.histories, nil)
	}
	if m.histories[n] == nil {
		m.histories[n] = &histories{}
	}
	return m.histories[n]
}

// delays holds recent delays, in leases.
type delays struct {
	at, delay []float64
	known     bool
	value     float64 // result of stat, if known
}

// note adds a delay of a lease or more and forgets delays older than memory seconds. Like the authors' program, its
// loop skips the delay after each one that it forgets.
func (d *delays) note(now, delay, memory float64) {
	if delay < 1 {
		return
	}
	d.at, d.delay = append(d.at, now), append(d.delay, delay)
	oldest := now - memory
	for i := 0; i < len(d.at); i++ {
		if d.at[i] < oldest {
			d.at, d.delay = append(d.at[:i], d.at[i+1:]...), append(d.delay[:i], d.delay[i+1:]...)
		}
	}
	d.known = false
}

// stat returns the mean plus two standard deviations, 1 if nothing is noted.
func (d *delays) stat() float64 {
	if d.known {
		return d.value
	}
	sum := 0.0
	for _, v := range d.delay {
		sum += v
	}
	d.known, d.value = true, 1
	if sum != 0 {
		n := float64(len(d.delay))
		mean, squares := sum/n, 0.0
		for _, v := range d.delay {
			squares += float64((v - mean) * (v - mean))
		}
		d.value = mean + float64(2*math.Sqrt(squares/n))
	}
	return d.value
}
