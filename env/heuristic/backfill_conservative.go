package heuristic

import (
	"math"
	"slices"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// conservative is conservative back-filling (Mu'alem and Feitelson, TPDS 2001, section 2). Every waiting job, in rank
// order, has a reservation at the earliest time from which it fits for its whole estimate without delaying a job
// ranked before it. It starts when that time has come. All reservations are made anew at every point, starting from
// none, so with wrong estimates a job can get a later reservation than it had ("compression" from scratch).
//
// Reservations count thousandths of GPUs. On nodes, a job whose time has come also needs a place; without one it
// waits for the next point and keeps its reservation. Jobs that outlive their estimate are expected to end now: what
// they hold may be reserved for others, which do not start before it is given back. Each virtual cluster has a line
// of its own, which counts only what its own jobs will give back.
type conservative struct {
	s     *Scheduler
	ends  ends
	tree  treap
	roots []int32 // of the trees, by lane
	nodes bool    // placements matter

	// The profile: free[i] thousandths are free from from[i] until from[i+1].
	from, free []int64
	lost       int // steps before this one have too little for any remaining job

	list   []sim.Job
	least  []int64 // by place in list: the least need from there on
	starts []start // starts at this point
	turn   int
	spots  []cluster.GPU

	// The result of the last pass stays valid while nothing is given back, no reservation comes due, and no job
	// arrives that could start or that ranks before a job with a reservation.
	calm  bool
	until int64 // the earliest reservation of a waiting job
	room  int64 // thousandths left now
	last  entry // the last job that got a reservation

	ahead *cluster.Cluster // the cluster with the starts of this pass
	of    *cluster.Cluster
	dst   []cluster.GPU
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
		b.ahead, b.of = copyOf(c, b.ahead, b.of == c), c
	}
	b.ends.reset()
	b.tree.reset()
	b.calm = false
	b.roots = b.roots[:0]
	for range b.s.lanes {
		b.roots = append(b.roots, none)
	}
}

func (b *conservative) push(v *sim.View, e entry) {
	root := &b.roots[b.s.laneOf(v, e.job)]
	if b.tree.has(e.job, e.pos) {
		*root = b.tree.remove(*root, e.job)
	}
	*root = b.tree.insert(*root, e.job, ordered(e.key), e.pos, b.s.lasts(v, e.job), int64(milli(v, e.job)))
	if b.calm {
		b.calm = b.tree.nodes[e.job].need > b.room && b.last.before(&e)
	}
}

func (b *conservative) clear() {
	b.calm = false
	b.tree.reset()
	for i := range b.roots {
		b.roots[i] = none
	}
}

func (b *conservative) holds(v *sim.View, j sim.Job) bool { return b.tree.has(j, v.Pos(j)) }

func (b *conservative) event(v *sim.View, j sim.Job) {
	if b.ends.sync(b.s, v, j) {
		b.calm = false
	}
	if v.State(j) != sim.Waiting && b.tree.has(j, v.Pos(j)) {
		b.remove(v, j) // it was started or dropped by other code
		b.calm = false
	}
}

func (b *conservative) remove(v *sim.View, j sim.Job) {
	root := &b.roots[b.s.laneOf(v, j)]
	*root = b.tree.remove(*root, j)
}

// open makes all reservations and notes which jobs start now.
func (b *conservative) open(v *sim.View) {
	if b.ends.n != len(v.Running()) {
		b.ends.rebuild(b.s, v)
		b.calm = false
	}
	b.starts, b.turn, b.spots = b.starts[:0], 0, b.spots[:0]
	if b.calm && !b.s.freed.any && int64(v.Now()) < b.until {
		return
	}
	b.until, b.room = never, never // with an empty line every arrival matters
	if b.nodes {
		b.ahead.CopyFrom(v.Cluster())
	}
	for vc, root := range b.roots {
		if root != none {
			b.reserveAll(v, int32(vc))
		}
	}
	b.calm = len(b.roots) == 1
}

func (b *conservative) reserveAll(v *sim.View, vc int32) {
	now, room := int64(v.Now()), b.roomOf(v, vc)
	b.profile(v, vc, room)
	b.list = slices.DeleteFunc(b.tree.list(b.roots[vc], b.list[:0]), func(j sim.Job) bool {
		return v.State(j) != sim.Waiting || v.Pos(j) != b.tree.nodes[j].pos
	})
	b.least = slices.Grow(b.least[:0], len(b.list))[:len(b.list)]
	least := int64(never)
	for i := len(b.list) - 1; i >= 0; i-- {
		least = min(least, b.tree.nodes[b.list[i]].need)
		b.least[i] = least
	}
	b.lost, b.room, b.last = 0, room, entry{key: math.Inf(-1)}
	for i := 0; i < len(b.list); {
		if b.least[i] > room {
			return // no job from here on could start now
		}
		// Equal jobs that follow each other are reserved together: as many as fit at the earliest time.
		n := &b.tree.nodes[b.list[i]]
		alike := i + 1
		for alike < len(b.list) {
			if k := &b.tree.nodes[b.list[alike]]; k.need != n.need || k.time != n.time {
				break
			}
			alike++
		}
		at, count := b.reserve(n.need, n.time, int64(alike-i), b.least[i])
		last := &b.tree.nodes[b.list[i+int(count)-1]]
		b.last = entry{key: unordered(last.key), pos: last.pos}
		if at != now {
			b.until = min(b.until, at)
		} else if started := b.startSome(v, b.list[i:i+int(count)], room); started < count {
			b.until, room = now, room-started*n.need
		} else {
			room -= started * n.need
		}
		b.room = room
		i += int(count)
	}
}

// startSome starts those of jobs (equal jobs whose time has come) that have room and a place, and returns their
// number.
func (b *conservative) startSome(v *sim.View, jobs []sim.Job, room int64) (started int64) {
	for _, j := range jobs {
		n := &b.tree.nodes[j]
		if n.need > room {
			break
		}
		from := len(b.spots)
		if b.nodes {
			var ok bool
			if b.dst, ok = b.s.place.Place(v, j, b.ahead, b.dst); !ok || !take(b.ahead, v.Request(j), b.dst) {
				continue
			}
			b.spots = append(b.spots, b.dst...)
		}
		room -= n.need
		started++
		b.starts = append(b.starts, start{j, n.time, from, len(b.spots)})
	}
	return started
}

// roomOf returns the free thousandths of virtual cluster vc.
func (b *conservative) roomOf(v *sim.View, vc int32) int64 {
	c := v.Cluster()
	if vc == 0 {
		return int64(c.FreeMilli())
	}
	if c.Pool() {
		return int64(min(c.FreeMilli(), c.VCRoom(vc)))
	}
	sum := 0
	for n, to := c.VCNodes(vc); n < to; n++ {
		if c.Down(n) {
			continue
		}
		for g, to := c.NodeGPUs(n); g < to; g++ {
			sum += c.GPUFree(g)
		}
	}
	return int64(min(sum, c.VCRoom(vc)))
}

// profile computes what will be free if no other job starts.
func (b *conservative) profile(v *sim.View, vc int32, room int64) {
	now := int64(v.Now())
	b.from, b.free = append(b.from[:0], now), append(b.free[:0], room)
	b.list = b.ends.tree.list(b.ends.root, b.list[:0])
	for _, j := range b.list {
		if len(b.roots) > 1 && v.Request(j).VC != vc {
			continue
		}
		n := &b.ends.tree.nodes[j]
		room += n.need
		if last := len(b.from) - 1; n.time <= b.from[last] {
			b.free[last] = room
		} else {
			b.from, b.free = append(b.from, n.time), append(b.free, room)
		}
	}
}

// reserve returns the earliest time from which need stays free for lasts, and the number of jobs, at most most, for
// which there is room from that time on. It subtracts them from the profile. If there is no such time, which can
// happen while nodes are down, it returns never and most. No job from this one on needs less than least.
func (b *conservative) reserve(need, lasts, most, least int64) (at, count int64) {
	for b.lost < len(b.free) && b.free[b.lost] < least {
		b.lost++
	}
	a := b.lost
	k := a
	for end := int64(never); k < len(b.free); k++ {
		if b.free[k] < need {
			a, end = k+1, never
			continue
		}
		if end == never {
			end = b.from[a] + lasts
		}
		if k+1 < len(b.from) && b.from[k+1] >= end {
			break
		}
	}
	if a >= len(b.from) {
		return never, most
	}
	at = b.from[a]
	k = min(k, len(b.from)-1)
	if need > 0 {
		count = min(most, slices.Min(b.free[a:k+1])/need)
	} else {
		count = most
	}
	if end := at + lasts; k+1 == len(b.from) || b.from[k+1] > end {
		b.from = slices.Insert(b.from, k+1, end)
		b.free = slices.Insert(b.free, k+1, b.free[k])
	}
	need *= count
	for i := a; i <= k; i++ {
		b.free[i] -= need
	}
	return at, count
}

func (b *conservative) next(v *sim.View, d *sim.Decision) (done bool) {
	for b.turn < len(b.starts) {
		st := &b.starts[b.turn]
		b.turn++
		b.remove(v, st.job)
		b.ends.add(st.job, v.Pos(st.job), int64(v.Now())+st.lasts, int64(milli(v, st.job)))
		d.Op, d.Job = sim.StartJob, st.job
		d.GPUs = append(d.GPUs[:0], b.spots[st.from:st.to]...)
		return false
	}
	return true
}
