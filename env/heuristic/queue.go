package heuristic

import (
	"math"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// bucket is the line of all jobs with the same request. They fit or do not fit together.
type bucket struct {
	req    cluster.Request
	line   line
	closed bool // does not fit any more in this pass
}

// waitQueue is the waiting jobs: one line where the first in rank alone decides (strict), one for each kind of
// request where jobs that do not fit are stepped over (skip). Requests for n whole GPUs and nothing else, which
// are most, stand in a tournament tree over n: the first in rank among all that want up to n GPUs is found in
// the logarithm of the sizes. The others are looked at one after another.
type waitQueue struct {
	single bool
	whole  []line  // by GPUs; line 0 is the only one where single
	tree   []int32 // node k has children 2k and 2k+1; the winner's GPUs, −1 = none. Leaves are the second half
	shut   []int   // lines taken out of the tree for this pass
	others []bucket
	index  map[cluster.Request]int // of others
}

// none is the place of no line. Places from 0 on are those of whole, from −2 downwards those of others.
const none = -1

func (q *waitQueue) reset(single bool) {
	if q.index == nil {
		q.index = map[cluster.Request]int{}
	}
	q.single = single
	for i := range q.whole {
		q.whole[i] = q.whole[i][:0]
	}
	for i := range q.tree {
		q.tree[i] = none
	}
	q.shut = q.shut[:0]
	for i := range q.others {
		q.others[i].line = q.others[i].line[:0]
	}
}

func (q *waitQueue) push(e entry, r *cluster.Request) {
	n := r.GPUs
	if q.single {
		n = 0
	} else if r.Milli != 1000 || r.Types != 0 || r.CPUMilli != 0 || r.MemBytes != 0 || n >= 1<<16 {
		i, ok := q.index[*r]
		if !ok {
			i = len(q.others)
			q.index[*r] = i
			q.others = append(q.others, bucket{req: *r})
		}
		q.others[i].line.push(e)
		return
	}
	for n >= len(q.whole) {
		q.grow()
	}
	q.whole[n].push(e)
	q.play(n)
}

// grow doubles the tree.
func (q *waitQueue) grow() {
	leaves := max(1, 2*len(q.whole))
	q.whole = append(q.whole, make([]line, leaves-len(q.whole))...)
	q.tree = make([]int32, 2*leaves)
	for i := range q.tree {
		q.tree[i] = none
	}
	for n := range q.whole {
		q.play(n)
	}
	for _, n := range q.shut {
		q.remove(n)
	}
}

// play brings the tree up to date after a change of line n.
func (q *waitQueue) play(n int) {
	if len(q.whole[n]) == 0 {
		q.remove(n)
		return
	}
	k := len(q.tree)/2 + n
	q.tree[k] = int32(n)
	q.up(k, int32(n))
}

// remove takes line n out of the tree.
func (q *waitQueue) remove(n int) {
	k := len(q.tree)/2 + n
	q.tree[k] = none
	q.up(k, int32(n))
}

func (q *waitQueue) up(k int, n int32) {
	for k >>= 1; k > 0; k >>= 1 {
		was, won := q.tree[k], q.winner(q.tree[2*k], q.tree[2*k+1])
		q.tree[k] = won
		if was != n && won != n {
			return // n does not matter here, nor above
		}
	}
}

func (q *waitQueue) winner(a, b int32) int32 {
	if a < 0 || b >= 0 && q.whole[b][0].before(&q.whole[a][0]) {
		return b
	}
	return a
}

// open lets every line take part in a new pass.
func (q *waitQueue) open() {
	for _, n := range q.shut {
		q.play(n)
	}
	q.shut = q.shut[:0]
	empty := 0
	for i := range q.others {
		b := &q.others[i]
		b.closed = false
		if len(b.line) == 0 {
			empty++
		}
	}
	if empty > 64 && empty > len(q.others)/2 {
		q.compact()
	}
}

// compact forgets kinds of requests that nobody waits with: a workload may have a kind for every job.
func (q *waitQueue) compact() {
	keep := q.others[:0]
	clear(q.index)
	for _, b := range q.others {
		if len(b.line) > 0 {
			q.index[b.req] = len(keep)
			keep = append(keep, b)
		}
	}
	clear(q.others[len(keep):])
	q.others = keep
}

// close leaves the line at place out of the rest of the pass.
func (q *waitQueue) close(place int) {
	if place >= 0 {
		q.shut = append(q.shut, place)
		q.remove(place)
	} else {
		q.others[-2-place].closed = true
	}
}

// top is the first in the line at place.
func (q *waitQueue) top(place int) *entry {
	if place >= 0 {
		return &q.whole[place][0]
	}
	return &q.others[-2-place].line[0]
}

// pop takes the first out of the line at place.
func (q *waitQueue) pop(place int) entry {
	if place < 0 {
		return q.others[-2-place].line.pop()
	}
	e := q.whole[place].pop()
	q.play(place)
	return e
}

// best is the place of the line whose first job ranks before all others', none if no open line has jobs that
// still wait. Of the requests for whole GPUs only those for up to limit take part; where free is false, no
// others do. Jobs that somebody else has started meanwhile are dropped on the way.
func (q *waitQueue) best(v *sim.View, limit int, free bool) int {
	best := none
	for {
		n := q.first(limit)
		if n < 0 {
			break
		}
		if e := &q.whole[n][0]; stale(v, e) {
			q.pop(n)
			continue
		}
		best = n
		break
	}
	if !free {
		return best
	}
	for i := range q.others {
		b := &q.others[i]
		if b.closed {
			continue
		}
		for len(b.line) > 0 && stale(v, &b.line[0]) {
			b.line.pop()
		}
		if len(b.line) > 0 && (best == none || b.line[0].before(q.top(best))) {
			best = -2 - i
		}
	}
	return best
}

// first is the winner among whole[0] to whole[limit], −1 if they are empty.
func (q *waitQueue) first(limit int) int {
	leaves := len(q.tree) / 2
	if leaves == 0 {
		return none
	}
	if limit >= leaves-1 {
		return int(q.tree[1])
	}
	won := int32(none)
	for r := leaves + limit + 1; r > 1; r >>= 1 { // subtrees that end right before r
		if r&1 == 1 {
			won = q.winner(won, q.tree[r-1])
		}
		if r&(r-1) == 0 {
			break // the left edge: nothing lies before it
		}
	}
	return int(won)
}

// unlimited is a limit that every request keeps.
const unlimited = math.MaxInt

func stale(v *sim.View, e *entry) bool {
	return v.State(e.job) != sim.Waiting || v.Pos(e.job) != e.pos
}
