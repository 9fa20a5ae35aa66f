package schedulers

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// eitherEasy is EASY back-filling, with one line of jobs or with one for each virtual cluster. Lines that share nodes
// need reservations that bind the jobs of other lines too: planned makes them, of the first in each line only.
type eitherEasy struct {
	backfiller // one of these
	easy       *easy
	wide       *conservative
}

func (b *eitherEasy) reset(v *sim.View) {
	if b.backfiller = b.easy; place.SoleQueue(v.Cluster()) < 0 {
		b.backfiller = b.wide
	}
	b.backfiller.reset(v)
}

// easy is EASY back-filling (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and Feitelson,
// "Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling",
// TPDS 2001, section 2): jobs start from the head of the line while they fit. The first job that does not fit, the
// head, gets a reservation at the shadow time: when, by the requested times, enough will be free for it. Then, in
// rank order, any other job starts that fits now and either ends by the shadow time or does not need what the head
// will need. On a counter, such a job must fit in the extra: what will be free at the shadow time beyond the head's
// need; it uses the extra up. On nodes, the head must still have a place at the shadow time. Jobs that outlive their
// estimate are expected to end now, unless it is a forecast (ends.overdue). Every pass computes everything anew.
//
// On nodes, a result for one job holds for all jobs with the same request within a pass: if one has no room, or would
// take the head's place, so do the others.
//
// There is a single line. Where virtual clusters share nodes, each has a line and a reservation of its own, and a
// reservation binds the jobs of all; see eitherEasy.
type easy struct {
	s       *books
	ends    queue.Ends
	tree    queue.Tree // of the waiting jobs
	queues  []easyQueue
	count   bool // a counter without virtual clusters: counting is enough
	filling int  // the one being back-filled; −1 = heads still start
	steady  bool // see func stays

	ahead *cluster.Cluster // the cluster at the shadow time
	of    *cluster.Cluster
	list  []sim.Job
	dst   []cluster.GPU
}

type easyQueue struct {
	queue.Kinds
	blocked bool        // the head does not fit
	head    queue.Entry // of the line, if blocked
	valid   bool        // the reservation is still valid
	moved   bool        // this pass, or the last one, has started jobs
	shadow  int64
	extra   int64 // thousandths; counters only
}

func (b *easy) reset(v *sim.View) {
	c := v.Cluster()
	b.count = c.Pool() && len(c.VCs()) == 0
	if !b.count {
		b.ahead, b.of = place.CopyOf(c, b.ahead, b.of == c), c
	}
	b.queues = grown(b.queues, b.s.n)
	b.steady = b.count || place.Steady(b.s.place)
	b.ends.Reset()
	b.tree.Reset()
	for i := range b.queues {
		l := &b.queues[i]
		l.Classes, l.Marks = b.s.ranks, &b.s.jobs
		l.Reset(&b.tree, queue.Open)
		l.blocked, l.valid, l.moved = false, false, false
	}
}

func (b *easy) push(v *sim.View, e queue.Entry) {
	l := &b.queues[b.s.queueOf(v, e.Job)]
	if b.tree.Has(e.Job, e.Pos) {
		l.Remove(e.Job)
	}
	l.Push(e, queue.Lasts(&b.s.est, v, e.Job), v.Request(e.Job))
}

func (b *easy) clear() {
	for i := range b.queues {
		b.queues[i].Clear()
	}
}

func (b *easy) rerank() {
	for i := range b.queues {
		b.queues[i].Rerank()
	}
}

func (b *easy) rekey(v *sim.View) {
	for i := range b.queues {
		b.queues[i].Kinds.Rekey(func(j sim.Job) (float64, bool) { return b.s.newKey(v, j, b) })
	}
}

// idle is so while fewer GPUs are free than any job needs.
func (b *easy) idle(v *sim.View) bool {
	free := int64(v.Cluster().FreeMilli())
	for i := range b.queues {
		if b.queues[i].Least() <= free {
			return false
		}
	}
	return true
}

func (b *easy) holds(v *sim.View, j sim.Job) bool { return b.tree.Has(j, v.Pos(j)) }

func (b *easy) event(v *sim.View, j sim.Job) {
	if b.ends.Sync(&b.s.est, v, j) {
		b.forget()
	}
	if v.State(j) != sim.Waiting && b.tree.Has(j, v.Pos(j)) {
		b.queues[b.s.queueOf(v, j)].Remove(j) // it was started or dropped by other code
	}
}

func (b *easy) disturbed(v *sim.View) {
	b.ends.Rebuild(&b.s.est, v)
	b.forget()
}

func (b *easy) forget() {
	for i := range b.queues {
		b.queues[i].valid = false
	}
}

func (b *easy) open(v *sim.View) {
	if b.ends.N != len(v.Running()) { // other code starts or stops jobs at this point too
		b.disturbed(v)
	}
	if b.ends.Overdue(&b.s.est, v) || !b.steady {
		b.forget()
	}
	b.filling = -1
	if b.idle(v) {
		b.filling = len(b.queues)
	}
	f := &b.s.freed
	for i := range b.queues {
		l := &b.queues[i]
		l.Reopen(v.Cluster(), f)
		if f.Any || b.s.rule.dynamic {
			l.blocked = false
		}
		if f.Any || b.s.rule.dynamic || len(b.queues) > 1 || l.shadow <= int64(v.Now()) {
			l.valid = false
		}
		if l.moved {
			l.ReopenShort()
			l.moved = false
		}
	}
}

func (b *easy) next(v *sim.View, d *sim.Decision) (done bool) {
	if b.filling < 0 {
		if b.nextHead(v, d) {
			return false
		}
		b.filling = 0
	}
	for ; b.filling < len(b.queues); b.filling++ {
		l := &b.queues[b.filling]
		if !l.blocked {
			continue
		}
		if b.count && b.fillCounter(v, l, d) || !b.count && b.fillNodes(v, l, d) {
			return false
		}
	}
	return true
}

// nextHead starts the highest-ranked head that fits.
func (b *easy) nextHead(v *sim.View, d *sim.Decision) bool {
	for {
		var best *easyQueue
		var first queue.Entry
		for i := range b.queues {
			l := &b.queues[i]
			e, ok := l.Kinds.Head(v)
			if !ok {
				l.blocked = false
				continue
			}
			if l.blocked && (l.head.Job != e.Job || l.head.Pos != e.Pos) {
				l.blocked, l.valid = false, false // another comes first now
			}
			if !l.blocked && (best == nil || e.Before(&first)) {
				best, first = l, e
			}
		}
		if best == nil {
			return false
		}
		var ok bool
		if d.GPUs, ok = b.s.place.Place(v, first.Job, v.Request(first.Job), v.Cluster(), d.GPUs); ok {
			best.valid = false
			b.start(v, best, first.Job, d)
			return true
		}
		best.blocked, best.head = true, first
	}
}

// start moves j from the waiting jobs to the running ones.
func (b *easy) start(v *sim.View, l *easyQueue, j sim.Job, d *sim.Decision) {
	lasts := b.tree.Nodes[j].Time
	l.Remove(j)
	l.moved = true
	b.ends.Add(j, v.Pos(j), int64(v.Now())+lasts, int64(queue.Milli(v, j)))
	d.Op, d.Job = sim.StartJob, j
}

// fillCounter starts the next job that may go before the head. It reports whether there was one.
func (b *easy) fillCounter(v *sim.View, l *easyQueue, d *sim.Decision) bool {
	now, free := int64(v.Now()), int64(v.Cluster().FreeMilli())
	if !l.valid {
		need := int64(queue.Milli(v, l.head.Job))
		l.shadow = max(now, b.ends.Enough(need-free))
		l.extra = free + b.ends.Released(l.shadow) - need
		l.valid = true
	}
	for {
		limit := within(now, l.shadow)
		e, ok := l.Fitting(free, limit, l.extra)
		if !ok {
			return false
		}
		if queue.Stale(v, &e) {
			l.Remove(e.Job)
			continue
		}
		if n := &b.tree.Nodes[e.Job]; n.Time > limit {
			l.extra -= n.Need
		}
		b.start(v, l, e.Job, d)
		d.GPUs = d.GPUs[:0]
		return true
	}
}

// fillNodes is fillCounter on nodes.
func (b *easy) fillNodes(v *sim.View, l *easyQueue, d *sim.Decision) bool {
	now := int64(v.Now())
	if !l.valid {
		l.shadow = place.Shadow(b.s.place, v, &b.ends, &b.list, b.ahead, l.head.Job, &b.dst)
		l.valid = true
		l.ReopenShort()
		l.Mark(l.head.Job, queue.Closed)
	}
	l.Within(within(now, l.shadow))
	for {
		e, ok := l.Kinds.Next(v)
		if !ok {
			return false
		}
		if ok = !l.Hopeless(v.Cluster(), &b.s.freed, e.Job); ok {
			d.GPUs, ok = b.s.place.Place(v, e.Job, v.Request(e.Job), v.Cluster(), d.GPUs)
		}
		if !ok {
			l.Mark(e.Job, queue.Closed)
			continue
		}
		if b.tree.Nodes[e.Job].Time > l.Limit && !b.leavesRoom(v, l, e.Job, d.GPUs) {
			l.Mark(e.Job, queue.Short)
			continue
		}
		if !l.moved {
			l.ReopenShortBehind(&e) // it may have taken the place in which an earlier pass found them to delay the head
		}
		b.start(v, l, e.Job, d)
		return true
	}
}

// leavesRoom reports whether the head still has a place at the shadow time if j takes gpus. If so, it takes them from
// the planning copy.
func (b *easy) leavesRoom(v *sim.View, l *easyQueue, j sim.Job, gpus []cluster.GPU) bool {
	r := v.Request(j)
	if !place.Take(b.ahead, r, gpus) {
		return false
	}
	var ok bool
	if b.dst, ok = b.s.place.Place(v, l.head.Job, v.Request(l.head.Job), b.ahead, b.dst); !ok {
		b.ahead.Release(r, gpus)
	}
	return ok
}
