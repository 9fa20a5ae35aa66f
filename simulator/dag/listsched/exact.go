package listsched

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"clustergym/simulator/dag"
)

// Exact is the result of a search for the least makespan.
type Exact struct {
	Plan   *dag.Plan
	Proven bool    // no plan is shorter
	Bound  float64 // a lower bound on the makespan
	Nodes  int     // nodes looked at
}

// ExactMost is the size of the largest graph that is searched. For larger ones Optimum returns the best of the list
// schedules, proven only if it meets the bound.
const ExactMost = 64

// DefaultNodes is the number of nodes after which Optimum stops by default: some minutes on graphs of a dozen tasks
// that need that many.
const DefaultNodes = 50_000_000

// keptStates is the greatest number of states remembered, over all sets of tasks, to recognise worse ones.
const keptStates = 2_000_000

// Optimum finds a plan of the least makespan by branch and bound, or reports that it stopped after nodes nodes (0 =
// DefaultNodes). It begins with the best of the list schedules.
//
// A node is a partial schedule. Its children plan one more task, on one processor, at the earliest time after what is
// there and not before the task planned last. This covers, in order of starts, every schedule in which no task could
// start earlier while all processors keep their orders, and one of these is optimal. A node is cut if it cannot end
// earlier than the best plan known: by the longest path through what is left (each child where it is best, counting
// transfers and busy processors), or by the work that is left. It is also cut if another node of the same tasks is
// nowhere behind it, for any processor and any input. Of equal processors that are still empty only the first is
// tried.
func Optimum(ctx context.Context, q *dag.Problem, o Options, nodes int) (*Exact, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := New(q, o)
	best := p.HEFT(true).Clone()
	for _, plan := range []func() *dag.Plan{func() *dag.Plan { return p.HEFT(false) }, p.CPOP, p.PEFT} {
		if c := plan(); c.Makespan < best.Makespan {
			best.CopyFrom(c)
		}
	}
	if nodes <= 0 {
		nodes = DefaultNodes
	}
	s := newSearch(q, best, nodes)
	x := &Exact{Plan: best, Bound: s.bound(0)}
	if x.Bound >= s.limit() {
		x.Proven = true
		return x, nil
	}
	if q.Tasks() > ExactMost {
		return x, nil
	}
	err := s.run(ctx, 0)
	x.Nodes = s.nodes
	if err != nil {
		return nil, err
	}
	if x.Proven = !s.stopped; x.Proven {
		x.Bound = best.Makespan
	}
	return x, nil
}

type search struct {
	q       *dag.Problem
	n, m    int
	best    *dag.Plan
	most    int // nodes
	nodes   int
	stopped bool

	tail  []float64 // [task, processor]: least time from its start to the end of all
	least []float64 // shortest time of each task
	alike []int     // by processor: the first one equal to it

	done    uint64
	missing []int32
	proc    []int32
	start   []float64
	finish  []float64
	avail   []float64
	used    []int32 // tasks on each processor
	left    float64 // sum of least over unplanned tasks

	est    []float64 // earliest starts in bound, [task, processor]
	moves  [][]move  // by depth
	vector []float64 // the current state
	seen   map[uint64][]float64
	kept   int
}

type move struct {
	task, proc   int32
	start, bound float64
}

func newSearch(q *dag.Problem, best *dag.Plan, nodes int) *search {
	n, m := q.Tasks(), q.Procs()
	s := &search{
		q: q, n: n, m: m, best: best, most: nodes, tail: make([]float64,
			n*m), least: make([]float64, n), alike: make([]int, m),
		missing: make([]int32, n), proc: make([]int32, n), start: make([]float64, n), finish: make([]float64, n),
		avail: make([]float64,
			m), used: make([]int32, m), est: make([]float64, n*m), moves: make([][]move, n+1), seen: map[uint64][]float64{},
	}
	order := q.Graph.Order()
	for k := n - 1; k >= 0; k-- {
		i := order[k]
		s.missing[i] = int32(len(q.Graph.Preds(i)))
		s.least[i] = slices.Min(q.Row(i))
		s.left += s.least[i]
		for g, x := range q.Row(i) {
			most := 0.0
			for _, e := range q.Graph.Succs(i) {
				child := math.Inf(1)
				for h := range int32(m) {
					child = min(child, q.Comm(e.Bytes, int32(g), h)+s.tail[int(e.Task)*m+int(h)])
				}
				most = max(most, child)
			}
			s.tail[int(i)*m+g] = x + most
		}
	}
	for g := range m {
		s.alike[g] = g
		for h := range g {
			if s.alike[h] == h && s.same(h, g) {
				s.alike[g] = h
				break
			}
		}
	}
	return s
}

// same reports whether processors g and h are interchangeable.
func (s *search) same(g, h int) bool {
	for i := range int32(s.n) {
		if s.q.Exec(i, int32(g)) != s.q.Exec(i, int32(h)) {
			return false
		}
	}
	p := s.q.Platform
	if !p.Linked() {
		return true
	}
	for k := range s.m {
		if k != g && k != h && (p.Bandwidth(g, k) != p.Bandwidth(h, k) || p.Bandwidth(k, g) != p.Bandwidth(k, h)) {
			return false
		}
	}
	return p.Bandwidth(g, h) == p.Bandwidth(h, g)
}

// limit returns the makespan that a plan must stay below to be of interest. It ignores improvements within rounding.
func (s *search) limit() float64 { return s.best.Makespan * (1 - 1e-12) }

// bound returns a lower bound on the end of any plan that continues from here. last is the start of the task planned
// last.
func (s *search) bound(last float64) float64 {
	m, bound := s.m, 0.0
	for _, a := range s.avail {
		bound = max(bound, a)
	}
	for _, i := range s.q.Graph.Order() {
		if s.n <= ExactMost && s.done>>uint(i)&1 == 1 {
			continue
		}
		row := s.est[int(i)*m : (int(i)+1)*m]
		task := math.Inf(1)
		for g := range row {
			at := max(last, s.avail[g])
			for _, e := range s.q.Graph.Preds(i) {
				if s.n <= ExactMost && s.done>>uint(e.Task)&1 == 1 {
					at = max(at, s.finish[e.Task]+s.q.Comm(e.Bytes, s.proc[e.Task], int32(g)))
					continue
				}
				from := math.Inf(1)
				for h := range int32(m) {
					from = min(from, s.est[int(e.Task)*m+int(h)]+s.q.Exec(e.Task, h)+s.q.Comm(e.Bytes, h, int32(g)))
				}
				at = max(at, from)
			}
			row[g] = at
			task = min(task, at+s.tail[int(i)*m+g])
		}
		bound = max(bound, task)
	}
	room := s.left
	for _, a := range s.avail {
		room += max(a, last)
	}
	return max(bound, room/float64(m))
}

// run searches all continuations of the current node.
func (s *search) run(ctx context.Context, depth int) error {
	if depth == s.n {
		copy(s.best.Proc, s.proc)
		copy(s.best.Start, s.start)
		copy(s.best.Finish, s.finish)
		s.best.Makespan = slices.Max(s.finish)
		return nil
	}
	last := 0.0
	if depth > 0 {
		last = s.moves[depth-1][0].start // the move under way is first: see below
	}
	moves := s.moves[depth][:0]
	for i := range int32(s.n) {
		if s.missing[i] != 0 || s.done>>uint(i)&1 == 1 {
			continue
		}
		for g := range int32(s.m) {
			x := s.q.Exec(i, g)
			if math.IsInf(x, 1) || s.used[g] == 0 && s.skips(int(g)) {
				continue
			}
			at := s.avail[g]
			for _, e := range s.q.Graph.Preds(i) {
				at = max(at, s.finish[e.Task]+s.q.Comm(e.Bytes, s.proc[e.Task], g))
			}
			if at < last || at+s.tail[int(i)*s.m+int(g)] >= s.limit() {
				continue
			}
			s.apply(i, g, at)
			b := s.bound(at)
			if b < s.limit() && !s.dominated(at) {
				moves = append(moves, move{i, g, at, b})
			}
			s.revert(i, g)
			if s.nodes++; s.nodes%1024 == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			if s.nodes >= s.most {
				s.stopped = true
				return nil
			}
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int {
		return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(a.start, b.start))
	})
	s.moves[depth] = moves
	for k := range moves {
		v := moves[k]
		if v.bound >= s.limit() {
			break
		}
		moves[0] = v // so that the next depth finds the start; moves before k are done
		old := s.avail[v.proc]
		s.apply(v.task, v.proc, v.start)
		err := s.run(ctx, depth+1)
		s.revert(v.task, v.proc)
		s.avail[v.proc] = old
		if err != nil || s.stopped {
			return err
		}
	}
	return nil
}

// skips reports whether empty processor g need not be tried: an equal one before it is empty too.
func (s *search) skips(g int) bool {
	for h := s.alike[g]; h < g; h++ {
		if s.alike[h] == s.alike[g] && s.used[h] == 0 {
			return true
		}
	}
	return false
}

func (s *search) apply(i, g int32, at float64) {
	s.proc[i], s.start[i], s.finish[i] = g, at, at+s.q.Exec(i, g)
	s.avail[g] = s.finish[i]
	s.used[g]++
	s.done |= 1 << uint(i)
	s.left -= s.least[i]
	for _, e := range s.q.Graph.Succs(i) {
		s.missing[e.Task]--
	}
}

// revert removes the task planned last. When its processor was free before follows from the other tasks on it.
func (s *search) revert(i, g int32) {
	s.used[g]--
	s.done &^= 1 << uint(i)
	s.left += s.least[i]
	for _, e := range s.q.Graph.Succs(i) {
		s.missing[e.Task]++
	}
	s.avail[g] = 0
	for d := s.done; d != 0; d &= d - 1 {
		if k := bits.TrailingZeros64(d); s.proc[k] == g {
			s.avail[g] = max(s.avail[g], s.finish[k])
		}
	}
}

// dominated reports whether a node of the same tasks was seen from which everything can continue at least as early.
// If not, it remembers this one.
func (s *search) dominated(last float64) bool {
	v := s.vector[:0]
	for _, a := range s.avail {
		v = append(v, max(a, last))
	}
	for i := range int32(s.n) {
		if s.done>>uint(i)&1 == 1 || int(s.missing[i]) == len(s.q.Graph.Preds(i)) {
			continue
		}
		for g := range int32(s.m) {
			at := v[g]
			for _, e := range s.q.Graph.Preds(i) {
				if s.done>>uint(e.Task)&1 == 1 {
					at = max(at, s.finish[e.Task]+s.q.Comm(e.Bytes, s.proc[e.Task], g))
				}
			}
			v = append(v, at)
		}
	}
	s.vector = v
	w := len(v)
	all := s.seen[s.done]
	keep := 0
	for at := 0; at < len(all); at += w {
		old := all[at : at+w]
		worse, better := true, true
		for k, x := range old {
			worse = worse && v[k] >= x
			better = better && v[k] <= x
			if !worse && !better {
				break
			}
		}
		if worse {
			return true // nothing was removed so far: a state that v beats and one that beats v are never both kept
		}
		if !better {
			if keep != at {
				copy(all[keep:], old)
			}
			keep += w
		}
	}
	s.kept -= (len(all) - keep) / w
	all = all[:keep]
	if s.kept < keptStates {
		all = append(all, v...)
		s.kept++
	}
	s.seen[s.done] = all
	return false
}
