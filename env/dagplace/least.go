package dagplace

import (
	"context"
	"math"

	"clustergym/env"
	"clustergym/simulator/dag"
)

// Least returns a makespan in seconds that no plan of episode ep gets below, and the leader's, HEFT's. It is the larger
// of two bounds: the longest path with every task where it is fastest and transfers that take no time, and the work
// shared out among processors without gaps. The episode in progress is not touched.
func (e *Env) Least(ctx context.Context, ep env.Episode) (least, heft float64, err error) {
	if ep, err = e.named(ep); err != nil {
		return 0, 0, err
	}
	q, err := e.problem(ctx, ep)
	if err != nil {
		return 0, 0, err
	}
	lead, err := leader(ctx, q, dag.SortedOrder(q.Graph, q.UpwardRanks(dag.Pairs, nil), nil))
	if err != nil {
		return 0, 0, err
	}
	return max(longestPath(q), shared(q)), lead.Makespan(), nil
}

// longestPath is the longest path of tasks that run where they are fastest.
func longestPath(q *dag.Problem) float64 {
	end, longest := make([]float64, q.Tasks()), 0.0
	for _, i := range q.Graph.Order() {
		begin, fastest := 0.0, math.Inf(1)
		for _, e := range q.Graph.Preds(i) {
			begin = max(begin, end[e.Task])
		}
		for _, x := range q.Row(i) {
			fastest = min(fastest, x)
		}
		end[i] = begin + fastest
		longest = max(longest, end[i])
	}
	return longest
}

// shared is the time that processors need for all work if it can be cut and moved at will. For weights u of the
// processors that add up to 1, a plan of length T has T ≥ Σ over tasks of the least u·time, since T is at least the
// time of each processor. The weights are the speeds, by which the bound is exact where processors differ by a factor.
func shared(q *dag.Problem) float64 {
	m := q.Procs()
	u, sum := make([]float64, m), 0.0
	for k := range m {
		for i := range q.Tasks() {
			if x := q.Exec(int32(i), int32(k)); !math.IsInf(x, 1) {
				u[k] += x
			}
		}
		if u[k] > 0 {
			u[k] = 1 / u[k]
		}
		sum += u[k]
	}
	if sum == 0 {
		return 0
	}
	total := 0.0
	for i := range q.Tasks() {
		least := math.Inf(1)
		for k, x := range q.Row(int32(i)) {
			if !math.IsInf(x, 1) {
				least = min(least, x*u[k]/sum)
			}
		}
		total += least
	}
	return total
}
