package dag

import (
	"fmt"
	"math/bits"
	"slices"
)

// Evaluator computes the times of plans that differ only in their processors. Tasks run in one topological order:
// each as soon as its inputs and its processor allow, and never before an earlier task of the order on the same
// processor. It allocates nothing after NewEvaluator. Not safe for concurrent use.
type Evaluator struct {
	q      *Problem
	order  []int32
	pos    []int32 // of a task in order
	proc   []int32
	start  []float64
	finish []float64
	avail  []float64 // by processor, while a whole plan is evaluated

	// For Move: the neighbours of each task on its processor, -1 = none, and the tasks to evaluate again.
	linked     bool
	prev, next []int32
	tail       []int32  // last task of each processor
	dirty      []uint64 // by position, one bit each
	blocks     []float64
}

// blockLen is the number of positions that share one maximum of finish times. It equals the bits in a word of dirty.
const blockLen = 64

// NewEvaluator returns an evaluator of plans that run the tasks in order; nil means the graph's order. It panics if
// order does not contain every task once, parents first: planners make it.
func NewEvaluator(q *Problem, order []int32) *Evaluator {
	if order == nil {
		order = q.Graph.Order()
	}
	n := q.n
	e := &Evaluator{
		q: q, order: slices.Clone(order), pos: make([]int32,
			n), proc: make([]int32, n), start: make([]float64, n), finish: make([]float64, n),
		avail: make([]float64, q.m), prev: make([]int32, n), next: make([]int32, n), tail: make([]int32, q.m),
		dirty: make([]uint64, (n+blockLen-1)/blockLen), blocks: make([]float64, (n+blockLen-1)/blockLen),
	}
	for i := range e.pos {
		e.pos[i] = -1
	}
	for k, i := range order {
		for _, p := range q.Graph.Preds(i) {
			if e.pos[p.Task] < 0 {
				panic(fmt.Sprintf("dag: task %d stands before task %d, which it needs", i, p.Task))
			}
		}
		e.pos[i] = int32(k)
	}
	if len(order) != n || slices.Contains(e.pos, -1) {
		panic(fmt.Sprintf("dag: an order of %d of %d tasks", len(order), n))
	}
	return e
}

// Order returns the order of tasks. It belongs to the evaluator.
func (e *Evaluator) Order() []int32 { return e.order }

// Makespan evaluates the whole plan that puts task i on proc[i], in time proportional to tasks and edges. A task on a
// processor that cannot run it ends at infinity.
func (e *Evaluator) Makespan(proc []int32) float64 {
	copy(e.proc, proc)
	clear(e.avail)
	e.linked = false
	q, makespan := e.q, 0.0
	for _, i := range e.order {
		g := e.proc[i]
		t := max(e.ready(i, g), e.avail[g])
		f := t + q.exec[int(i)*q.m+int(g)]
		e.start[i], e.finish[i], e.avail[g] = t, f, f
		makespan = max(makespan, f)
	}
	return makespan
}

// ready returns when the inputs of task i have arrived on processor g.
func (e *Evaluator) ready(i, g int32) float64 {
	t := 0.0
	for _, p := range e.q.Graph.Preds(i) {
		t = max(t, e.finish[p.Task]+e.q.Comm(p.Bytes, e.proc[p.Task], g))
	}
	return t
}

// Finish returns the end of every task in the plan evaluated last. The slice belongs to the evaluator.
func (e *Evaluator) Finish() []float64 { return e.finish }

// Proc returns the processor of every task in the plan evaluated last. The slice belongs to the evaluator.
func (e *Evaluator) Proc() []int32 { return e.proc }

// Plan fills p with the plan evaluated last.
func (e *Evaluator) Plan(p *Plan) {
	copy(p.Proc, e.proc)
	copy(p.Start, e.start)
	copy(p.Finish, e.finish)
	p.Makespan = slices.Max(e.finish)
}

// link prepares moves after a whole evaluation.
func (e *Evaluator) link() {
	for g := range e.tail {
		e.tail[g] = -1
	}
	for _, i := range e.order {
		g := e.proc[i]
		e.prev[i], e.next[i] = e.tail[g], -1
		if e.tail[g] >= 0 {
			e.next[e.tail[g]] = i
		}
		e.tail[g] = i
	}
	for b := range e.blocks {
		e.refresh(b)
	}
	e.linked = true
}

// refresh recomputes the latest end among the positions of block b.
func (e *Evaluator) refresh(b int) {
	most := 0.0
	for _, i := range e.order[b*blockLen : min((b+1)*blockLen, len(e.order))] {
		most = max(most, e.finish[i])
	}
	e.blocks[b] = most
}

// Move moves task i of the plan evaluated last to processor g and returns the new makespan, bit for bit what Makespan
// returns for the changed plan. It evaluates only tasks whose times can have changed, so its cost is proportional to
// the change, which dies out at tasks that wait for something else anyway. Moving back undoes it.
func (e *Evaluator) Move(i, g int32) float64 {
	if !e.linked {
		e.link()
	}
	if h := e.proc[i]; h != g {
		e.unlink(i, h)
		e.insert(i, g)
		e.mark(i)
		for _, s := range e.q.Graph.Succs(i) { // its transfers take other links, even if it ends at the same time
			e.mark(s.Task)
		}
		e.propagate(int(e.pos[i]))
	}
	most := 0.0
	for _, b := range e.blocks {
		most = max(most, b)
	}
	return most
}

func (e *Evaluator) unlink(i, h int32) {
	p, x := e.prev[i], e.next[i]
	if p >= 0 {
		e.next[p] = x
	}
	if x >= 0 {
		e.prev[x] = p
		e.mark(x)
	} else {
		e.tail[h] = p
	}
}

// insert links task i among the tasks of processor g. It searches from the end of their list and at the same time
// backwards through the order from i's position, and stops at whichever search succeeds first.
func (e *Evaluator) insert(i, g int32) {
	at := e.pos[i]
	e.proc[i] = g
	p, back := e.tail[g], at-1
	for p >= 0 && e.pos[p] > at {
		p = e.prev[p]
		if back >= 0 {
			if e.proc[e.order[back]] == g {
				p = e.order[back]
				break
			}
			back--
		}
	}
	x := int32(-1)
	if p >= 0 {
		x = e.next[p]
		e.next[p] = i
	} else if e.tail[g] >= 0 { // it becomes the first
		x = e.tail[g]
		for e.prev[x] >= 0 {
			x = e.prev[x]
		}
	}
	e.prev[i], e.next[i] = p, x
	if x >= 0 {
		e.prev[x] = i
		e.mark(x)
	} else {
		e.tail[g] = i
	}
}

func (e *Evaluator) mark(i int32) { e.dirty[e.pos[i]>>6] |= 1 << (e.pos[i] & 63) }

// propagate evaluates the marked tasks, in order from position from, and marks those that each change affects.
func (e *Evaluator) propagate(from int) {
	for w := from >> 6; w < len(e.dirty); w++ {
		stale := false
		for e.dirty[w] != 0 {
			k := w<<6 | bits.TrailingZeros64(e.dirty[w])
			e.dirty[w] &= e.dirty[w] - 1
			i := e.order[k]
			g := e.proc[i]
			t := e.ready(i, g)
			if p := e.prev[i]; p >= 0 {
				t = max(t, e.finish[p])
			}
			f := t + e.q.exec[int(i)*e.q.m+int(g)]
			e.start[i] = t
			if f == e.finish[i] {
				continue
			}
			e.finish[i], stale = f, true
			if x := e.next[i]; x >= 0 {
				e.mark(x)
			}
			for _, s := range e.q.Graph.Succs(i) {
				e.mark(s.Task)
			}
		}
		if stale {
			e.refresh(w)
		}
	}
}

// Blocker returns the task whose end or transfer task i waits for in the plan evaluated last, -1 if i starts at 0.
func (e *Evaluator) Blocker(i int32) int32 {
	if !e.linked {
		e.link()
	}
	if e.start[i] == 0 {
		return -1
	}
	if p := e.prev[i]; p >= 0 && e.finish[p] == e.start[i] {
		return p
	}
	g := e.proc[i]
	for _, p := range e.q.Graph.Preds(i) {
		if e.finish[p.Task]+e.q.Comm(p.Bytes, e.proc[p.Task], g) == e.start[i] {
			return p.Task
		}
	}
	return -1
}
