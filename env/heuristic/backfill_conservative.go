package heuristic

import (
	"slices"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// conservative is conservative back-filling (Mu'alem and Feitelson, TPDS 2001, section 2): every waiting job, in rank
// order, has a reservation at the earliest time from which it fits for its whole estimate without delaying any before
// it, and starts when that time has come. All reservations are made anew at every point, from an empty line: with
// wrong estimates a job may so get a later one than it had ("compression" from scratch).
//
// Reservations count thousandths of GPUs; on nodes a job whose time has come must also have a place, and if it has
// none it waits, its reservation kept, for the next point. Jobs that outlive their estimate are expected to end now:
// others may be reserved what they hold, but do not start before it is given back. Each virtual cluster has a line
// of its own, that counts what its own jobs will give back.
type conservative struct {
	s     *Scheduler
	ends  ends
	tree  treap
	roots []int32 // of the lines
	nodes bool    // placements matter

	steps  []free // from now on
	list   []sim.Job
	least  []int64 // of list: the least need from here on
	starts []start // of this point
	turn   int
	spots  []cluster.GPU

	ahead *cluster.Cluster // with what has been started in this pass
	of    *cluster.Cluster
	dst   []cluster.GPU
}

// free is what is free from a time until the next one, in thousandths of a GPU.
type free struct{ from, milli int64 }

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
}

func (b *conservative) clear() {
	b.tree.reset()
	for i := range b.roots {
		b.roots[i] = none
	}
}

func (b *conservative) holds(v *sim.View, j sim.Job) bool { return b.tree.has(j, v.Pos(j)) }

func (b *conservative) event(v *sim.View, j sim.Job) {
	b.ends.sync(b.s, v, j)
	if v.State(j) != sim.Waiting && b.tree.has(j, v.Pos(j)) {
		b.remove(v, j) // somebody else has started or dropped it
	}
}

func (b *conservative) remove(v *sim.View, j sim.Job) {
	root := &b.roots[b.s.laneOf(v, j)]
	*root = b.tree.remove(*root, j)
}

// open makes all reservations and notes who starts now.
func (b *conservative) open(v *sim.View) {
	if b.ends.n != len(v.Running()) {
		b.ends.rebuild(b.s, v)
	}
	b.starts, b.turn, b.spots = b.starts[:0], 0, b.spots[:0]
	if b.nodes {
		b.ahead.CopyFrom(v.Cluster())
	}
	for vc, root := range b.roots {
		if root != none {
			b.reserveAll(v, int32(vc))
		}
	}
}

func (b *conservative) reserveAll(v *sim.View, vc int32) {
	now, room := int64(v.Now()), b.roomOf(v, vc)
	b.profile(v, vc, room)
	b.list = b.tree.list(b.roots[vc], b.list[:0])
	b.least = slices.Grow(b.least[:0], len(b.list))[:len(b.list)]
	least := int64(never)
	for i := len(b.list) - 1; i >= 0; i-- {
		least = min(least, b.tree.nodes[b.list[i]].need)
		b.least[i] = least
	}
	for i, j := range b.list {
		if b.least[i] > room {
			return // nobody from here on could start now
		}
		n := &b.tree.nodes[j]
		if v.State(j) != sim.Waiting || v.Pos(j) != n.pos {
			continue
		}
		at := b.reserve(n.need, n.time)
		if at != now || n.need > room {
			continue
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
		b.starts = append(b.starts, start{j, n.time, from, len(b.spots)})
	}
}

// roomOf is what is free for virtual cluster vc now.
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

// profile is what will be free if nobody else starts.
func (b *conservative) profile(v *sim.View, vc int32, room int64) {
	now := int64(v.Now())
	b.steps = append(b.steps[:0], free{now, room})
	b.list = b.ends.tree.list(b.ends.root, b.list[:0])
	for _, j := range b.list {
		if len(b.roots) > 1 && v.Request(j).VC != vc {
			continue
		}
		n := &b.ends.tree.nodes[j]
		room += n.need
		if last := &b.steps[len(b.steps)-1]; n.time <= last.from {
			last.milli = room
		} else {
			b.steps = append(b.steps, free{n.time, room})
		}
	}
}

// reserve takes need out of the profile for so long from the earliest time on at which it is free throughout, and
// returns that time, never if there is none.
func (b *conservative) reserve(need, lasts int64) (at int64) {
	a := 0
	k := 0
	for ; k < len(b.steps); k++ {
		if b.steps[k].milli < need {
			a = k + 1
		} else if k+1 < len(b.steps) && b.steps[k+1].from >= b.steps[a].from+lasts {
			break
		}
	}
	if a >= len(b.steps) {
		return never // nodes are down
	}
	at = b.steps[a].from
	end := at + lasts
	k = min(k, len(b.steps)-1)
	if k+1 == len(b.steps) || b.steps[k+1].from > end {
		b.steps = slices.Insert(b.steps, k+1, free{end, b.steps[k].milli})
	}
	for i := a; i <= k; i++ {
		b.steps[i].milli -= need
	}
	return at
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
