package schedulers

import (
	"cmp"
	"slices"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// conservative is conservative back-filling (Mu'alem and Feitelson, TPDS 2001, section 2). Every waiting job, in rank
// order, has a reservation at the earliest time from which it fits for its whole estimate without delaying a job
// ranked before it. It starts when that time has come. All reservations are made anew at every point, starting from
// none, so with wrong estimates a job can get a later reservation than it had ("compression" from scratch). Those that
// cannot matter to what starts now are left out (reserveAll).
//
// Where counting says which jobs fit, reservations count thousandths of GPUs: on a counter, and on nodes as long as all
// jobs are for whole GPUs of any node and nothing else. Otherwise they are sets of GPUs; see planned. Jobs that outlive
// their estimate, unless it is a forecast (ends.overdue), are expected to end now: what they hold may be reserved for
// others, which do not start before it is given back. Each virtual cluster has a line of its own; reservations bind all
// of them.
type conservative struct {
	s     *books
	heads bool // EASY: only the first job of each line has a reservation
	plan  planned
	ends  queue.Ends
	tree  queue.Tree
	lines []consQueue
	nodes bool // placements matter
	sole  int  // the only line that jobs can be in, -1 = there are several

	steady bool // see func stays

	profile queue.Profile

	list   []sim.Job
	alike  []sim.Job
	starts []start // starts at this point
	turn   int
	spots  []cluster.GPU

	// The result of the last pass stays valid while nothing is given back, no reservation comes due, and no job
	// arrives that could start or that ranks before a job with a reservation.
	calm  bool
	until int64      // the earliest reservation of a waiting job
	room  int64      // thousandths left now
	last  queue.Rank // the last job that got a reservation

	ahead *cluster.Cluster // the cluster with the starts of this pass
	of    *cluster.Cluster
	dst   []cluster.GPU
}

// consQueue is the line of one virtual cluster: a tree in rank order for each class of jobs, one if jobs are not ranked
// by class. In the tree of a class keys are 0.
type consQueue struct {
	trees []queue.Branch // none is empty; in order of the classes' keys during a pass
	few   []int64        // by tree, during a pass: the least need in it and in those behind it
}

// start is a job that starts now, on spots[from:to].
type start struct {
	job      sim.Job
	lasts    int64
	from, to int
}

func (b *conservative) reset(v *sim.View) {
	c := v.Cluster()
	b.nodes = !c.Pool() || len(c.VCs()) > 0
	if b.nodes {
		b.ahead, b.of = place.CopyOf(c, b.ahead, b.of == c), c
	}
	b.steady = !b.nodes || place.Steady(b.s.place)
	b.sole = place.SoleQueue(c)
	b.plan.reset()
	b.ends.Reset()
	b.tree.Reset()
	b.calm = false
	b.lines = grown(b.lines, b.s.n)
	for i := range b.lines {
		b.lines[i].trees = b.lines[i].trees[:0]
	}
}

// rankOf returns the rank of node i.
func (b *conservative) rankOf(i int32) queue.Rank {
	n := &b.tree.Nodes[i]
	if b.s.ranks == nil {
		return queue.Rank{Key: n.Key, Pos: n.Pos}
	}
	return queue.Rank{Key: queue.Ordered(b.s.ranks.Keys[b.s.jobs[i].Class]), Pos: n.Pos}
}

// branch returns the tree of j's class in j's line. It returns nil if the line has no such tree yet.
func (b *conservative) branch(v *sim.View, j sim.Job) *queue.Branch {
	class := b.s.class(j)
	trees := b.lines[b.s.queueOf(v, j)].trees
	for i := range trees {
		if trees[i].Class == class {
			return &trees[i]
		}
	}
	return nil
}

// sort puts the trees of line l in order for nextBehind and fewest.
func (b *conservative) sort(l *consQueue) {
	if r := b.s.ranks; r != nil {
		slices.SortFunc(l.trees, func(x, y queue.Branch) int {
			return cmp.Compare(queue.Ordered(r.Keys[x.Class]), queue.Ordered(r.Keys[y.Class]))
		})
	}
	l.few = l.few[:0]
	for range l.trees {
		l.few = append(l.few, queue.Never)
	}
	few := int64(queue.Never)
	for i := len(l.trees) - 1; i >= 0; i-- {
		few = min(few, b.tree.Nodes[l.trees[i].Root].Few)
		l.few[i] = few
	}
}

// behind compares the tree of t with the place at in its line. before: no job of t ranks behind at. whole: all of them
// do. in is the place in the tree behind which its jobs rank behind at.
func (b *conservative) behind(t queue.Branch, at queue.Rank) (in queue.Rank, before, whole bool) {
	if b.s.ranks == nil {
		return at, false, false
	}
	switch key := queue.Ordered(b.s.ranks.Keys[t.Class]); {
	case key < at.Key:
		return in, true, false
	case key > at.Key:
		return queue.Beginning, false, true
	}
	return queue.Rank{Key: queue.Ordered(0), Pos: at.Pos}, false, false
}

// nextBehind returns the first job of line l that ranks behind at, lasts no longer than limit and needs no more than
// most. It returns none if there is no such job.
func (b *conservative) nextBehind(l *consQueue, at queue.Rank, limit, most int64) int32 {
	best := int32(queue.None)
	for _, t := range l.trees {
		in, before, _ := b.behind(t, at)
		if before {
			continue
		}
		if best != queue.None && b.s.ranks != nil && queue.Ordered(b.s.ranks.Keys[t.Class]) > b.rankOf(best).Key {
			break
		}
		if i := b.tree.Next(t.Root, in, limit, most); i != queue.None &&
			(best == queue.None || b.tree.Nodes[i].Pos < b.tree.Nodes[best].Pos) {
			best = i // trees with the same key, in which positions decide
		}
	}
	return best
}

// fewest returns the least need of the jobs of line l behind at, never if there are none.
func (b *conservative) fewest(l *consQueue, at queue.Rank) int64 {
	few := int64(queue.Never)
	for i, t := range l.trees {
		in, before, whole := b.behind(t, at)
		if whole {
			return min(few, l.few[i])
		}
		if !before {
			few = min(few, b.tree.Fewest(t.Root, in))
		}
	}
	return few
}

func (b *conservative) push(v *sim.View, e queue.Entry) {
	if b.tree.Has(e.Job, e.Pos) {
		b.remove(v, e.Job)
	}
	t := b.branch(v, e.Job)
	if t == nil {
		l, class := &b.lines[b.s.queueOf(v, e.Job)], b.s.class(e.Job)
		l.trees = append(l.trees, queue.Branch{Class: class, Root: queue.None})
		t = &l.trees[len(l.trees)-1]
	}
	t.Root = b.tree.Insert(t.Root, e.Job, queue.Ordered(e.Key), e.Pos, queue.Lasts(&b.s.est, v, e.Job),
		int64(queue.Milli(v, e.Job)))
	if b.calm {
		r := b.rankOf(int32(e.Job))
		b.calm = b.tree.Nodes[e.Job].Need > b.room && b.last.Before(r)
	}
}

func (b *conservative) clear() {
	b.forget()
	b.tree.Reset()
	for i := range b.lines {
		b.lines[i].trees = b.lines[i].trees[:0]
	}
}

func (b *conservative) rekey(v *sim.View) {
	b.forget()
	for i := range b.lines {
		l := &b.lines[i]
		if len(l.trees) == 0 {
			continue
		}
		t := &l.trees[0]
		if t.Root = b.tree.Rekey(t.Root, func(j sim.Job) (float64, bool) { return b.s.newKey(v, j, b) }); t.Root ==
			queue.None {
			l.trees = l.trees[:0]
		}
	}
}

func (b *conservative) rerank() { b.forget() }

// idle is so while fewer GPUs are free than any job needs.
func (b *conservative) idle(v *sim.View) bool {
	free := int64(v.Cluster().FreeMilli())
	for i := range b.lines {
		for _, t := range b.lines[i].trees {
			if b.tree.Nodes[t.Root].Few <= free {
				return false
			}
		}
	}
	return true
}

func (b *conservative) holds(v *sim.View, j sim.Job) bool { return b.tree.Has(j, v.Pos(j)) }

func (b *conservative) event(v *sim.View, j sim.Job) {
	state := v.State(j)
	asExpected := state == sim.Running || state == sim.Finished && b.ends.Has(j) && b.ends.Of(j) == int64(v.Now())
	if b.ends.Sync(&b.s.est, v, j) {
		b.calm, asExpected = false, false
	}
	b.plan.right = b.plan.right && asExpected
	if state != sim.Waiting && b.tree.Has(j, v.Pos(j)) {
		b.remove(v, j) // it was started or dropped by other code
		b.calm = false
	}
}

func (b *conservative) disturbed(v *sim.View) {
	b.ends.Rebuild(&b.s.est, v)
	b.forget()
}

func (b *conservative) forget() { b.calm, b.plan.right = false, false }

func (b *conservative) remove(v *sim.View, j sim.Job) {
	t := b.branch(v, j)
	if t.Root = b.tree.Remove(t.Root, j); t.Root == queue.None {
		l := &b.lines[b.s.queueOf(v, j)]
		last := len(l.trees) - 1
		*t, l.trees = l.trees[last], l.trees[:last]
	}
}

// open makes all reservations and notes which jobs start now.
func (b *conservative) open(v *sim.View) {
	if b.ends.N != len(v.Running()) {
		b.disturbed(v)
	}
	if b.ends.Overdue(&b.s.est, v) || !b.steady {
		b.forget()
	}
	b.calm = b.calm && b.turn == len(b.starts) // if not, jobs are ranked anew amid a pass
	b.starts, b.turn, b.spots = b.starts[:0], 0, b.spots[:0]
	if !b.counted(v) {
		b.calm = false
		b.planAll(v)
		return
	}
	if b.calm && !b.s.freed.Any && int64(v.Now()) < b.until {
		return
	}
	b.until, b.room = queue.Never, queue.Never // with an empty line every arrival matters
	if b.nodes {
		b.ahead.CopyFrom(v.Cluster())
	}
	if len(b.lines[b.sole].trees) > 0 {
		b.reserveAll(v)
	}
	b.calm = true
}

// reserveAll makes the reservations, as far as they matter to what starts now, which decides how long it
// takes:
//
//   - From the wall on, the first time at which less is free than any job behind the last reservation needs, nothing
//     matters: no job's time can reach across the wall, and no reservation made later can move it away. So only jobs
//     that end before the wall get a reservation, and only before it. The tree of waiting jobs finds them in rank order
//     without a look at the others.
//   - The pass ends when no job is left that ends before the wall and does not need more than is free now.
func (b *conservative) reserveAll(v *sim.View) {
	now, room := int64(v.Now()), b.roomNow(v)
	l := &b.lines[b.sole]
	b.sort(l)
	at := queue.Beginning
	b.room, b.last = room, at
	least := b.fewest(l, at)
	if least > room {
		return
	}
	b.profile.Begin(int64(v.Now()), room, &b.ends)
	tried := queue.Window{Need: queue.Never} // this and all that is larger and longer finds no time before the wall
	for least <= room {
		limit, most := b.profile.Wall(least)
		if b.nextBehind(l, at, limit, min(room, b.profile.Free[0])) == queue.None {
			return
		}
		i := b.nextBehind(l, at, limit, most)
		n := b.tree.Nodes[i]
		at = b.rankOf(i)
		b.last = at
		if live := b.waits(v, sim.Job(i)); live && (n.Need < tried.Need || n.Time < tried.Lasts) {
			w, ok := b.profile.Find(n.Need, n.Time)
			if !ok {
				tried = w
				least = b.fewest(l, at)
				continue
			}
			// Equal jobs that follow are reserved together: as many as fit at this time.
			b.alike = append(b.alike[:0], sim.Job(i))
			for int64(len(b.alike)) < w.Count {
				k := b.nextBehind(l, at, limit, most)
				if k == queue.None || b.tree.Nodes[k].Need != n.Need || b.tree.Nodes[k].Time != n.Time {
					break
				}
				at = b.rankOf(k)
				b.last = at
				if b.waits(v, sim.Job(k)) {
					b.alike = append(b.alike, sim.Job(k))
				}
			}
			b.profile.Reserve(&w, int64(len(b.alike)))
			if w.At != now {
				b.until = min(b.until, w.At)
			} else {
				started := b.startSome(v, b.alike, room)
				if started < int64(len(b.alike)) {
					b.until = now
				}
				room -= started * n.Need
			}
			b.room = room
		}
		least = b.fewest(l, at)
	}
}

// waits reports whether j, which is in the tree, still waits: other code may have started it at this point.
func (b *conservative) waits(v *sim.View, j sim.Job) bool {
	return v.State(j) == sim.Waiting && v.Pos(j) == b.tree.Nodes[j].Pos
}

// startSome starts those of jobs (equal jobs whose time has come) that have room and a place, and returns their
// number.
func (b *conservative) startSome(v *sim.View, jobs []sim.Job, room int64) (started int64) {
	for _, j := range jobs {
		n := &b.tree.Nodes[j]
		if n.Need > room {
			break
		}
		from := len(b.spots)
		if b.nodes {
			var ok bool
			if b.dst, ok = b.s.place.Place(v, j, v.Request(j), b.ahead, b.dst); !ok ||
				!place.Take(b.ahead, v.Request(j), b.dst) {
				continue
			}
			b.spots = append(b.spots, b.dst...)
		}
		room -= n.Need
		started++
		b.starts = append(b.starts, start{j, n.Time, from, len(b.spots)})
	}
	return started
}

// roomNow returns the free thousandths of the only line.
func (b *conservative) roomNow(v *sim.View) int64 {
	return int64(min(v.Cluster().FreeMilli(), v.Cluster().VCRoom(int32(b.sole))))
}

func (b *conservative) next(v *sim.View, d *sim.Decision) (done bool) {
	for b.turn < len(b.starts) {
		st := &b.starts[b.turn]
		b.turn++
		b.remove(v, st.job)
		b.ends.Add(st.job, v.Pos(st.job), int64(v.Now())+st.lasts, int64(queue.Milli(v, st.job)))
		d.Op, d.Job = sim.StartJob, st.job
		d.GPUs = append(d.GPUs[:0], b.spots[st.from:st.to]...)
		return false
	}
	return true
}
