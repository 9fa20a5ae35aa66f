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
	tree  treap // of the waiting jobs, for back-filling
	lanes []commitLane
	count bool // a counter without virtual clusters

	ahead *cluster.Cluster
	of    *cluster.Cluster
	list  []sim.Job
	dst   []cluster.GPU
}

type commitLane struct {
	line   line  // by rank; back-filled jobs stay in it until they come up or become too many
	gone   int   // back-filled jobs in line
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
	b.tree.reset()
	for i := range b.lanes {
		l := &b.lanes[i]
		l.line, l.gone, l.holds, l.tried, l.known = l.line[:0], 0, false, false, false
		l.shelf.reset(&b.tree, kindShort)
	}
}

func (b *commit) push(v *sim.View, e entry) {
	l := &b.lanes[b.s.laneOf(v, e.job)]
	if l.holds && l.held.job == e.job && l.held.pos == e.pos {
		return
	}
	b.s.jobs[e.job].queued = true
	l.line.push(e)
	if b.fill {
		b.unshelve(l, e)
		l.push(entry{pos: e.pos, job: e.job}, b.s.lasts(v, e.job), v.Request(e.job))
	}
}

func (b *commit) unshelve(l *commitLane, e entry) {
	if b.tree.has(e.job, e.pos) {
		l.remove(e.job)
	}
}

func (b *commit) clear() {
	for i := range b.lanes {
		l := &b.lanes[i]
		l.line, l.gone = l.line[:0], 0
		l.shelf.clear()
	}
}

// rekey leaves the held job and the jobs by submit as they are.
func (b *commit) rekey(v *sim.View) {
	for i := range b.lanes {
		l := &b.lanes[i]
		all := l.line
		l.line, l.gone = l.line[:0], 0
		for _, e := range all { // each is read before its place is written
			if !b.s.jobs[e.job].queued || b.fill && !b.tree.has(e.job, e.pos) {
				continue
			}
			var ok bool
			if e.key, ok = b.s.newKey(v, e.job); ok {
				l.line.push(e)
			}
		}
	}
}

// idle is so while a job is held in every line.
func (b *commit) idle(v *sim.View) bool {
	for i := range b.lanes {
		l := &b.lanes[i]
		if len(l.line) > 0 && (!l.holds || stale(v, &l.held)) {
			return false
		}
	}
	return true
}

func (b *commit) holds(v *sim.View, j sim.Job) bool {
	l := &b.lanes[b.s.laneOf(v, j)]
	return b.s.jobs[j].queued && (!b.fill || b.tree.has(j, v.Pos(j))) || l.holds && l.held.job == j && l.held.pos == v.Pos(j)
}

func (b *commit) event(v *sim.View, j sim.Job) {
	if !b.fill {
		return
	}
	b.ends.sync(b.s, v, j)
	if v.State(j) != sim.Waiting && b.tree.has(j, v.Pos(j)) {
		b.lanes[b.s.laneOf(v, j)].remove(j) // it was started or dropped by other code
	}
}

func (b *commit) open(v *sim.View) {
	if b.fill && b.ends.n != len(v.Running()) {
		b.ends.rebuild(b.s, v)
	}
	for i := range b.lanes {
		l := &b.lanes[i]
		l.reopen(v.Cluster(), &b.s.freed)
		l.tried = l.tried && !b.s.freed.any
		if l.gone > 64 && l.gone > len(l.line)/2 {
			all := l.line
			l.line, l.gone = l.line[:0], 0
			for _, e := range all { // each is read before its place is written
				if !stale(v, &e) {
					l.line.push(e)
				}
			}
		}
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
	for len(l.line) > 0 {
		e := l.line.pop()
		if v.Pos(e.job) == e.pos {
			b.s.jobs[e.job].queued = false
		}
		if stale(v, &e) {
			l.gone = max(0, l.gone-1)
			continue
		}
		b.unshelve(l, e)
		l.held, l.holds = e, true
		return true
	}
	return false
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
			l.remove(e.job)
			continue
		}
		if d.GPUs, ok = b.s.place.Place(v, e.job, v.Cluster(), d.GPUs); !ok {
			l.mark(e.job, kindClosed)
			continue
		}
		lasts := b.tree.nodes[e.job].time
		l.remove(e.job)
		b.s.jobs[e.job].queued = false
		l.gone++
		b.start(v, e.job, lasts, d)
		return true
	}
}
