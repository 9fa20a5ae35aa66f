package dag

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func tasks(work ...float64) []Task {
	var ts []Task
	for i, w := range work {
		ts = append(ts, Task{ID: string(rune('a' + i)), Work: w})
	}
	return ts
}

func procs(speed ...float64) []Processor {
	var ps []Processor
	for g, s := range speed {
		ps = append(ps, Processor{ID: strconv.Itoa(g), Speed: s})
	}
	return ps
}

// diamond is a → b, c → d on processors of speed 1 and 2 with bandwidth 5:
//
//	work 4, 2, 6, 1; bytes 10 to b, 20 to c, 5 from b to d, 0 from c to d.
func diamond(t testing.TB) *Problem {
	t.Helper()
	g, err := NewGraph("diamond", tasks(4, 2, 6, 1), []Edge{{0, 1, 10}, {0, 2, 20}, {1, 3, 5}, {2, 3, 0}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlatform(procs(1, 2), 5)
	if err != nil {
		t.Fatal(err)
	}
	q, err := NewProblem(g, p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestAPlanByHand(t *testing.T) {
	q := diamond(t)
	e := NewEvaluator(q, nil)
	// a on 1: 0 to 2. b on 0 waits 10/5 for its input: 4 to 6. c on 1: 2 to 5. d on 1 waits for b: 6 + 5/5 = 7 to 7.5.
	if got := e.Makespan([]int32{1, 0, 1, 1}); got != 7.5 {
		t.Errorf("makespan %v, want 7.5", got)
	}
	if f := e.Finish(); !slices.Equal(f, []float64{2, 6, 5, 7.5}) {
		t.Errorf("ends %v", f)
	}
	plan := NewPlan(4)
	e.Plan(plan)
	if err := Check(q, plan, true); err != nil || plan.Makespan != 7.5 || plan.Used() != 2 {
		t.Errorf("%+v: %v", plan, err)
	}
	// All on 1: 6.5. Moving b back from 0 to 1 gives it.
	if got := e.Move(1, 1); got != 6.5 {
		t.Errorf("after the move %v, want 6.5", got)
	}
	// Without transfers b could start at 2 on processor 0.
	plan.Start[1], plan.Finish[1] = 2, 4
	if Check(q, plan, true) == nil {
		t.Error("a task that starts before its input arrives is not seen")
	}
	if err := Check(q, plan, false); err != nil {
		t.Error(err)
	}
}

func TestCheckFindsEveryFault(t *testing.T) {
	q := diamond(t)
	e := NewEvaluator(q, nil)
	e.Makespan([]int32{1, 0, 1, 1})
	for _, c := range []struct {
		name  string
		spoil func(p *Plan)
		want  string
	}{
		{"makespan", func(p *Plan) { p.Makespan = 7 }, "the makespan is 7, and the latest end 7.5"},
		{"processor", func(p *Plan) { p.Proc[2] = 2 }, "task c is on processor 2 of 2"},
		{"duration", func(p *Plan) { p.Start[2] = 2.5 }, "task c runs from 2.5 to 5, and takes 3 s"},
		{"negative", func(p *Plan) { p.Start[0], p.Finish[0] = -1, 1 }, "task a runs from -1 to 1"},
		{"order", func(p *Plan) { p.Start[2], p.Finish[2] = 1, 4 }, "task c starts at 1, before what a sends arrives at 2"},
		{"transfer", func(p *Plan) { p.Start[1], p.Finish[1] = 3, 5 }, "before what a sends arrives at 4"},
		{"overlap", func(p *Plan) {
			p.Start[3], p.Finish[3] = 7.25, 7.75
			p.Proc[1] = 1
			p.Start[1], p.Finish[1] = 4.5, 5.5
			p.Makespan = 7.75
		}, "task b starts at 4.5 while c is on its processor until 5"},
		{"length", func(p *Plan) { p.Start = p.Start[1:] }, "a plan of 4, 3 and 4 tasks"},
		{"nan", func(p *Plan) { p.Start[0] = math.NaN() }, "task a runs from NaN"},
	} {
		p := NewPlan(4)
		e.Plan(p)
		c.spoil(p)
		if err := Check(q, p, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestFaultsOfGraphsAndPlatforms(t *testing.T) {
	graph := func(ts []Task, es ...Edge) error {
		_, err := NewGraph("", ts, es)
		return err
	}
	nan := math.NaN()
	problem := func(t Task, ps []Processor) error {
		g, err := NewGraph("", []Task{t}, nil)
		if err != nil {
			return err
		}
		p, err := NewPlatform(ps, 1)
		if err != nil {
			return err
		}
		_, err = NewProblem(g, p)
		return err
	}
	linked := func(rows ...[]float64) error {
		_, err := NewLinkedPlatform(procs(1, 1), rows)
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{graph(nil), "tasks: got none"},
		{graph(tasks(1, -1)), "tasks[1] (b): work: got -1, want 0 or more"},
		{graph([]Task{{ID: "x", Work: nan}}), "neither work nor cost"},
		{graph([]Task{{ID: "x", Work: nan, Cost: []float64{-2}}}), "cost[0]: got -2"},
		{graph([]Task{{ID: "x"}, {ID: "x"}}), `tasks[1].id: got "x", which is that of tasks[0]`},
		{graph(tasks(1, 1), Edge{0, 1, -3}), "edges[0] (a to b): got -3 bytes"},
		{graph(tasks(1, 1), Edge{0, 1, nan}), "got NaN bytes"},
		{graph(tasks(1, 1), Edge{0, 2, 0}), "want indices from 0 to 1"},
		{graph(tasks(1, 1), Edge{0, 1, 0}, Edge{0, 1, 2}), "two lead from a to b"},
		{graph(tasks(1), Edge{0, 0, 0}), "task a needs itself"},
		{graph(tasks(1, 1, 1, 1), Edge{3, 2, 0}, Edge{2, 1, 0}, Edge{1, 3, 0}, Edge{0, 1, 0}),
			"tasks b → d → c → b form a cycle"},
		{problem(Task{ID: "x", Work: 1}, procs(1, 0)), "processors[1] (1): speed: got 0"},
		{problem(Task{ID: "x", Work: 1}, nil), "processors: got none"},
		{problem(Task{ID: "x", Work: nan, Cost: []float64{nan, nan}}, procs(1, 1)),
			"tasks[0] (x): none of 2 processors can run it"},
		{problem(Task{ID: "x", Work: 1, Types: []string{"A", "B"}}, procs(1, 1)),
			"it runs on A, B only, and there are only processors of no type"},
		{problem(Task{ID: "x", Cost: []float64{1}}, procs(1, 1)), "cost: got 1 numbers, want one for each of 2"},
		{problem(Task{ID: "x", Work: 1e308}, procs(1, 1e-10)), "more than can be computed with"},
		{linked([]float64{0, 1}), "bandwidth: got 1 rows"},
		{linked([]float64{0, 1}, []float64{1}), "bandwidth[1]: got 1 numbers"},
		{linked([]float64{0, nan}, []float64{1, 0}), "none is given from processor 0 to 1"},
		{linked([]float64{0, 1}, []float64{0, 0}), "bandwidth[1][0] (processor 1 to 0): got 0"},
		{linked([]float64{nan, 1}, []float64{1, -7}), "<nil>"}, // the diagonal is ignored
	} {
		got := "<nil>"
		if c.err != nil {
			got = c.err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	long := make([]Edge, 30)
	for i := range long {
		long[i] = Edge{From: int32(i), To: int32((i + 1) % 30)}
	}
	err := graph(make30(), long...)
	var cycle *CycleError
	if !errors.As(err, &cycle) || len(cycle.IDs) != 30 || !strings.Contains(err.Error(), "… (30 tasks)") {
		t.Errorf("%v", err)
	}
	g, err := NewGraph("", tasks(1, 1), []Edge{{0, 1, 4}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlatform(procs(1, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewProblem(g, p); err == nil || !strings.Contains(err.Error(), "bandwidth: none is given") {
		t.Errorf("%v", err)
	}
}

func make30() []Task {
	ts := make([]Task, 30)
	for i := range ts {
		ts[i] = Task{ID: strconv.Itoa(i), Work: 1}
	}
	return ts
}

func TestRanksByHand(t *testing.T) {
	q := diamond(t)
	// Mean times are 3/4 of the work (1 and 1/2): 3, 1.5, 4.5, 0.75; a byte takes 1/5 s.
	// d 0.75; b 1.5 + 1 + 0.75; c 4.5 + 0.75; a 3 + max(2 + 3.25, 4 + 5.25).
	if u := q.UpwardRanks(Pairs, nil); !slices.Equal(u, []float64{12.25, 3.25, 5.25, 0.75}) {
		t.Errorf("ranks %v", u)
	}
	p, err := NewLinkedPlatform(procs(1, 1), [][]float64{{0, 1}, {4, 0}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mean RankMean
		want float64
	}{{Pairs, 8 * (1 + 0.25) / 2}, {"", 5}, {MeanBandwidth, 8 / 2.5}, {SelfPairs, 8 * (1 + 0.25) / 4}} {
		if got := p.MeanCost(c.mean).Of(8); got != c.want {
			t.Errorf("%s: %v, want %v", c.mean, got, c.want)
		}
	}
}

// drawn draws any problem: with ties, tasks that take no time, and processors that cannot run every task.
func drawn(t *rapid.T) *Problem {
	n, m := rapid.IntRange(1, 80).Draw(t, "tasks"), rapid.IntRange(1, 6).Draw(t, "processors")
	ts := make([]Task, n)
	for i := range ts {
		ts[i] = Task{ID: strconv.Itoa(i), Work: float64(rapid.IntRange(0, 5).Draw(t, "work"))}
	}
	var es []Edge
	for k := range rapid.IntRange(0, 3*n).Draw(t, "edges") {
		if n < 2 {
			break
		}
		b := 1 + (k*7)%(n-1)
		a := rapid.IntRange(0, b-1).Draw(t, "from")
		if !slices.ContainsFunc(es, func(e Edge) bool { return e.From == int32(a) && e.To == int32(b) }) {
			es = append(es, Edge{int32(a), int32(b), float64(rapid.IntRange(0, 4).Draw(t, "bytes"))})
		}
	}
	g, err := NewGraph("drawn", ts, es)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]float64, m)
	var ps []Processor
	for a := range rows {
		ps = append(ps, Processor{ID: strconv.Itoa(a), Speed: float64(rapid.IntRange(1, 3).Draw(t, "speed"))})
		for range m {
			rows[a] = append(rows[a], float64(rapid.IntRange(1, 3).Draw(t, "bandwidth")))
		}
	}
	p, err := NewLinkedPlatform(ps, rows)
	if err != nil {
		t.Fatal(err)
	}
	q, err := NewProblem(g, p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestMovesGiveWhatAWholeEvaluationGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawn(t)
		n, m := q.Tasks(), q.Procs()
		var order []int32
		if rapid.Bool().Draw(t, "by rank") {
			order = SortedOrder(q.Graph, q.UpwardRanks(Pairs, nil), nil)
		}
		e, whole := NewEvaluator(q, order), NewEvaluator(q, order)
		proc := make([]int32, n)
		for i := range proc {
			proc[i] = int32(rapid.IntRange(0, m-1).Draw(t, "processor"))
		}
		e.Makespan(proc)
		plan := NewPlan(n)
		for range 20 {
			i, g := rapid.IntRange(0, n-1).Draw(t, "task"), int32(rapid.IntRange(0, m-1).Draw(t, "to"))
			proc[i] = g
			got, want := e.Move(int32(i), g), whole.Makespan(proc)
			e.Plan(plan)
			if got != want || !slices.Equal(e.Finish(), whole.Finish()) || !slices.Equal(e.start, whole.start) {
				t.Fatalf("moved %d to %d: %v, %v; want %v, %v", i, g, got, e.Finish(), want, whole.Finish())
			}
			if err := Check(q, plan, true); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The rule for a timeline: the first gap, over the tasks in order of their start, that is long enough.
func TestTimelinesFindTheEarliestGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type slot struct{ start, end float64 }
		var slots []slot
		var line Timeline
		line.Reset(true)
		for range rapid.IntRange(0, 40).Draw(t, "tasks") {
			ready, exec := float64(rapid.IntRange(0, 30).Draw(t, "ready")), float64(rapid.IntRange(0, 4).Draw(t, "exec"))
			want, end := -1.0, 0.0
			for _, s := range slots {
				if at := max(ready, end); at+exec <= s.start {
					want = at
					break
				}
				end = max(end, s.end)
			}
			if want < 0 {
				want = max(ready, end)
			}
			if got := line.Earliest(ready, exec); got != want {
				t.Fatalf("%v from %v: %v, want %v among %v", exec, ready, got, want, slots)
			}
			if got := line.Take(ready, exec, true); got != want {
				t.Fatalf("taken %v, want %v", got, want)
			}
			at, _ := slices.BinarySearchFunc(slots, slot{want, want + exec}, func(a, b slot) int {
				switch {
				case a.start != b.start:
					return int(math.Copysign(1, a.start-b.start))
				case a.end != b.end:
					return int(math.Copysign(1, a.end-b.end))
				}
				return 0
			})
			slots = slices.Insert(slots, at, slot{want, want + exec})
			last := 0.0
			for _, s := range slots {
				last = max(last, s.end)
			}
			if line.End() != last || line.Append(3) != max(3, last) {
				t.Fatalf("end %v, want %v", line.End(), last)
			}
		}
	})
}

func TestEvaluatingAllocatesNothing(t *testing.T) {
	q := diamond(t)
	e := NewEvaluator(q, nil)
	proc := []int32{0, 1, 0, 1}
	if n := testing.AllocsPerRun(50, func() {
		e.Makespan(proc)
		e.Move(2, 1)
		e.Move(0, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAWrongOrderPanics(t *testing.T) {
	for _, order := range [][]int32{{3, 0, 1, 2}, {0, 1, 2}, {0, 0, 1, 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v was taken", order)
				}
			}()
			NewEvaluator(diamond(t), order)
		}()
	}
}

// Parents that cannot matter are skipped: the result must equal that of all parents together, to the last bit.
func TestArrivalsAreThoseOfAllParents(t *testing.T) {
	src := rand.New(rand.NewPCG(5, 6))
	for trial := range 300 {
		m, parents := 1+src.IntN(9), src.IntN(30)
		procs, rows := make([]Processor, m), make([][]float64, m)
		for g := range procs {
			procs[g] = Processor{ID: fmt.Sprint(g), Speed: 1}
			for range m {
				rows[g] = append(rows[g], float64(int(1)<<src.IntN(4)))
			}
		}
		p, err := NewPlatform(procs, 3)
		if trial%2 == 0 {
			p, err = NewLinkedPlatform(procs, rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		tasks, edges := make([]Task, parents+1), make([]Edge, parents)
		finish, proc := make([]float64, parents+1), make([]int32, parents+1)
		for k := range tasks {
			tasks[k] = Task{ID: fmt.Sprint(k), Work: 1}
		}
		for k := range edges {
			edges[k] = Edge{From: int32(k), To: int32(parents), Bytes: float64(src.IntN(4)) * src.Float64()}
			finish[k], proc[k] = float64(src.IntN(4))+src.Float64()*float64(src.IntN(2)), int32(src.IntN(m))
		}
		g, err := NewGraph("", tasks, edges)
		if err != nil {
			t.Fatal(err)
		}
		q, err := NewProblem(g, p)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, m)
		q.Arrivals(got, int32(parents), proc, finish)
		for h := range got {
			want := 0.0
			for _, e := range edges {
				want = max(want, finish[e.From]+q.Comm(e.Bytes, proc[e.From], int32(h)))
			}
			if got[h] != want {
				t.Fatalf("trial %d, processor %d: %v, want %v", trial, h, got[h], want)
			}
		}
	}
}

func TestBytesCanBeReplaced(t *testing.T) {
	g, err := NewGraph("g", []Task{{ID: "a"}, {ID: "b"}, {ID: "c"}}, []Edge{{1, 2, 3}, {0, 2, 2}, {0, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	var seen []float64
	h := g.WithBytes(func(from, to int32, old float64) float64 {
		seen = append(seen, old)
		return float64(10*from + to)
	})
	if !slices.Equal(seen, []float64{1, 2, 3}) || g.Bytes() != 6 || h.Bytes() != 1+2+12 {
		t.Errorf("visited %v; %v bytes, then %v", seen, g.Bytes(), h.Bytes())
	}
	if p := h.Preds(2); !slices.Equal(p, []Link{{0, 2}, {1, 12}}) || !slices.Equal(h.Succs(0), []Link{{1, 1}, {2, 2}}) {
		t.Errorf("parents %v, children %v", p, h.Succs(0))
	}
}

// A tiered platform is a linked one that takes no memory for pairs: every result is the same to the last bit.
func TestTiersAreTheMatrixTheyStandFor(t *testing.T) {
	src := rand.New(rand.NewPCG(7, 8))
	for trial := range 200 {
		m := 1 + src.IntN(40)
		tiers := []Tier{{Size: 1 + src.IntN(4), Bandwidth: 0.1 + src.Float64()}, {Bandwidth: 0.1 + src.Float64()}}
		if trial%2 == 0 {
			tiers = slices.Insert(tiers, 1, Tier{Size: tiers[0].Size * (1 + src.IntN(4)), Bandwidth: 0.1 + src.Float64()})
		}
		ps, rows := make([]Processor, m), make([][]float64, m)
		for g := range ps {
			ps[g] = Processor{ID: strconv.Itoa(g), Speed: 1 + src.Float64()}
			for h := range m {
				k := slices.IndexFunc(tiers, func(t Tier) bool { return t.Size == 0 || g/t.Size == h/t.Size })
				rows[g] = append(rows[g], tiers[k].Bandwidth)
			}
		}
		tiered, err := NewTieredPlatform(ps, tiers)
		if err != nil {
			t.Fatal(err)
		}
		linked, err := NewLinkedPlatform(ps, rows)
		if err != nil {
			t.Fatal(err)
		}
		parents := src.IntN(20)
		tasks, edges := make([]Task, parents+1), make([]Edge, parents)
		finish, proc := make([]float64, parents+1), make([]int32, parents+1)
		for k := range tasks {
			tasks[k] = Task{ID: strconv.Itoa(k), Work: 1 + src.Float64()}
		}
		for k := range edges {
			edges[k] = Edge{From: int32(k), To: int32(parents), Bytes: float64(src.IntN(4)) * src.Float64()}
			finish[k], proc[k] = 3*src.Float64(), int32(src.IntN(m))
		}
		g, err := NewGraph("", tasks, edges)
		if err != nil {
			t.Fatal(err)
		}
		var got, want [3][]float64
		for k, p := range []*Platform{tiered, linked} {
			q, err := NewProblem(g, p)
			if err != nil {
				t.Fatal(err)
			}
			into := [...]*[3][]float64{&got, &want}[k]
			into[0] = q.UpwardRanks(someMean(trial), nil)
			into[1] = make([]float64, m)
			q.Arrivals(into[1], int32(parents), proc, finish)
			for a := range m {
				slow, fast := p.extremes(int32(a))
				into[2] = append(into[2], slow, fast)
				for b := range m {
					into[2] = append(into[2], p.Bandwidth(a, b), q.Comm(3, int32(a), int32(b)))
				}
			}
		}
		for k := range got {
			if !slices.Equal(got[k], want[k]) {
				t.Fatalf("trial %d, %d processors in tiers %v, result %d: %v, want %v", trial, m, tiers, k, got[k], want[k])
			}
		}
	}
}

// someMean returns one of the means, in turn.
func someMean(trial int) RankMean { return RankMean(RankMeans()[trial%len(RankMeans())]) }

func TestTiersMustNest(t *testing.T) {
	for _, c := range []struct {
		tiers []Tier
		want  string
	}{
		{nil, "tiers: got none"},
		{[]Tier{{Size: 2, Bandwidth: 1}}, "tiers[0].size: got 2, want 0 at the last tier"},
		{[]Tier{{Bandwidth: 1}, {Bandwidth: 1}}, "tiers[0].size: got 0"},
		{[]Tier{{Size: 2, Bandwidth: 1}, {Size: 3, Bandwidth: 1}, {Bandwidth: 1}}, "tiers[1].size: got 3, want a multiple"},
		{[]Tier{{Bandwidth: -1}}, "tiers[0].bandwidth: got -1"},
	} {
		if _, err := NewTieredPlatform(procs(1, 1), c.tiers); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.tiers, err, c.want)
		}
	}
}
