package listsched

import (
	"context"
	"encoding/csv"
	"errors"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/dag"
)

func TestTheRecordedOptimaAreFound(t *testing.T) {
	all := problems(t, "tiny.jsonl.gz", "textbook.jsonl")
	n, nodes := 0, 0
	for _, name := range []string{"expected.csv", "textbook_expected.csv"} {
		rows, err := csv.NewReader(openTruth(t, name)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows[1:] {
			algorithm, makespan := r[1], r[2]
			if name == "expected.csv" {
				algorithm, makespan = r[8], r[9]
			}
			if algorithm != "optimum" {
				continue
			}
			x, err := Optimum(context.Background(), all[r[0]], Options{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := dag.Check(all[r[0]], x.Plan, true); err != nil {
				t.Errorf("%s: %v", r[0], err)
			}
			if want, _ := strconv.ParseFloat(makespan, 64); !near(x.Plan.Makespan, want) || !x.Proven ||
				x.Bound != x.Plan.Makespan && x.Nodes > 0 {
				t.Errorf("%s: %v, proven %v, bound %v; want %v", r[0], x.Plan.Makespan, x.Proven, x.Bound, want)
			}
			n++
			nodes += x.Nodes
		}
	}
	t.Logf("%d optima, %d nodes", n, nodes)
	if n < 71 {
		t.Errorf("only %d optima were compared", n)
	}
}

// anyProblem draws a small problem, with ties, transfers that need no time, and tasks that cannot run everywhere.
func anyProblem(t *rapid.T, most int) *dag.Problem {
	n, m := rapid.IntRange(1, most).Draw(t, "tasks"), rapid.IntRange(1, 3).Draw(t, "processors")
	names := rapid.Permutation(seq(n)).Draw(t, "names")
	procs := make([]dag.Processor, m)
	for g := range procs {
		procs[g] = dag.Processor{ID: strconv.Itoa(g), Speed: float64(rapid.IntRange(1, 3).Draw(t, "speed"))}
	}
	tasks := make([]dag.Task, n)
	for i := range tasks {
		tasks[i] = dag.Task{ID: strconv.Itoa(i), Work: float64(rapid.IntRange(0, 6).Draw(t, "work"))}
		if rapid.IntRange(0, 3).Draw(t, "by cost") == 0 {
			able := rapid.IntRange(0, m-1).Draw(t, "able")
			for g := range m {
				c := float64(rapid.IntRange(0, 6).Draw(t, "cost"))
				if g != able && rapid.Bool().Draw(t, "unable") {
					c = math.NaN()
				}
				tasks[i].Cost = append(tasks[i].Cost, c)
			}
		}
	}
	var edges []dag.Edge
	for b := range n {
		for a := range b {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				edges = append(edges, dag.Edge{From: names[a], To: names[b], Bytes: float64(rapid.IntRange(0, 5).Draw(t, "bytes"))})
			}
		}
	}
	g, err := dag.NewGraph("drawn", tasks, edges)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.NewPlatform(procs, 1)
	if m > 1 && rapid.Bool().Draw(t, "linked") {
		rows := make([][]float64, m)
		for a := range rows {
			for range m {
				rows[a] = append(rows[a], float64(rapid.IntRange(1, 4).Draw(t, "bandwidth")))
			}
		}
		p, err = dag.NewLinkedPlatform(procs, rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	q, err := dag.NewProblem(g, p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func seq(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// tryAll returns the least makespan over all orders and assignments, by plain enumeration.
func tryAll(q *dag.Problem) float64 {
	n := q.Tasks()
	proc, finish := make([]int32, n), make([]float64, n)
	avail := make([]float64, q.Procs())
	best := math.Inf(1)
	var try func(done int, set uint)
	try = func(done int, set uint) {
		if done == n {
			most := 0.0
			for _, f := range finish {
				most = max(most, f)
			}
			best = min(best, most)
			return
		}
	next:
		for i := range int32(n) {
			if set>>uint(i)&1 == 1 {
				continue
			}
			for _, e := range q.Graph.Preds(i) {
				if set>>uint(e.Task)&1 == 0 {
					continue next
				}
			}
			for g, x := range q.Row(i) {
				if math.IsInf(x, 1) {
					continue
				}
				at, old := avail[g], avail[g]
				for _, e := range q.Graph.Preds(i) {
					at = max(at, finish[e.Task]+q.Comm(e.Bytes, proc[e.Task], int32(g)))
				}
				proc[i], finish[i], avail[g] = int32(g), at+x, at+x
				try(done+1, set|1<<uint(i))
				avail[g] = old
			}
		}
	}
	try(0, 0)
	return best
}

func TestOptimumIsTheBestOfAllPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyProblem(t, 5)
		x, err := Optimum(context.Background(), q, Options{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := tryAll(q); !near(x.Plan.Makespan, want) || !x.Proven {
			t.Fatalf("%v, proven %v, want %v", x.Plan.Makespan, x.Proven, want)
		}
		if err := dag.Check(q, x.Plan, true); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEveryPlanIsFeasibleAndNoneBelowTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyProblem(t, 7)
		x, err := Optimum(context.Background(), q, Options{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []string{"heft", "heft_noinsert", "heft_meanbw", "heft_selfpairs", "cpop", "peft", "list_ready",
			"eft_index"} {
			plan, transfers := run(q, a)
			if err := dag.Check(q, plan, transfers); err != nil {
				t.Fatalf("%s: %v", a, err)
			}
			if transfers && plan.Makespan < x.Plan.Makespan*(1-1e-12) {
				t.Fatalf("%s: %v, and the optimum is %v", a, plan.Makespan, x.Plan.Makespan)
			}
		}
	})
}

func TestASearchThatStopsSaysSo(t *testing.T) {
	q := hard(t)
	x, err := Optimum(context.Background(), q, Options{}, 3)
	if err != nil || x.Proven || !(x.Bound < x.Plan.Makespan) {
		t.Errorf("%+v, %v", x, err)
	}
	if err := dag.Check(q, x.Plan, true); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Optimum(ctx, q, Options{}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// hard returns a problem whose bound is below its optimum: three equal tasks on two equal processors.
func hard(t *testing.T) *dag.Problem {
	t.Helper()
	tasks := make([]dag.Task, 7)
	for i := range tasks {
		tasks[i] = dag.Task{ID: strconv.Itoa(i), Work: float64(10 + i*i)}
	}
	g, err := dag.NewGraph("hard", tasks,
		[]dag.Edge{{From: 0, To: 6, Bytes: 3}, {From: 1, To: 5, Bytes: 9}, {From: 1, To: 6, Bytes: 9}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.NewPlatform([]dag.Processor{{ID: "a", Speed: 1}, {ID: "b", Speed: 1.5}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	q, err := dag.NewProblem(g, p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
