package dagplace

import "clustergym/simulator/dag"

// Builder puts a plan together, task by task in a topological order. Not safe for concurrent use.
type Builder struct {
	q      *dag.Problem
	order  []int32
	insert bool

	next    int // position in order
	times   []dag.Timeline
	end     []float64 // of the last task on each processor
	latest  []float64 // end of the last gap that a task might still go into …
	longest []float64 // … and length of the longest, and a little more
	load    []float64 // seconds of work on each processor so far
	plan    *dag.Plan
	arrival []float64 // of the next task's inputs, by processor
	finish  []float64 // of the next task if it went there; +Inf where it cannot
	ready   float64   // when the next task's parents have ended
}

// NewBuilder returns a builder of plans of q that do the tasks in order; with insert a task may go into the gaps
// between those that are there.
func NewBuilder(q *dag.Problem, order []int32, insert bool) *Builder {
	m := q.Procs()
	b := &Builder{
		q: q, order: order, insert: insert, times: make([]dag.Timeline,
			m), end: make([]float64, m), latest: make([]float64, m), longest: make([]float64, m), load: make([]float64,
			m), plan: dag.NewPlan(q.Tasks()),
		arrival: make([]float64, m), finish: make([]float64, m),
	}
	b.Reset()
	return b
}

// Reset begins a plan anew.
func (b *Builder) Reset() {
	b.next = 0
	for g := range b.times {
		b.times[g].Reset(b.q.Instant())
	}
	clear(b.end)
	clear(b.latest)
	clear(b.longest)
	clear(b.load)
	b.plan.Makespan = 0
	b.look()
}

// Task is the next task, -1 when the plan is complete.
func (b *Builder) Task() int32 {
	if b.next == len(b.order) {
		return -1
	}
	return b.order[b.next]
}

// Done is the number of tasks that are placed.
func (b *Builder) Done() int { return b.next }

// Makespan is the latest end so far.
func (b *Builder) Makespan() float64 { return b.plan.Makespan }

// Finish is when the next task would end, by processor, +Inf where it cannot run. It belongs to the builder and is
// valid until Place.
func (b *Builder) Finish() []float64 { return b.finish }

// Load is the seconds of work of each processor so far. It belongs to the builder.
func (b *Builder) Load() []float64 { return b.load }

// Plan is the plan as far as it is there. It belongs to the builder.
func (b *Builder) Plan() *dag.Plan { return b.plan }

// look finds out where the next task could go.
func (b *Builder) look() {
	i := b.Task()
	if i < 0 {
		return
	}
	b.q.Arrivals(b.arrival, i, b.plan.Proc, b.plan.Finish)
	b.ready = 0
	for _, e := range b.q.Graph.Preds(i) {
		b.ready = max(b.ready, b.plan.Finish[e.Task])
	}
	for g, x := range b.q.Row(i) {
		at := b.arrival[g]
		if at < b.end[g] { // else it is free
			if b.insert && x <= b.longest[g] && at+x <= b.latest[g] {
				at = b.times[g].Earliest(at, x)
			} else {
				at = b.end[g]
			}
		}
		b.finish[g] = at + x
	}
}

// Place puts the next task on processor g, which can run it.
func (b *Builder) Place(g int32) {
	i := b.order[b.next]
	x := b.q.Exec(i, g)
	at := b.times[g].Take(b.arrival[g], x, b.insert)
	b.plan.Proc[i], b.plan.Start[i], b.plan.Finish[i] = g, at, at+x
	b.plan.Makespan = max(b.plan.Makespan, at+x)
	b.end[g] = b.times[g].End()
	if b.insert {
		b.latest[g], b.longest[g] = b.times[g].Gaps()
		b.longest[g] += 1e-9 * b.end[g] // sums of times are rounded
	}
	b.load[g] += x
	b.next++
	b.look()
}

// Earliest is the processor on which the next task ends first.
func (b *Builder) Earliest() int32 {
	best := 0
	for g, f := range b.finish {
		if f < b.finish[best] {
			best = g
		}
	}
	return int32(best)
}

// PrefixLoads fills loads with the position of each task of a plan in running-time space: the seconds of work of its
// processor up to and including itself, in order. total is a buffer, one number for each processor.
func PrefixLoads(q *dag.Problem, order, proc []int32, loads, total []float64) {
	clear(total)
	for _, i := range order {
		total[proc[i]] += q.Exec(i, proc[i])
		loads[i] = total[proc[i]]
	}
}

// FinalLoads is PrefixLoads in the released reading: of all work of its processor.
func FinalLoads(q *dag.Problem, order, proc []int32, loads, total []float64) {
	PrefixLoads(q, order, proc, loads, total)
	for i, g := range proc {
		loads[i] = total[g]
	}
}
