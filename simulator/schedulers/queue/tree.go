package queue

import (
	"math"
	"slices"

	"clustergym/internal/grow"
	"clustergym/internal/rng"
	"clustergym/simulator/sim"
)

// Tree holds the nodes of search trees over jobs; each job is in at most one tree. Trees are balanced by random
// priorities that depend only on the job's position (Seidel and Aragon, "Randomized search trees", Algorithmica
// 1996). A tree is the number of the job at its root, none if it is empty. Every node knows the least time, the least
// need and the sum of needs below it, so that searches by these cost the logarithm of the number of jobs.
type Tree struct {
	Nodes []Node
	order []sim.Job // scratch of rekey
	spine []int32   // likewise
}

// Node is a job in a tree.
type Node struct {
	Key         uint64
	Pos         int
	Time, least int64 // the job's, and the least below
	Need, sum   int64 // the job's, and the sum below
	Few         int64 // the least need below
	left, right int32
	priority    uint32
	in          bool // the job is in a tree
}

// Ordered maps floats to integers in the same order.
func Ordered(key float64) uint64 {
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

// Has reports whether j, at position pos of the trace, is in a tree.
func (t *Tree) Has(j sim.Job, pos int) bool {
	return int(j) < len(t.Nodes) && t.Nodes[j].in && t.Nodes[j].Pos == pos
}

// Reset forgets all nodes.
func (t *Tree) Reset() { t.Nodes = t.Nodes[:0] }

// Insert adds j, which must not be in a tree, to the tree at root and returns its new root.
func (t *Tree) Insert(root int32, j sim.Job, key uint64, pos int, time, need int64) int32 {
	*grow.At(&t.Nodes, j) = Node{
		Key: key, Pos: pos, Time: time, least: time, Need: need, sum: need, Few: need,
		left: None, right: None, priority: uint32(rng.Mix(uint64(pos))), in: true,
	}
	return t.add(root, int32(j))
}

// Remove removes j from the tree at root, which must contain it, and returns the new root.
func (t *Tree) Remove(root int32, j sim.Job) int32 {
	t.Nodes[j].in = false
	return t.cut(root, int32(j))
}

// Rekey gives every job of the tree at root a new key and removes those for which key returns false. It returns the new
// root. If the order stays, as it mostly does from one point to the next, this costs one walk; if not, the tree is
// built anew from the sorted jobs.
func (t *Tree) Rekey(root int32, key func(j sim.Job) (float64, bool)) int32 {
	t.order = t.List(root, t.order[:0])
	kept, sorted := t.order[:0], true
	for _, j := range t.order {
		k, ok := key(j)
		if !ok {
			t.Nodes[j].in = false
			continue
		}
		t.Nodes[j].Key = Ordered(k)
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
func (t *Tree) sort(list []sim.Job) {
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
func (t *Tree) build(sorted []sim.Job) int32 {
	s := t.spine[:0] // from the root to the right
	for _, j := range sorted {
		i, left := int32(j), int32(None)
		for len(s) > 0 && t.Nodes[s[len(s)-1]].priority < t.Nodes[i].priority {
			left, s = s[len(s)-1], s[:len(s)-1]
			t.pull(left)
		}
		t.Nodes[i].left, t.Nodes[i].right = left, None
		if len(s) > 0 {
			t.Nodes[s[len(s)-1]].right = i
		}
		s = append(s, i)
	}
	root := int32(None)
	for len(s) > 0 {
		root, s = s[len(s)-1], s[:len(s)-1]
		t.pull(root)
	}
	t.spine = s
	return root
}

func (t *Tree) before(a, b int32) bool {
	x, y := &t.Nodes[a], &t.Nodes[b]
	return x.Key < y.Key || x.Key == y.Key && x.Pos < y.Pos
}

func (t *Tree) add(root, j int32) int32 {
	if root == None {
		return j
	}
	n := &t.Nodes[root]
	if t.Nodes[j].priority > n.priority {
		t.Nodes[j].left, t.Nodes[j].right = t.split(root, j)
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
func (t *Tree) split(root, j int32) (a, b int32) {
	if root == None {
		return None, None
	}
	n := &t.Nodes[root]
	if t.before(j, root) {
		a, n.left = t.split(n.left, j)
		t.pull(root)
		return a, root
	}
	n.right, b = t.split(n.right, j)
	t.pull(root)
	return root, b
}

func (t *Tree) cut(root, j int32) int32 {
	n := &t.Nodes[root]
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

func (t *Tree) join(a, b int32) int32 {
	switch {
	case a == None:
		return b
	case b == None:
		return a
	case t.Nodes[a].priority > t.Nodes[b].priority:
		t.Nodes[a].right = t.join(t.Nodes[a].right, b)
		t.pull(a)
		return a
	}
	t.Nodes[b].left = t.join(a, t.Nodes[b].left)
	t.pull(b)
	return b
}

func (t *Tree) pull(i int32) {
	n := &t.Nodes[i]
	n.least, n.Few, n.sum = n.Time, n.Need, n.Need
	if n.left != None {
		l := &t.Nodes[n.left]
		n.least, n.Few, n.sum = min(n.least, l.least), min(n.Few, l.Few), n.sum+l.sum
	}
	if n.right != None {
		r := &t.Nodes[n.right]
		n.least, n.Few, n.sum = min(n.least, r.least), min(n.Few, r.Few), n.sum+r.sum
	}
}

// First returns the first node of the tree at root, none if it is empty.
func (t *Tree) First(root int32) int32 {
	if root == None {
		return None
	}
	for t.Nodes[root].left != None {
		root = t.Nodes[root].left
	}
	return root
}

// within returns the first node whose time is at most limit, none if there is none.
func (t *Tree) within(root int32, limit int64) int32 {
	if root == None || t.Nodes[root].least > limit {
		return None
	}
	for {
		n := &t.Nodes[root]
		switch {
		case n.left != None && t.Nodes[n.left].least <= limit:
			root = n.left
		case n.Time <= limit:
			return root
		default:
			root = n.right
		}
	}
}

// Rank is a place in rank order.
type Rank struct {
	Key uint64
	Pos int
}

// Before reports whether a job of rank a goes before one of rank b.
func (a Rank) Before(b Rank) bool { return a.Key < b.Key || a.Key == b.Key && a.Pos < b.Pos }

// Beginning is before every job.
var Beginning = Rank{Pos: -1}

// behind reports whether node i ranks after at.
func (t *Tree) behind(i int32, at Rank) bool {
	n := &t.Nodes[i]
	return n.Key > at.Key || n.Key == at.Key && n.Pos > at.Pos
}

// Next returns the first node behind at whose time is at most limit and whose need is at most most, none if there is
// none.
func (t *Tree) Next(root int32, at Rank, limit, most int64) int32 {
	for root != None && !t.behind(root, at) {
		root = t.Nodes[root].right
	}
	if root == None {
		return None
	}
	n := &t.Nodes[root]
	if n.least > limit || n.Few > most {
		return None
	}
	if i := t.Next(n.left, at, limit, most); i != None {
		return i
	}
	if n.Time <= limit && n.Need <= most {
		return root
	}
	return t.Next(n.right, at, limit, most)
}

// Fewest returns the least need of the nodes behind at, MaxInt64 if there are none.
func (t *Tree) Fewest(root int32, at Rank) int64 {
	few := int64(math.MaxInt64)
	for root != None {
		n := &t.Nodes[root]
		if !t.behind(root, at) {
			root = n.right
			continue
		}
		few = min(few, n.Need)
		if n.right != None {
			few = min(few, t.Nodes[n.right].Few)
		}
		root = n.left
	}
	return few
}

// reaching returns the first node at which the needs, added up in order, reach want; none if the total does not.
func (t *Tree) reaching(root int32, want int64) int32 {
	if root == None || t.Nodes[root].sum < want {
		return None
	}
	for {
		n := &t.Nodes[root]
		if n.left != None {
			sum := t.Nodes[n.left].sum
			if sum >= want {
				root = n.left
				continue
			}
			want -= sum
		}
		if n.Need >= want {
			return root
		}
		want -= n.Need
		root = n.right
	}
}

// upTo returns the sum of the needs of all nodes with keys up to key.
func (t *Tree) upTo(root int32, key uint64) int64 {
	sum := int64(0)
	for root != None {
		n := &t.Nodes[root]
		if n.Key > key {
			root = n.left
			continue
		}
		sum += n.Need
		if n.left != None {
			sum += t.Nodes[n.left].sum
		}
		root = n.right
	}
	return sum
}

// List appends the tree at root to dst in order.
func (t *Tree) List(root int32, dst []sim.Job) []sim.Job {
	for root != None {
		dst = t.List(t.Nodes[root].left, dst)
		dst = append(dst, sim.Job(root))
		root = t.Nodes[root].right
	}
	return dst
}
