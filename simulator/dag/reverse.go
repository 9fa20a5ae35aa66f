package dag

import (
	"cmp"
	"slices"
)

// Reversed returns the problem read from its end: every edge is turned round, and the bandwidth from g to h is that
// from h to g. A plan of it, read backwards, is a plan of q of the same makespan (Mirrored).
func (q *Problem) Reversed() (*Problem, error) {
	edges := make([]Edge, 0, q.Graph.edges)
	for i := range int32(q.n) {
		for _, e := range q.Graph.Preds(i) {
			edges = append(edges, Edge{From: i, To: e.Task, Bytes: e.Bytes})
		}
	}
	g, err := NewGraph(q.Graph.Name, q.Graph.tasks, edges)
	if err != nil {
		return nil, err
	}
	r := *q
	r.Graph = g
	if q.Platform.matrix != nil {
		m := q.m
		r.Platform, err = NewPlatformOfRows(q.Platform.procs, func(g int) []float64 {
			row := make([]float64, m)
			for h := range row {
				row[h] = q.Platform.matrix[h*m+g]
			}
			return row
		})
		if err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// Mirrored returns the plan of q that p, a plan of q.Reversed(), is when read backwards: every task on its processor,
// in the reversed order of starts, as early as it can then begin. Its makespan is at most p's, but for rounding.
func (q *Problem) Mirrored(p *Plan) *Plan {
	// Tasks that end last in p begin first and, of those that end together, the ones that take no time.
	last := make([]int32, q.n)
	for i := range last {
		last[i] = int32(i)
	}
	slices.SortFunc(last, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.Finish[b], p.Finish[a]), cmp.Compare(p.Start[b], p.Start[a]))
	})
	priority := make([]float64, q.n)
	for k, i := range last {
		priority[i] = -float64(k)
	}
	order := SortedOrder(q.Graph, priority, nil)
	e := NewEvaluator(q, order)
	e.Makespan(p.Proc)
	out := NewPlan(q.n)
	e.Plan(out)
	return out
}
