package schedulers

import (
	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// planned is what conservative back-filling, and EASY where virtual clusters share nodes, need where counting GPUs does
// not say whether a job fits: types, cores, memory, shares, quotas, placements that refuse gangs, and virtual clusters
// that share nodes.
//
// A reservation is a set of GPUs for a time. In rank order over all virtual clusters, each job starts if it has a place
// now that no reservation made before takes away while it is expected to run. Otherwise it gets a reservation at the
// earliest time at which it has such a place; under EASY only the first in line of each virtual cluster does, and no
// job behind it is planned. So no job delays one that ranks before it and has a reservation, whatever the virtual
// clusters of both.
//
// A job keeps its reservation from one pass to the next as long as there is no earlier time for it and no job that
// ranks before it needs the GPUs. So with estimates that are right, no job starts later than first planned.
type planned struct {
	times place.Timeline
	kept  []reservation // by job
	// right says that since the last pass everything has happened as expected, so that no job has an earlier time now.
	right bool

	run      int32 // of the runs since the policy was made: reservations of earlier ones are void
	kinds    map[cluster.Request]int32
	kindOf   []jobKind  // by job
	kind     []planKind // by kind
	waiting  []int32    // kinds with waiting jobs
	next     []int32    // by line: the next of its jobs
	blocked  []bool     // by line, under EASY: its first job has a reservation
	low      queue.Bounds
	looked   int // place in waiting of the kind that rule looks at next
	occupied int // jobs of kinds that would fit now and have not been looked at in this pass
}

// reservation is the time and the place of a job that waits.
type reservation struct {
	run  int32
	pos  int
	at   int64
	gpus []cluster.GPU
}

type jobKind struct {
	run  int32
	pos  int
	kind int32
}

// planKind is what a pass knows of all jobs with the same request.
type planKind struct {
	req   cluster.Request
	jobs  int     // that wait and have not been looked at in this pass
	due   int     // of these, jobs whose time has come on GPUs that the placement may refuse by now
	fits  bool    // there was room now, as far as the last look shows
	least int64   // how long the shortest of them lasts, or one that has been looked at
	one   sim.Job // one of them
}

func (p *planned) reset() {
	p.run++
	p.right = false
}

// counted reports whether counting GPUs says which jobs fit when.
func (b *conservative) counted(v *sim.View) bool {
	return !b.heads && b.sole >= 0 && (v.Cluster().Pool() || !b.s.picky && b.s.odd == 0)
}

// number returns the kind of j.
func (p *planned) number(v *sim.View, j sim.Job) int32 {
	k := grow.At(&p.kindOf, j)
	if k.run != p.run || k.pos != v.Pos(j) {
		r := v.Request(j)
		n, ok := p.kinds[*r]
		if !ok {
			n = int32(len(p.kind))
			p.kinds[*r] = n
			p.kind = append(p.kind, planKind{req: *r})
		}
		*k = jobKind{p.run, v.Pos(j), n}
	}
	return k.kind
}

// takeStock counts the waiting jobs by kind. It reports whether any of them might fit now.
func (b *conservative) takeStock(v *sim.View) bool {
	p := &b.plan
	if p.kinds == nil || len(p.kind) > 64+2*len(v.Waiting()) { // most are kinds that no job waits with
		p.run++
		p.kinds, p.kind = map[cluster.Request]int32{}, p.kind[:0]
		for i := range p.kept { // are still valid
			if p.kept[i].run == p.run-1 {
				p.kept[i].run++
			}
		}
	}
	for _, k := range p.waiting {
		if int(k) < len(p.kind) {
			p.kind[k].jobs, p.kind[k].due = 0, 0
		}
	}
	p.waiting = p.waiting[:0]
	for _, j := range v.Waiting() {
		if !b.tree.Has(j, v.Pos(j)) {
			continue // stopped by other code at this point
		}
		n := p.number(v, j)
		k := &p.kind[n]
		if k.jobs == 0 {
			p.waiting = append(p.waiting, n)
			k.least, k.one = queue.Never, j
		}
		k.jobs++
		if b.claims(v, j) {
			k.due++
		}
		k.least = min(k.least, b.tree.Nodes[j].Time)
	}
	p.occupied, p.looked = 0, 0
	for _, n := range p.waiting {
		k := &p.kind[n]
		if k.fits = v.Cluster().Fits(&k.req); k.fits {
			p.occupied += k.jobs
		}
	}
	return p.occupied > 0
}

// planAll plans all jobs as far as that matters to what starts now, and notes which do.
func (b *conservative) planAll(v *sim.View) {
	p := &b.plan
	if !b.takeStock(v) {
		return
	}
	now := int64(v.Now())
	c := v.Cluster()
	b.ahead.CopyFrom(c)
	p.low.Begin(b.s.picky)
	p.times.Begin(c, now)
	b.list = b.ends.List(b.list[:0])
	for _, j := range b.list {
		p.times.Ends(v.Request(j), v.GPUs(j), b.ends.Of(j))
	}
	p.next, p.blocked = p.next[:0], p.blocked[:0]
	for i := range b.lines {
		b.sort(&b.lines[i])
		p.next = append(p.next, b.nextBehind(&b.lines[i], queue.Beginning, queue.Never, queue.Never))
		p.blocked = append(p.blocked, false)
	}
	for p.occupied > 0 {
		line := -1
		for i, j := range p.next {
			if j != queue.None && (line < 0 || b.rankOf(j).Before(b.rankOf(p.next[line]))) {
				line = i
			}
		}
		if line < 0 {
			break
		}
		j := sim.Job(p.next[line])
		p.next[line] = b.nextBehind(&b.lines[line], b.rankOf(int32(j)), queue.Never, queue.Never)
		if b.waits(v, j) && b.planOne(v, j, line, now) {
			b.rule(v, now)
		}
	}
	if p.occupied == 0 && !p.right {
		for _, n := range p.next {
			if n != queue.None {
				return // jobs that have not been looked at may have an earlier time
			}
		}
	}
	p.right = true
}

// rule looks at one kind of jobs after a reservation has been made. If not even the shortest of them fits now, no job
// with the same request does, and the pass need not look at them. Kinds with jobs that have a claim are left out: these
// jobs may start where the placement would no longer put them.
func (b *conservative) rule(v *sim.View, now int64) {
	p := &b.plan
	for range p.waiting {
		p.looked = (p.looked + 1) % len(p.waiting)
		k := &p.kind[p.waiting[p.looked]]
		if !k.fits || k.jobs == 0 || k.due > 0 {
			continue
		}
		if _, ok := p.times.Earliest(b.s.place, v, k.one, k.least, now, now+1); ok {
			return
		}
		p.low.Add(&k.req, k.least, now+1)
		for _, n := range p.waiting {
			if o := &p.kind[n]; o.fits && o.due == 0 && p.low.Of(&o.req, o.least) > now {
				o.fits = false
				p.occupied -= o.jobs
			}
		}
		return
	}
}

// planOne starts j, or reserves for it. It reports whether it has reserved.
func (b *conservative) planOne(v *sim.View, j sim.Job, line int, now int64) (reserved bool) {
	p := &b.plan
	k := &p.kind[p.number(v, j)]
	r, lasts := v.Request(j), b.tree.Nodes[j].Time
	k.jobs--
	if b.claims(v, j) {
		k.due--
	}
	if k.fits {
		p.occupied--
		if b.startsNow(v, j, r, lasts, now) {
			return false
		}
	}
	if p.blocked[line] {
		return false
	}
	p.blocked[line] = b.heads
	at := p.reservedAt(v, j)
	known := at != queue.Never
	if known {
		at = max(at, now)
		if known = p.times.Free(r, p.kept[j].gpus, at, at+lasts); !known {
			p.kept[j].run = 0
			p.right = false // it makes way for a job that ranks before it, or something has not gone as expected
		}
	}
	if !known || !p.right {
		until := int64(queue.Never)
		if known {
			until = at
		}
		sooner, ok := p.times.Earliest(b.s.place, v, j, lasts, max(now, p.low.Of(r, lasts)), until)
		switch {
		case ok:
			at = sooner
			p.keep(v, j, at, p.times.GPUs)
		case !known:
			return false // never, while nodes are down
		}
	}
	p.low.Add(r, lasts, at)
	p.times.Take(r, p.kept[j].gpus, at, at+lasts)
	return true
}

// keep notes the reservation of j.
func (p *planned) keep(v *sim.View, j sim.Job, at int64, gpus []cluster.GPU) {
	old := grow.At(&p.kept, j)
	*old = reservation{p.run, v.Pos(j), at, append(old.gpus[:0], gpus...)}
}

// startsNow starts j if it has a place now: the one reserved for it, or one that no reservation takes away.
func (b *conservative) startsNow(v *sim.View, j sim.Job, r *cluster.Request, lasts, now int64) bool {
	p := &b.plan
	if p.low.Of(r, lasts) > now && !b.claims(v, j) {
		return false
	}
	if !b.ahead.Fits(r) {
		k := &p.kind[p.number(v, j)]
		k.fits = false // nor do later ones
		p.occupied -= k.jobs
		return false
	}
	due := p.reservedAt(v, j)
	switch {
	case due <= now && b.startsOn(v, j, r, p.kept[j].gpus, lasts, now):
		return true
	case due > now && due != queue.Never && p.right:
		return false // it is the earliest
	}
	if _, ok := p.times.Earliest(b.s.place, v, j, lasts, now, now+1); !ok {
		return false
	}
	ok := b.startsOn(v, j, r, p.times.GPUs, lasts, now)
	if !ok { // what jobs hold that have outlived their estimates is not free yet, and other GPUs may be
		if b.dst, ok = b.s.place.Place(v, j, v.Request(j), b.ahead, b.dst); ok {
			ok = b.startsOn(v, j, r, b.dst, lasts, now)
		}
	}
	if ok && due != queue.Never {
		p.right = false // what was reserved for it is free for others
	}
	return ok
}

// startsOn starts j on gpus if they are free now and no reservation made before takes them away.
func (b *conservative) startsOn(v *sim.View, j sim.Job, r *cluster.Request, gpus []cluster.GPU, lasts, now int64) bool {
	if !b.plan.times.Free(r, gpus, now, now+lasts) || !place.Take(b.ahead, r, gpus) {
		return false
	}
	b.plan.times.Take(r, gpus, now, now+lasts)
	b.plan.keep(v, j, now, gpus) // for the case that the pass is made again before j has started
	from := len(b.spots)
	b.spots = append(b.spots, gpus...)
	b.starts = append(b.starts, start{j, lasts, from, len(b.spots)})
	return true
}

// claims reports whether the time of j's reservation has come and the placement may refuse by now what it chose then:
// jobs behind j may run on other GPUs of nodes that were idle when the place was reserved. j starts there all the same,
// and what the placement says of other jobs with the same request says nothing of j.
func (b *conservative) claims(v *sim.View, j sim.Job) bool {
	return b.s.picky && b.plan.reservedAt(v, j) <= int64(v.Now())
}

// reservedAt returns the time of j's reservation, never if it has none.
func (p *planned) reservedAt(v *sim.View, j sim.Job) int64 {
	if int(j) < len(p.kept) && p.kept[j].run == p.run && p.kept[j].pos == v.Pos(j) {
		return p.kept[j].at
	}
	return queue.Never
}
