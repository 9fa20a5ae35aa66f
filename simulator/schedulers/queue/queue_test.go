package queue

import (
	"math/rand/v2"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// The winner among places up to any limit is the one that a walk over all of them finds.
func TestTournamentAgainstWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for round := range 20 {
		var q tournament
		held := map[int]Entry{}
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
				held[i] = Entry{float64(r.IntN(20)), op, sim.Job(op)}
				q.set(i, held[i])
			}
			for limit := -1; limit < most+2; limit++ {
				want := None
				for i := range most {
					if e, ok := held[i]; ok && i <= limit {
						if best := held[want]; want < 0 || e.Before(&best) {
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

func TestEmptyRowsAreForgotten(t *testing.T) {
	var q Queue
	q.Reset(nil, false)
	for i := range 200 {
		q.Push(Entry{1, i, sim.Job(i)}, &cluster.Request{GPUs: 1, Milli: 1000, CPUMilli: int64(i + 1)})
	}
	for i := range 150 {
		q.Pop(-2 - i)
	}
	q.Open(nil, &Freed{Any: true, All: true})
	if len(q.others.row) != 50 || len(q.kinds) != 50 || len(q.index) != 50 {
		t.Fatalf("%d rows of %d kinds and %d in the index, want 50", len(q.others.row), len(q.kinds), len(q.index))
	}
	for i := range q.others.row {
		if e := q.Top(-2 - i); e.Pos != 150+i || q.index[q.kinds[i]] != i || q.others.heads.held[i] != *e {
			t.Fatalf("row %d begins with job %d", i, e.Pos)
		}
	}
}
