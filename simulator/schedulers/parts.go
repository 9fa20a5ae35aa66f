package schedulers

import (
	"slices"
	"time"

	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// divided plays a policy on a cluster whose nodes are divided among virtual clusters. Each one that owns nodes is a
// part with a policy of its own, and those that share the other nodes are one more. A policy sees its part as a cluster
// of its own: its nodes, its jobs, and only the points at which something happens to them or that it has asked for. So
// nothing that happens in one part changes anything in another. (Only with sim.Config.Serial, where an instant can have
// several points, a policy that has asked for a time is called at the first of them, whosever it is.)
//
// On a cluster where no virtual cluster owns nodes it does nothing.
type divided struct {
	Policy // decides alone on a cluster that is not divided
	cfg    Config
	make   func(cfg Config) (Policy, error)
	of     *cluster.Cluster // the cluster that parts divide
	parts  []*part          // none if it is not divided
	partOf []int32          // by virtual cluster; [0] is for the nodes without an owner
	at     []listed         // by job
	open   bool             // a point is being decided
	turn   int              // the part that decides
	last   sim.Job          // the job of the latest decision at this point, −1 = none
	known  uint64           // View.Decisions after the latest decision
	others bool             // other code has decided too since the last point began
	err    error            // found by Reset
	kept   kept             // of the policies
	turns  turns            // of policies that stop jobs
	stops  bool             // the policy is one
}

// part is a part of the cluster, its jobs and its policy.
type part struct {
	policy           Policy
	cluster          *cluster.Cluster
	view             sim.View
	waiting, running []sim.Job
	point            sim.Point
	gpus             []cluster.GPU // of the events of point that are older
	asked            bool          // the policy decides at this point
	fresh            bool          // the cluster is as it is now
	until            int64         // when the policy wants to be asked, 0 = when something happens
}

// listed says in which list a job is: that of the waiting or the running ones of a part.
type listed struct {
	pos   int // of the job; −1 = in none
	part  int32
	state sim.State
	index int32
}

// Reseed implements Policy. The policies of all parts have the same seed.
func (d *divided) Reseed(seed uint64) {
	d.cfg.Seed = seed
	d.Policy.Reseed(seed)
	for _, p := range d.parts {
		p.policy.Reseed(seed)
	}
}

// Keep implements sched.Keeper for policies that are one; others stop what they like.
func (d *divided) Keep(first int, least time.Duration) {
	d.kept = kept{first, least}
	d.spare(d.Policy)
	for _, p := range d.parts {
		d.spare(p.policy)
	}
}

func (d *divided) spare(p Policy) {
	if s, ok := p.(*Scheduler); ok {
		s.kept = d.kept
	}
}

// Reset implements sim.Scheduler.
func (d *divided) Reset(v *sim.View) {
	if c := v.Cluster(); d.of != c {
		d.of, d.err = c, d.build(v)
	}
	d.turns.reset()
	if d.err != nil {
		return // Decide reports it
	}
	if len(d.parts) == 0 {
		d.Policy.Reset(v)
		return
	}
	d.open, d.others, d.known = false, false, v.Decisions()
	d.fill(v)
	for _, p := range d.parts {
		p.cluster.CopyFrom(d.of)
		p.policy.Reset(&p.view)
		p.asked, p.fresh, p.until = len(p.waiting)+len(p.running) > 0, true, 0
		p.point.Events, p.gpus = p.point.Events[:0], p.gpus[:0]
	}
}

// build makes the parts of v's cluster.
func (d *divided) build(v *sim.View) error {
	d.parts, d.partOf = nil, d.partOf[:0]
	vcs := v.Cluster().Spec().VCs
	if !slices.ContainsFunc(vcs, func(vc cluster.VCSpec) bool { return vc.Nodes > 0 }) {
		return nil
	}
	shared := int32(-1)
	for i := range len(vcs) + 1 {
		owner := int32(i)
		if i > 0 && vcs[i-1].Nodes == 0 {
			d.partOf = append(d.partOf, shared)
			continue
		}
		if i == 0 && !slices.ContainsFunc(vcs, func(vc cluster.VCSpec) bool { return vc.Nodes == 0 }) {
			d.partOf = append(d.partOf, -1)
			continue
		}
		policy, err := d.make(d.cfg)
		if err != nil {
			return err
		}
		policy.Reseed(d.cfg.Seed)
		d.spare(policy)
		p := &part{policy: policy, cluster: v.Cluster().Part(owner)}
		p.view = v.Within(p.cluster, &p.waiting, &p.running)
		n := int32(len(d.parts))
		if i == 0 {
			shared = n
		}
		d.parts, d.partOf = append(d.parts, p), append(d.partOf, n)
	}
	return nil
}

// fill lists all jobs anew.
func (d *divided) fill(v *sim.View) {
	d.at, d.last = d.at[:0], -1
	for _, p := range d.parts {
		p.waiting, p.running = p.waiting[:0], p.running[:0]
	}
	for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			d.list(v, j)
		}
	}
}

// list moves j to the list where it belongs now.
func (d *divided) list(v *sim.View, j sim.Job) *part {
	at, state := grow.Or(&d.at, j, listed{pos: -1}), v.State(j)
	if at.pos == v.Pos(j) && at.state == state {
		return d.parts[at.part]
	}
	if at.pos >= 0 {
		l := d.parts[at.part].of(at.state)
		end := len(*l) - 1
		(*l)[at.index] = (*l)[end]
		d.at[(*l)[at.index]].index = at.index
		*l = (*l)[:end]
	}
	*at = listed{pos: -1, part: d.partOf[v.Request(j).VC], state: state}
	p := d.parts[at.part]
	if state == sim.Waiting || state == sim.Running {
		l := p.of(state)
		at.pos, at.index = v.Pos(j), int32(len(*l))
		*l = append(*l, j)
	}
	p.fresh = false
	return p
}

func (p *part) of(state sim.State) *[]sim.Job {
	if state == sim.Running {
		return &p.running
	}
	return &p.waiting
}

// Decide implements sim.Scheduler. The parts decide one after the other.
func (d *divided) Decide(v *sim.View, p *sim.Point, dec *sim.Decision) error {
	if err := d.decide(v, p, dec); err != nil || !d.stops {
		return err
	}
	return d.turns.see(v, &d.cfg, dec)
}

func (d *divided) decide(v *sim.View, p *sim.Point, dec *sim.Decision) error {
	if d.err != nil {
		return d.err
	}
	if len(d.parts) == 0 {
		return d.Policy.Decide(v, p, dec)
	}
	foreign := d.foreign(v)
	switch {
	case !d.open:
		d.open, d.turn, d.last = true, 0, -1
		d.observe(v, p, foreign)
	case foreign:
		d.others = true
		d.refresh(v)
	case d.last >= 0:
		d.list(v, d.last).fresh = false
	}
	for ; d.turn < len(d.parts); d.turn++ {
		k := d.parts[d.turn]
		if !k.asked {
			continue
		}
		if !k.fresh {
			k.cluster.CopyFrom(v.Cluster())
			k.fresh = true
		}
		if err := k.policy.Decide(&k.view, &k.point, dec); err != nil {
			return err
		}
		if dec.Op != sim.Wait {
			d.last = dec.Job
			return nil
		}
		k.asked, k.until = false, int64(dec.Until)
		k.point.Events, k.gpus = k.point.Events[:0], k.gpus[:0]
		dec.Until = 0
	}
	d.open = false
	for _, k := range d.parts {
		if k.until > 0 && (dec.Until == 0 || k.until < int64(dec.Until)) {
			dec.Until = time.Duration(k.until)
		}
	}
	return nil
}

// foreign reports whether other code has decided since the last decision of d.
func (d *divided) foreign(v *sim.View) bool {
	if d.open && d.last >= 0 {
		d.known++ // the decision returned last has been applied
	}
	yes := v.Decisions() != d.known
	d.known = v.Decisions()
	return yes
}

// refresh lists all jobs anew, after other code has decided, and asks all parts.
func (d *divided) refresh(v *sim.View) {
	d.fill(v)
	for _, k := range d.parts {
		k.asked, k.fresh = true, false
		if s, ok := k.policy.(*Scheduler); ok {
			s.pass.disturbed() // one copy of the cluster counts as one change, which could be taken for the policy's own
		}
	}
}

// decided reports whether events of this kind are decisions of the last point.
func decided(k sim.EventKind) bool {
	return k == sim.Start || k == sim.Preempt || k == sim.Migrate || k == sim.Resize || k == sim.Drop
}

// observe gives each part its events, and asks those to which something happens now or that wanted to be asked by now.
// A part that is not asked gets to know later of what was decided before. foreign says whether other code has decided.
func (d *divided) observe(v *sim.View, p *sim.Point, foreign bool) {
	for i := range p.Events {
		e := p.Events[i]
		var n int32
		switch e.Kind {
		case sim.Timer:
			continue
		case sim.NodeFail, sim.NodeRecover:
			if n = d.partOf[d.of.VCOf(int(e.Node))]; n < 0 {
				continue // no job may use the node
			}
			d.parts[n].fresh = false
		default:
			n = d.partOf[v.Request(e.Job).VC]
		}
		k := d.parts[n]
		if decided(e.Kind) {
			from := len(k.gpus)
			k.gpus = append(k.gpus, e.GPUs...)
			e.GPUs = k.gpus[from:]
		} else {
			k.asked = true
			if e.Job >= 0 {
				d.list(v, e.Job).fresh = false
			}
		}
		k.point.Events = append(k.point.Events, e)
	}
	for i := range p.Events { // by other code; after what happens, so that the lists have the order of the simulator's
		if e := &p.Events[i]; decided(e.Kind) {
			d.list(v, e.Job).fresh = false
		}
	}
	// A policy must see the decisions of other code at once, whether made at the last point or at this one: the number of
	// a dropped job can be reused later.
	if foreign || d.others {
		d.refresh(v)
	}
	d.others = foreign
	for _, k := range d.parts {
		k.point.Now = p.Now
		if k.until > 0 && k.until <= int64(p.Now) {
			k.asked = true
			k.point.Events = append(k.point.Events, sim.Event{At: p.Now, Kind: sim.Timer, Job: -1})
		}
	}
}
