package schedulers

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
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
	s      *books
	fill   bool
	ends   queue.Ends
	ranks  queue.Tree // of the waiting jobs but for the held ones, in rank order
	tree   queue.Tree // the same jobs by submit, for back-filling
	queues []commitQueue
	count  bool // a counter without virtual clusters

	ahead *cluster.Cluster
	of    *cluster.Cluster
	list  []sim.Job
	dst   []cluster.GPU
}

type commitQueue struct {
	line        queue.Kinds // by rank
	queue.Kinds             // by submit, for back-filling
	held        queue.Entry // the chosen job
	holds       bool
	tried       bool // the held job did not fit, and nothing has been given back since
	known       bool // shadow has been computed
	shadow      int64
}

func (b *commit) reset(v *sim.View) {
	c := v.Cluster()
	b.count = c.Pool() && len(c.VCs()) == 0
	if b.fill && !b.count {
		b.ahead, b.of = place.CopyOf(c, b.ahead, b.of == c), c
	}
	b.queues = grown(b.queues, b.s.n)
	b.ends.Reset()
	b.ranks.Reset()
	b.tree.Reset()
	for i := range b.queues {
		l := &b.queues[i]
		l.holds, l.tried, l.known = false, false, false
		l.line.Classes, l.line.Marks = b.s.ranks, &b.s.jobs
		l.line.Reset(&b.ranks, queue.Open)
		l.Kinds.Reset(&b.tree, queue.Short)
	}
}

func (b *commit) push(v *sim.View, e queue.Entry) {
	l := &b.queues[b.s.queueOf(v, e.Job)]
	if l.holds && l.held.Job == e.Job && l.held.Pos == e.Pos {
		return
	}
	b.drop(l, e.Job, e.Pos)
	r := v.Request(e.Job)
	l.line.Push(e, 0, r)
	if b.fill {
		l.Push(queue.Entry{Pos: e.Pos, Job: e.Job}, queue.Lasts(&b.s.est, v, e.Job), r)
	}
}

// drop removes a job that waits and is not held.
func (b *commit) drop(l *commitQueue, j sim.Job, pos int) {
	if b.ranks.Has(j, pos) {
		l.line.Remove(j)
	}
	if b.tree.Has(j, pos) {
		l.Kinds.Remove(j)
	}
}

func (b *commit) clear() {
	for i := range b.queues {
		l := &b.queues[i]
		l.line.Clear()
		l.Kinds.Clear()
	}
}

func (b *commit) rekey(v *sim.View) {
	for i := range b.queues {
		b.queues[i].line.Rekey(func(j sim.Job) (float64, bool) { return b.s.newKey(v, j, b) })
	}
}

func (b *commit) rerank() {
	for i := range b.queues {
		b.queues[i].line.Rerank()
	}
}

// idle is so while a job is held in every line.
func (b *commit) idle(v *sim.View) bool {
	for i := range b.queues {
		l := &b.queues[i]
		if l.line.Least() < queue.Never && (!l.holds || queue.Stale(v, &l.held)) {
			return false
		}
	}
	return true
}

func (b *commit) holds(v *sim.View, j sim.Job) bool {
	l := &b.queues[b.s.queueOf(v, j)]
	return b.ranks.Has(j, v.Pos(j)) || l.holds && l.held.Job == j && l.held.Pos == v.Pos(j)
}

func (b *commit) event(v *sim.View, j sim.Job) {
	if v.State(j) != sim.Waiting {
		b.drop(&b.queues[b.s.queueOf(v, j)], j, v.Pos(j)) // it was started or dropped by other code
	}
	if b.fill {
		b.ends.Sync(&b.s.est, v, j)
	}
}

func (b *commit) disturbed(v *sim.View) {
	if b.fill {
		b.ends.Rebuild(&b.s.est, v)
	}
}

// forget does nothing: the shadow time is computed once.
func (b *commit) forget() {}

func (b *commit) open(v *sim.View) {
	if b.ends.N != len(v.Running()) {
		b.disturbed(v)
	}
	b.ends.Overdue(&b.s.est, v)
	for i := range b.queues {
		l := &b.queues[i]
		l.Reopen(v.Cluster(), &b.s.freed)
		l.tried = l.tried && !b.s.freed.Any
	}
}

func (b *commit) next(v *sim.View, d *sim.Decision) (done bool) {
	for i := range b.queues {
		l := &b.queues[i]
		for b.choose(v, l) {
			if !l.tried {
				var ok bool
				if d.GPUs, ok = b.s.place.Place(v, l.held.Job, v.Request(l.held.Job), v.Cluster(), d.GPUs); ok {
					l.holds = false
					lasts := int64(0)
					if b.fill { // without back-filling nothing asks for run times, and there may be no predictor
						lasts = queue.Lasts(&b.s.est, v, l.held.Job)
					}
					b.start(v, l.held.Job, lasts, d)
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
func (b *commit) choose(v *sim.View, l *commitQueue) bool {
	if l.holds && !queue.Stale(v, &l.held) {
		return true
	}
	l.holds, l.tried, l.known = false, false, false
	if l.held, l.holds = l.line.Head(v); l.holds {
		b.drop(l, l.held.Job, l.held.Pos)
	}
	return l.holds
}

func (b *commit) start(v *sim.View, j sim.Job, lasts int64, d *sim.Decision) {
	if b.fill {
		b.ends.Add(j, v.Pos(j), int64(v.Now())+lasts, int64(queue.Milli(v, j)))
	}
	d.Op, d.Job = sim.StartJob, j
}

// fillIn starts the next job that may run while another is held. It reports whether there was one.
func (b *commit) fillIn(v *sim.View, l *commitQueue, d *sim.Decision) bool {
	now := int64(v.Now())
	if !l.known {
		l.known = true
		if b.count {
			need := int64(queue.Milli(v, l.held.Job))
			l.shadow = max(now, b.ends.Enough(need-int64(v.Cluster().FreeMilli())))
		} else {
			l.shadow = place.Shadow(b.s.place, v, &b.ends, &b.list, b.ahead, l.held.Job, &b.dst)
		}
	}
	limit := within(now, l.shadow) - 1
	if !b.count {
		l.Within(limit)
	}
	for {
		var e queue.Entry
		var ok bool
		if b.count {
			e, ok = l.Fitting(int64(v.Cluster().FreeMilli()), limit, -1)
		} else {
			e, ok = l.Kinds.Next(v)
		}
		if !ok {
			return false
		}
		if queue.Stale(v, &e) {
			b.drop(l, e.Job, e.Pos)
			continue
		}
		if d.GPUs, ok = b.s.place.Place(v, e.Job, v.Request(e.Job), v.Cluster(), d.GPUs); !ok {
			l.Mark(e.Job, queue.Closed)
			continue
		}
		lasts := b.tree.Nodes[e.Job].Time
		b.drop(l, e.Job, e.Pos)
		b.start(v, e.Job, lasts, d)
		return true
	}
}
