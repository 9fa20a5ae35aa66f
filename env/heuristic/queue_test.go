package heuristic

import (
	"math/rand/v2"
	"testing"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// The winner among places up to any limit is the one that a walk over all of them finds.
func TestTourneyAgainstWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for round := range 20 {
		var q tourney
		held := map[int]entry{}
		most := 1 << (round % 8)
		for op := range 500 {
			i := r.IntN(most)
			switch r.IntN(6) {
			case 0:
				q.unset(i)
				delete(held, i)
			case 1:
				if op%50 == 0 {
					q.clear()
					clear(held)
				}
			default:
				held[i] = entry{float64(r.IntN(20)), op, sim.Job(op)}
				q.set(i, held[i])
			}
			for limit := -1; limit < most+2; limit++ {
				want := none
				for i := range most {
					if e, ok := held[i]; ok && i <= limit {
						if best := held[want]; want < 0 || e.before(&best) {
							want = i
						}
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
	q.reset(nil, false)
	for i := range 200 {
		q.push(entry{1, i, sim.Job(i)}, &cluster.Request{GPUs: 1, Milli: 1000, CPUMilli: int64(i + 1)})
	}
	for i := range 150 {
		q.pop(-2 - i)
	}
	q.open(nil, &freed{any: true, all: true})
	if len(q.others.line) != 50 || len(q.kinds) != 50 || len(q.index) != 50 {
		t.Fatalf("%d lines of %d kinds and %d in the index, want 50", len(q.others.line), len(q.kinds), len(q.index))
	}
	for i := range q.others.line {
		if e := q.top(-2 - i); e.pos != 150+i || q.index[q.kinds[i]] != i || q.others.heads.top[i] != *e {
			t.Fatalf("line %d begins with job %d", i, e.pos)
		}
	}
}
