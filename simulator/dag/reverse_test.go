package dag

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The diamond from its end: d, then b and c, then a; what b sends to d is now sent from d to b.
func TestAProblemReadFromItsEnd(t *testing.T) {
	r, err := diamond(t).Reversed()
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Graph.Preds(0); !slices.Equal(p, []Link{{1, 10}, {2, 20}}) {
		t.Errorf("a needs %v", p)
	}
	if p := r.Graph.Preds(3); len(p) != 0 {
		t.Errorf("d needs %v", p)
	}
	// d on 1: 0 to 1/2. b on 0 waits 5/5: 1.5 to 3.5. c on 1: 1/2 to 3.5. a on 1 waits for b's 10 bytes: 3.5 + 2 to 7.5.
	e := NewEvaluator(r, nil)
	if got := e.Makespan([]int32{1, 0, 1, 1}); got != 7.5 {
		t.Errorf("makespan %v, want 7.5", got)
	}
}

// Whatever the bandwidths, a plan read backwards is valid and no longer than it was.
func TestAMirroredPlanIsValidAndNoLonger(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	for trial := range 60 {
		n, m := 1+src.IntN(20), 1+src.IntN(4)
		var work, speed []float64
		var edges []Edge
		for j := range n {
			work = append(work, float64(src.IntN(4)))
			for i := range j {
				if src.IntN(4) == 0 {
					edges = append(edges, Edge{int32(i), int32(j), float64(src.IntN(9))})
				}
			}
		}
		for range m {
			speed = append(speed, 0.5+src.Float64())
		}
		g, err := NewGraph("g", tasks(work...), edges)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlatform(procs(speed...), 3)
		switch trial % 3 {
		case 1:
			p, err = NewPlatformOfRows(procs(speed...), func(int) []float64 {
				row := make([]float64, m)
				for h := range row {
					row[h] = 0.5 + src.Float64()
				}
				return row
			})
		case 2:
			p, err = NewTieredPlatform(procs(speed...), []Tier{{2, 5}, {0, 1}})
		}
		if err != nil {
			t.Fatal(err)
		}
		q, err := NewProblem(g, p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := q.Reversed()
		if err != nil {
			t.Fatal(err)
		}
		for a := range int32(m) {
			for b := range int32(m) {
				if r.Comm(7, a, b) != q.Comm(7, b, a) {
					t.Errorf("from %d to %d: %v and %v", a, b, r.Comm(7, a, b), q.Comm(7, b, a))
				}
			}
		}
		proc := make([]int32, n)
		for i := range proc {
			proc[i] = int32(src.IntN(m))
		}
		e, back := NewEvaluator(r, nil), NewPlan(n)
		e.Makespan(proc)
		e.Plan(back)
		plan := q.Mirrored(back)
		if err := Check(q, plan, true); err != nil {
			t.Error(err)
		}
		if plan.Makespan > back.Makespan*(1+1e-12) || math.IsNaN(plan.Makespan) || !slices.Equal(plan.Proc, proc) {
			t.Errorf("%v from %v", plan.Makespan, back.Makespan)
		}
	}
}
