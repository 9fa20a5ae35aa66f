package heuristic

import (
	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// commit is the admission of RLScheduler's simulator (Zhang et al., "RLScheduler: an automated HPC batch job
// scheduler using reinforcement learning", SC 2020): the best-ranked job is chosen, and if it does not fit, it is
// held until it does, even if a better one arrives meanwhile. With back-filling, while a job is held, other jobs
// start in order of submit if they fit and their requested time ends before the held job's shadow time. The shadow
// time, when by the requested times enough will be free for the held job, is computed once, when the job is chosen.
// Unlike in EASY, no job may run past the shadow time, however many processors the held job leaves over.
//
// RLScheduler's simulator handles one event at a time, arrivals before finishes (Config.Simulator).
type commit struct {
	s     *Scheduler
	fill  bool
	ends  ends
	ranks treap // of the waiting jobs but for the held ones, in rank order
	tree  treap // the same jobs by submit, for back-filling
	lanes []commitLane
	count bool // a counter without virtual clusters

	ahead *cluster.Cluster
	of    *cluster.Cluster
	list  []sim.Job
	dst   []cluster.GPU
}

type commitLane struct {
	line   shelf // by rank
	shelf        // by submit, for back-filling
	held   entry // the chosen job
	holds  bool
	tried  bool // the held job did not fit, and nothing has been given back since
	known  bool // shadow has been computed
	shadow int64
}

func (b *commit) reset(v *sim.View) {
	c := v.Cluster()
	b.count = c.Pool() && len(c.VCs()) == 0
	if b.fill && !b.count {
		b.ahead, b.of = copyOf(c, b.ahead, b.of == c), c
	}
	for len(b.lanes) < len(b.s.lanes) {
		b.lanes = append(b.lanes, commitLane{})
	}
	b.lanes = b.lanes[:len(b.s.lanes)]
	b.ends.reset()
	b.ranks.reset()
	b.tree.reset()
	for i := range b.lanes {
		l := &b.lanes[i]
		l.holds, l.tried, l.known = false, false, false
		l.line.ranks, l.line.marks = b.s.ranks, &b.s.jobs
		l.line.reset(&b.ranks, kindOpen)
		l.shelf.reset(&b.tree, kindShort)
	}
}

func (b *commit) push(v *sim.View, e entry) {
	l := &b.lanes[b.s.laneOf(v, e.job)]
	if l.holds && l.held.job == e.job && l.held.pos == e.pos {
		return
	}
	b.drop(l, e.job, e.pos)
	r := v.Request(e.job)
	l.line.push(e, 0, r)
	if b.fill {
		l.push(entry{pos: e.pos, job: e.job}, b.s.lasts(v, e.job), r)
	}
}

// drop removes a job that waits and is not held.
func (b *commit) drop(l *commitLane, j sim.Job, pos int) {
	if b.ranks.has(j, pos) {
		l.line.remove(j)
	}
	if b.tree.has(j, pos) {
		l.shelf.remove(j)
	}
}

func (b *commit) clear() {
	for i := range b.lanes {
		l := &b.lanes[i]
		l.line.clear()
		l.shelf.clear()
	}
}

func (b *commit) rekey(v *sim.View) {
	for i := range b.lanes {
		b.lanes[i].line.rekey(func(j sim.Job) (float64, bool) { return b.s.newKey(v, j) })
	}
}

func (b *commit) rerank() {
	for i := range b.lanes {
		b.lanes[i].line.rerank()
	}
}

// idle is so while a job is held in every line.
func (b *commit) idle(v *sim.View) bool {
	for i := range b.lanes {
		l := &b.lanes[i]
		if l.line.least() < never && (!l.holds || stale(v, &l.held)) {
			return false
		}
	}
	return true
}

func (b *commit) holds(v *sim.View, j sim.Job) bool {
	l := &b.lanes[b.s.laneOf(v, j)]
	return b.ranks.has(j, v.Pos(j)) || l.holds && l.held.job == j && l.held.pos == v.Pos(j)
}

func (b *commit) event(v *sim.View, j sim.Job) {
	if v.State(j) != sim.Waiting {
		b.drop(&b.lanes[b.s.laneOf(v, j)], j, v.Pos(j)) // it was started or dropped by other code
	}
	if b.fill {
		b.ends.sync(b.s, v, j)
	}
}

func (b *commit) disturbed(v *sim.View) {
	if b.fill {
		b.ends.rebuild(b.s, v)
	}
}

// forget does nothing: the shadow time is computed once.
func (b *commit) forget() {}

func (b *commit) open(v *sim.View) {
	if b.ends.n != len(v.Running()) {
		b.disturbed(v)
	}
	b.ends.overdue(b.s, v)
	for i := range b.lanes {
		l := &b.lanes[i]
		l.reopen(v.Cluster(), &b.s.freed)
		l.tried = l.tried && !b.s.freed.any
	}
}

func (b *commit) next(v *sim.View, d *sim.Decision) (done bool) {
	for i := range b.lanes {
		l := &b.lanes[i]
		for b.choose(v, l) {
			if !l.tried {
				var ok bool
				if d.GPUs, ok = b.s.place.Place(v, l.held.job, v.Cluster(), d.GPUs); ok {
					l.holds = false
					b.start(v, l.held.job, b.s.lasts(v, l.held.job), d)
					return false
				}
				l.tried = true
			}
			if b.fill && b.fillIn(v, l, d) {
				return false
			}
			break
		}
	}
	return true
}

// choose makes sure that a job is held. It returns false if no job waits.
func (b *commit) choose(v *sim.View, l *commitLane) bool {
	if l.holds && !stale(v, &l.held) {
		return true
	}
	l.holds, l.tried, l.known = false, false, false
	if l.held, l.holds = l.line.head(v); l.holds {
		b.drop(l, l.held.job, l.held.pos)
	}
	return l.holds
}

func (b *commit) start(v *sim.View, j sim.Job, lasts int64, d *sim.Decision) {
	if b.fill {
		b.ends.add(j, v.Pos(j), int64(v.Now())+lasts, int64(milli(v, j)))
	}
	d.Op, d.Job = sim.StartJob, j
}

// fillIn starts the next job that may run while another is held. It reports whether there was one.
func (b *commit) fillIn(v *sim.View, l *commitLane, d *sim.Decision) bool {
	now := int64(v.Now())
	if !l.known {
		l.known = true
		if b.count {
			need := int64(milli(v, l.held.job))
			l.shadow = max(now, b.ends.enough(need-int64(v.Cluster().FreeMilli())))
		} else {
			l.shadow = reserve(b.s, v, &b.ends, &b.list, b.ahead, l.held.job, &b.dst)
		}
	}
	limit := within(now, l.shadow) - 1
	if !b.count {
		l.within(limit)
	}
	for {
		var e entry
		var ok bool
		if b.count {
			e, ok = l.fitting(int64(v.Cluster().FreeMilli()), limit, -1)
		} else {
			e, ok = l.shelf.next(v)
		}
		if !ok {
			return false
		}
		if stale(v, &e) {
			b.drop(l, e.job, e.pos)
			continue
		}
		if d.GPUs, ok = b.s.place.Place(v, e.job, v.Cluster(), d.GPUs); !ok {
			l.mark(e.job, kindClosed)
			continue
		}
		lasts := b.tree.nodes[e.job].time
		b.drop(l, e.job, e.pos)
		b.start(v, e.job, lasts, d)
		return true
	}
}
