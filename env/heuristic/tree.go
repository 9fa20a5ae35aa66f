package heuristic

import (
	"math"
	"slices"

	"clustergym/env/sim"
	"clustergym/internal/rng"
)

// treap holds the nodes of search trees over jobs; each job is in at most one tree. Trees are balanced by random
// priorities that depend only on the job's position (Seidel and Aragon, "Randomized search trees", Algorithmica
// 1996). A tree is the number of the job at its root, none if it is empty. Every node knows the least time, the least
// need and the sum of needs below it, so that searches by these cost the logarithm of the number of jobs.
type treap struct {
	nodes []treeNode
	order []sim.Job // scratch of rekey
	spine []int32   // likewise
}

type treeNode struct {
	key         uint64
	pos         int
	time, least int64 // the job's, and the least below
	need, sum   int64 // the job's, and the sum below
	few         int64 // the least need below
	left, right int32
	priority    uint32
	in          bool // the job is in a tree
}

// ordered maps floats to integers in the same order.
func ordered(key float64) uint64 {
	u := math.Float64bits(key + 0) // −0 becomes 0
	if u>>63 == 1 {
		return ^u
	}
	return u | 1<<63
}

// unordered is the inverse of ordered.
func unordered(u uint64) float64 {
	if u>>63 == 1 {
		return math.Float64frombits(u &^ (1 << 63))
	}
	return math.Float64frombits(^u)
}

// has reports whether j, at position pos of the trace, is in a tree.
func (t *treap) has(j sim.Job, pos int) bool {
	return int(j) < len(t.nodes) && t.nodes[j].in && t.nodes[j].pos == pos
}

func (t *treap) reset() { t.nodes = t.nodes[:0] }

// insert adds j, which must not be in a tree, to the tree at root and returns its new root.
func (t *treap) insert(root int32, j sim.Job, key uint64, pos int, time, need int64) int32 {
	for int(j) >= len(t.nodes) {
		t.nodes = append(t.nodes, treeNode{})
	}
	t.nodes[j] = treeNode{
		key: key, pos: pos, time: time, least: time, need: need, sum: need, few: need,
		left: none, right: none, priority: uint32(rng.Mix(uint64(pos))), in: true,
	}
	return t.add(root, int32(j))
}

// remove removes j from the tree at root, which must contain it, and returns the new root.
func (t *treap) remove(root int32, j sim.Job) int32 {
	t.nodes[j].in = false
	return t.cut(root, int32(j))
}

// rekey gives every job of the tree at root a new key and removes those for which key returns false. It returns the new
// root. If the order stays, as it mostly does from one point to the next, this costs one walk; if not, the tree is built
// anew from the sorted jobs.
func (t *treap) rekey(root int32, key func(j sim.Job) (float64, bool)) int32 {
	t.order = t.list(root, t.order[:0])
	kept, sorted := t.order[:0], true
	for _, j := range t.order {
		k, ok := key(j)
		if !ok {
			t.nodes[j].in = false
			continue
		}
		t.nodes[j].key = ordered(k)
		sorted = sorted && (len(kept) == 0 || t.before(int32(kept[len(kept)-1]), int32(j)))
		kept = append(kept, j)
	}
	if sorted && len(kept) == len(t.order) {
		return root
	}
	if !sorted {
		t.sort(kept)
	}
	return t.build(kept)
}

// sort sorts by key and position. Few jobs are out of place as a rule, and not far.
func (t *treap) sort(list []sim.Job) {
	moves := 8 * len(list)
	for i := 1; i < len(list); i++ {
		x, k := list[i], i
		for ; k > 0 && t.before(int32(x), int32(list[k-1])); k-- {
			list[k] = list[k-1]
		}
		list[k] = x
		if moves -= i - k; moves < 0 {
			slices.SortFunc(list, func(a, b sim.Job) int {
				if t.before(int32(a), int32(b)) {
					return -1
				}
				return 1 // no two are equal
			})
			return
		}
	}
}

// build makes a tree of jobs that are sorted and returns its root.
func (t *treap) build(sorted []sim.Job) int32 {
	s := t.spine[:0] // from the root to the right
	for _, j := range sorted {
		i, left := int32(j), int32(none)
		for len(s) > 0 && t.nodes[s[len(s)-1]].priority < t.nodes[i].priority {
			left, s = s[len(s)-1], s[:len(s)-1]
			t.pull(left)
		}
		t.nodes[i].left, t.nodes[i].right = left, none
		if len(s) > 0 {
			t.nodes[s[len(s)-1]].right = i
		}
		s = append(s, i)
	}
	root := int32(none)
	for len(s) > 0 {
		root, s = s[len(s)-1], s[:len(s)-1]
		t.pull(root)
	}
	t.spine = s
	return root
}

func (t *treap) before(a, b int32) bool {
	x, y := &t.nodes[a], &t.nodes[b]
	return x.key < y.key || x.key == y.key && x.pos < y.pos
}

func (t *treap) add(root, j int32) int32 {
	if root == none {
		return j
	}
	n := &t.nodes[root]
	if t.nodes[j].priority > n.priority {
		t.nodes[j].left, t.nodes[j].right = t.split(root, j)
		t.pull(j)
		return j
	}
	if t.before(j, root) {
		n.left = t.add(n.left, j)
	} else {
		n.right = t.add(n.right, j)
	}
	t.pull(root)
	return root
}

// split divides the tree at root into what comes before j and what comes after.
func (t *treap) split(root, j int32) (a, b int32) {
	if root == none {
		return none, none
	}
	n := &t.nodes[root]
	if t.before(j, root) {
		a, n.left = t.split(n.left, j)
		t.pull(root)
		return a, root
	}
	n.right, b = t.split(n.right, j)
	t.pull(root)
	return root, b
}

func (t *treap) cut(root, j int32) int32 {
	n := &t.nodes[root]
	if root == j {
		return t.join(n.left, n.right)
	}
	if t.before(j, root) {
		n.left = t.cut(n.left, j)
	} else {
		n.right = t.cut(n.right, j)
	}
	t.pull(root)
	return root
}

func (t *treap) join(a, b int32) int32 {
	switch {
	case a == none:
		return b
	case b == none:
		return a
	case t.nodes[a].priority > t.nodes[b].priority:
		t.nodes[a].right = t.join(t.nodes[a].right, b)
		t.pull(a)
		return a
	}
	t.nodes[b].left = t.join(a, t.nodes[b].left)
	t.pull(b)
	return b
}

func (t *treap) pull(i int32) {
	n := &t.nodes[i]
	n.least, n.few, n.sum = n.time, n.need, n.need
	if n.left != none {
		l := &t.nodes[n.left]
		n.least, n.few, n.sum = min(n.least, l.least), min(n.few, l.few), n.sum+l.sum
	}
	if n.right != none {
		r := &t.nodes[n.right]
		n.least, n.few, n.sum = min(n.least, r.least), min(n.few, r.few), n.sum+r.sum
	}
}

// first returns the first node of the tree at root, none if it is empty.
func (t *treap) first(root int32) int32 {
	if root == none {
		return none
	}
	for t.nodes[root].left != none {
		root = t.nodes[root].left
	}
	return root
}

// within returns the first node whose time is at most limit, none if there is none.
func (t *treap) within(root int32, limit int64) int32 {
	if root == none || t.nodes[root].least > limit {
		return none
	}
	for {
		n := &t.nodes[root]
		switch {
		case n.left != none && t.nodes[n.left].least <= limit:
			root = n.left
		case n.time <= limit:
			return root
		default:
			root = n.right
		}
	}
}

// rankedAt is a place in rank order.
type rankedAt struct {
	key uint64
	pos int
}

// beginning is before every job.
var beginning = rankedAt{pos: -1}

// behind reports whether node i ranks after at.
func (t *treap) behind(i int32, at rankedAt) bool {
	n := &t.nodes[i]
	return n.key > at.key || n.key == at.key && n.pos > at.pos
}

// next returns the first node behind at whose time is at most limit and whose need is at most most, none if there is
// none.
func (t *treap) next(root int32, at rankedAt, limit, most int64) int32 {
	for root != none && !t.behind(root, at) {
		root = t.nodes[root].right
	}
	if root == none {
		return none
	}
	n := &t.nodes[root]
	if n.least > limit || n.few > most {
		return none
	}
	if i := t.next(n.left, at, limit, most); i != none {
		return i
	}
	if n.time <= limit && n.need <= most {
		return root
	}
	return t.next(n.right, at, limit, most)
}

// fewest returns the least need of the nodes behind at, MaxInt64 if there are none.
func (t *treap) fewest(root int32, at rankedAt) int64 {
	few := int64(math.MaxInt64)
	for root != none {
		n := &t.nodes[root]
		if !t.behind(root, at) {
			root = n.right
			continue
		}
		few = min(few, n.need)
		if n.right != none {
			few = min(few, t.nodes[n.right].few)
		}
		root = n.left
	}
	return few
}

// reaching returns the first node at which the needs, added up in order, reach want; none if the total does not.
func (t *treap) reaching(root int32, want int64) int32 {
	if root == none || t.nodes[root].sum < want {
		return none
	}
	for {
		n := &t.nodes[root]
		if n.left != none {
			sum := t.nodes[n.left].sum
			if sum >= want {
				root = n.left
				continue
			}
			want -= sum
		}
		if n.need >= want {
			return root
		}
		want -= n.need
		root = n.right
	}
}

// upTo returns the sum of the needs of all nodes with keys up to key.
func (t *treap) upTo(root int32, key uint64) int64 {
	sum := int64(0)
	for root != none {
		n := &t.nodes[root]
		if n.key > key {
			root = n.left
			continue
		}
		sum += n.need
		if n.left != none {
			sum += t.nodes[n.left].sum
		}
		root = n.right
	}
	return sum
}

// list appends the tree at root to dst in order.
func (t *treap) list(root int32, dst []sim.Job) []sim.Job {
	for root != none {
		dst = t.list(t.nodes[root].left, dst)
		dst = append(dst, sim.Job(root))
		root = t.nodes[root].right
	}
	return dst
}
