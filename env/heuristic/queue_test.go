package heuristic

import (
	"math/rand/v2"
	"testing"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// The tree's winner among sizes up to any limit is the one that a walk over all lines finds.
func TestTreeAgainstWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var q waitQueue
	for round := range 20 {
		q.reset(false)
		most := 1 << (round % 8)
		for op := range 500 {
			switch n := r.IntN(10); {
			case n < 6:
				g := 1 + r.IntN(most)
				q.push(entry{float64(r.IntN(20)), op, sim.Job(op)}, &cluster.Request{GPUs: g, Milli: 1000})
			case n == 6:
				q.open()
			case n == 7:
				if at := q.first(unlimited); at >= 0 {
					q.close(at)
				}
			default:
				if at := q.first(r.IntN(most + 2)); at >= 0 {
					q.pop(at)
				}
			}
			shut := map[int]bool{}
			for _, g := range q.shut {
				shut[g] = q.tree[len(q.tree)/2+g] < 0 // a push brings a line back
			}
			for limit := 0; limit < most+2; limit++ {
				want := none
				for g := range q.whole {
					if g <= limit && len(q.whole[g]) > 0 && !shut[g] && (want < 0 || q.whole[g][0].before(&q.whole[want][0])) {
						want = g
					}
				}
				if got := q.first(limit); got != want {
					t.Fatalf("round %d, step %d: first(%d) = %d, want %d", round, op, limit, got, want)
				}
			}
		}
	}
}

func TestEmptyLinesAreForgotten(t *testing.T) {
	var q waitQueue
	q.reset(false)
	for i := range 200 {
		q.push(entry{1, i, sim.Job(i)}, &cluster.Request{GPUs: 1, Milli: 1000, CPUMilli: int64(i + 1)})
	}
	for i := range 150 {
		q.pop(-2 - i)
	}
	q.open()
	if len(q.others) != 50 || len(q.index) != 50 {
		t.Fatalf("%d lines and %d in the index, want 50", len(q.others), len(q.index))
	}
	for i := range q.others {
		if e := q.top(-2 - i); e.pos != 150+i || q.index[q.others[i].req] != i {
			t.Fatalf("line %d begins with job %d", i, e.pos)
		}
	}
}
