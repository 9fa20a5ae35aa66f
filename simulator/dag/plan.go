package dag

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Plan is a schedule: where each task runs and when.
type Plan struct {
	Proc          []int32
	Start, Finish []float64
	Makespan      float64
}

// NewPlan returns an empty plan of n tasks.
func NewPlan(n int) *Plan {
	return &Plan{Proc: make([]int32, n), Start: make([]float64, n), Finish: make([]float64, n)}
}

// Clone returns a copy.
func (p *Plan) Clone() *Plan {
	return &Plan{Proc: slices.Clone(p.Proc), Start: slices.Clone(p.Start), Finish: slices.Clone(p.Finish),
		Makespan: p.Makespan}
}

// CopyFrom makes p equal to src, which must have as many tasks.
func (p *Plan) CopyFrom(src *Plan) {
	copy(p.Proc, src.Proc)
	copy(p.Start, src.Start)
	copy(p.Finish, src.Finish)
	p.Makespan = src.Makespan
}

// slack is the difference, relative to the makespan, that Check attributes to rounding.
const slack = 1e-9

// Check returns an error if p is not a valid schedule of q. Every task must be on a processor that can run it, for as
// long as it takes there, after all that it needs has arrived, and no two at once on one processor. Check computes
// every time anew from the problem, in none of the ways that planners do. With transfers false, edges carry nothing.
func Check(q *Problem, p *Plan, transfers bool) error {
	n := q.Graph.Len()
	if len(p.Proc) != n || len(p.Start) != n || len(p.Finish) != n {
		return fmt.Errorf("dag: a plan of %d, %d and %d tasks, want %d", len(p.Proc), len(p.Start), len(p.Finish), n)
	}
	latest := 0.0
	for i := range n {
		latest = max(latest, p.Finish[i])
	}
	eps := slack * max(latest, math.SmallestNonzeroFloat64)
	if p.Makespan != latest {
		return fmt.Errorf("dag: the makespan is %v, and the latest end %v", p.Makespan, latest)
	}
	id := func(i int32) string { return q.Graph.Task(i).ID }
	for i := range int32(n) {
		g := p.Proc[i]
		if g < 0 || int(g) >= q.Platform.Len() {
			return fmt.Errorf("dag: task %s is on processor %d of %d", id(i), g, q.Platform.Len())
		}
		x := q.Exec(i, g)
		if math.IsInf(x, 1) {
			return fmt.Errorf("dag: task %s cannot run on processor %s", id(i), q.Platform.Processor(int(g)).ID)
		}
		if !(p.Start[i] >= 0) || !(math.Abs(p.Finish[i]-p.Start[i]-x) <= eps) {
			return fmt.Errorf("dag: task %s runs from %v to %v, and takes %v s", id(i), p.Start[i], p.Finish[i], x)
		}
		for _, e := range q.Graph.Preds(i) {
			arrival := p.Finish[e.Task]
			if h := p.Proc[e.Task]; transfers && h != g {
				arrival += e.Bytes / q.Platform.Bandwidth(int(h), int(g))
			}
			if p.Start[i] < arrival-eps {
				return fmt.Errorf("dag: task %s starts at %v, before what %s sends arrives at %v", id(i), p.Start[i], id(e.Task),
					arrival)
			}
		}
	}
	by := make([]int32, n)
	for i := range by {
		by[i] = int32(i)
	}
	slices.SortFunc(by, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.Proc[a], p.Proc[b]), cmp.Compare(p.Start[a], p.Start[b]),
			cmp.Compare(p.Finish[a], p.Finish[b]))
	})
	for k := 1; k < n; k++ {
		a, b := by[k-1], by[k]
		if p.Proc[a] == p.Proc[b] && p.Start[b] < p.Finish[a]-eps {
			return fmt.Errorf("dag: task %s starts at %v while %s is on its processor until %v", id(b), p.Start[b], id(a),
				p.Finish[a])
		}
	}
	return nil
}

// Used returns the number of processors that have a task.
func (p *Plan) Used() int {
	seen := map[int32]bool{}
	for _, g := range p.Proc {
		seen[g] = true
	}
	return len(seen)
}
