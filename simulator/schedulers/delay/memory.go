package delay

import (
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
)

// delayMemory is what a Delay remembers from one point to the next.
type delayMemory struct {
	last   []since
	holds  []heldUntil
	delays []sizeDelays
	starts place.Delayed
}

// Mark notes what the policy remembers, between two points.
func (d *Delay) Mark() {
	m := &d.marked
	m.last, m.holds = append(m.last[:0], d.last...), append(m.holds[:0], d.holds...)
	m.delays = copyDelays(m.delays, d.delays)
	d.plan.Mark(&m.starts)
}

// Back returns to the last Mark, whatever has been offered, answered and decided since. What Note has noted before
// stays.
func (d *Delay) Back() {
	m := &d.marked
	d.last, d.holds = append(d.last[:0], m.last...), append(d.holds[:0], m.holds...)
	d.delays = copyDelays(d.delays, m.delays)
	d.plan.Back(&m.starts)
	d.opened, d.pass = false, false
}

// Note notes which jobs wait since when by the events of a point, as Open does, without opening it.
func (d *Delay) Note(v *sim.View, p *sim.Point) {
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case sim.Submit, sim.Preempt, sim.Fail:
			if v.State(e.Job) == sim.Waiting {
				d.waits(v, e.Job, int64(e.At))
			}
		}
	}
}

// Took notes that j has been started on gpus at a time by somebody else: the tuner of the timers counts its delay.
func (d *Delay) Took(v *sim.View, j sim.Job, at time.Duration, gpus []cluster.GPU) {
	if d.rule != byTimers || int(j) >= len(d.last) || d.last[j].pos != v.Pos(j) {
		return // nobody knows since when it has waited
	}
	d.delayed(v.Asked(j), d.tier(gpus), int64(at), float64(int64(at)-d.last[j].at)/float64(d.cfg.Lease))
}

// delayed counts the delay, in leases, after which a gang of n took a tier, if it is a lease or more.
func (d *Delay) delayed(n int, tier place.Tier, at int64, leases float64) {
	if leases < 1 {
		return
	}
	switch h := d.history(n); tier {
	case place.InNode:
		h.node.add(delayTaken{at, leases})
	case place.InRack:
		h.rack.add(delayTaken{at, leases})
	}
}

// copyDelays copies from to dst, whose lists it uses again.
func copyDelays(dst, from []sizeDelays) []sizeDelays {
	for len(dst) < len(from) {
		dst = append(dst, sizeDelays{})
	}
	dst = dst[:len(from)]
	for i := range from {
		dst[i].node.copyFrom(&from[i].node)
		dst[i].rack.copyFrom(&from[i].rack)
	}
	return dst
}

func (d *delays) copyFrom(o *delays) {
	d.list, d.usual, d.known = append(d.list[:0], o.list...), o.usual, o.known
}
