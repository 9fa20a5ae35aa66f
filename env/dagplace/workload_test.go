package dagplace

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/env/sched"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/graphs"
	"clustergym/simulator/dag/synth"
	"clustergym/traces"
)

// gpus makes processors of these speeds.
func gpus(t *testing.T, bandwidth float64, speeds ...float64) *dag.Platform {
	t.Helper()
	var procs []dag.Processor
	for i, v := range speeds {
		procs = append(procs, dag.Processor{ID: fmt.Sprint("p", i), Speed: v})
	}
	p, err := dag.NewPlatform(procs, bandwidth)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// recorded is ten graphs: graph 0 is the chain on its own two processors, the others are random, of 5 to 13 tasks,
// every third without bytes.
func recorded(t *testing.T) *graphs.Set {
	t.Helper()
	q := chain(t)
	all := []graphs.Graph{{Graph: q.Graph, Platform: q.Platform, At: "f.json, line 1 (chain)"}}
	for i := 1; i < 10; i++ {
		c := synth.DefaultConfig()
		c.Tasks, c.Degree = 4+i, 1.5
		if i%3 == 0 {
			c.CCR = 0
		}
		q, err := synth.Problem(c, gpus(t, 100, 1, 2), fmt.Sprint("g", i), rng.Stream(uint64(i), "dagplace/recorded"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, graphs.Graph{Graph: q.Graph, At: fmt.Sprintf("f.json, line %d (g%d)", i+1, i)})
	}
	return setOf(t, all...)
}

func setOf(t *testing.T, all ...graphs.Graph) *graphs.Set {
	t.Helper()
	s, err := graphs.NewSet(all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, cfg Config, p *dag.Platform, g Graphs, part traces.Part) *Env {
	t.Helper()
	w, err := NewWorkload(cfg, p, g)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewRecorded(cfg, w, part)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAWorkloadKeepsTheContract(t *testing.T) {
	set := recorded(t)
	for name, c := range small() {
		for over, p := range map[string]*dag.Platform{"drawn": nil, "given": gpus(t, 50, 1, 2, 3, 0.5)} {
			t.Run(name+"/"+over, func(t *testing.T) {
				envtest.Run(t, func() env.Env { return open(t, c, p, set, traces.Training) })
			})
		}
		t.Run(name+"/platform alone", func(t *testing.T) {
			envtest.Run(t, func() env.Env { return open(t, c, gpus(t, 50, 1, 2, 3), nil, traces.Training) })
		})
	}
}

func TestWindowsAndSplitsNameGraphs(t *testing.T) {
	c := small()["makespan"]
	set := recorded(t)
	e := open(t, c, nil, set, traces.Training)
	ts := env.NewTimeStep(e.Spec())
	for split, p := range map[string]traces.Part{"": traces.Training, "train": traces.Training,
		"validation": traces.Validation, "test": traces.Test} {
		for k := range set.Count(p) {
			if err := e.Reset(ctx, env.Episode{Seed: 3, Window: k, Split: split}, ts); err != nil {
				t.Fatal(err)
			}
			lo, _ := p.Bounds(10)
			want := set.Graph(lo + k)
			if got := e.ep.b.q.Graph; got.Name != want.Name || got.Len() != want.Len() {
				t.Errorf("split %q, window %d: %s of %d tasks, want %s of %d", split, k, got.Name, got.Len(), want.Name, want.Len())
			}
			steps := 0
			for ; !ts.Kind.Last(); steps++ {
				a := int32(0)
				for !ts.Mask[a] {
					a++
				}
				if err := e.Step(ctx, env.Action{Disc: []int32{a}}, ts); err != nil {
					t.Fatal(err)
				}
			}
			if steps != want.Len() {
				t.Errorf("%d steps for %d tasks", steps, want.Len())
			}
			if err := dag.Check(e.ep.b.q, e.ep.b.Plan(), true); err != nil {
				t.Error(err)
			}
		}
	}
	drawn := map[string]bool{}
	for seed := range uint64(100) {
		if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1, Split: "test"}, ts); err != nil {
			t.Fatal(err)
		}
		drawn[e.ep.b.q.Graph.Name] = true
	}
	if len(drawn) != 2 || !drawn["g8"] || !drawn["g9"] {
		t.Errorf("drawn of the test part: %v", drawn)
	}
}

// The chain has two processors of its own; the four other actions are never legal.
func TestAGraphOnItsOwnProcessorsByHand(t *testing.T) {
	c := small()["makespan"]
	c.Scale = "leader"
	e := open(t, c, gpus(t, 1, 9, 9, 9), recorded(t), traces.Training) // the file's processors count
	ts := env.NewTimeStep(e.Spec())
	for second, want := range []float64{-1, -1.25} {
		if err := e.Reset(ctx, env.Episode{Seed: 1, Window: 0}, ts); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for k := range int32(2) {
			for s, legal := range ts.Mask {
				if legal != (s < 2) || s >= 2 && ts.Obs[s*gpuFeatures] != 0 {
					t.Errorf("step %d: processor %d: legal %v, seen %v", k, s, legal, ts.Obs[s*gpuFeatures:(s+1)*gpuFeatures])
				}
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{k * int32(second)}}, ts); err != nil {
				t.Fatal(err)
			}
			sum += ts.Reward
		}
		if sum != want || ts.Info[0] != -20*want || ts.Info[1] != 20 {
			t.Errorf("second task on %d: %v, %v, want %v", second, sum, ts.Info, want)
		}
	}
}

// A transfer takes ccr times the mean run time on drawn processors; on a given platform the recorded bytes count, and
// bytes are drawn where none are recorded.
func TestBytesFollowThePlatform(t *testing.T) {
	c := small()["default"]
	c.CCR = 0.7
	given := gpus(t, 50, 1, 2, 4)
	set := recorded(t)
	ratio := func(q *dag.Problem) float64 {
		work, inverse := 0.0, 0.0
		for i := range int32(q.Tasks()) {
			work += q.Graph.Task(i).Work / float64(q.Tasks())
		}
		for g := range q.Procs() {
			inverse += 1 / q.Platform.Processor(g).Speed / float64(q.Procs())
		}
		return q.Platform.MeanCost(dag.Pairs).Of(q.Graph.Bytes()/float64(q.Graph.Edges())) / (work * inverse)
	}
	for _, p := range []*dag.Platform{nil, given} {
		e := open(t, c, p, set, traces.Training)
		for k := 1; k < 7; k++ {
			ts := env.NewTimeStep(e.Spec())
			if err := e.Reset(ctx, env.Episode{Seed: 5, Window: k}, ts); err != nil {
				t.Fatal(err)
			}
			g, q := set.Graph(k).Graph, e.ep.b.q
			if p != nil && q.Platform != given || p == nil && q.Procs() != c.GPUs {
				t.Errorf("graph %d runs on %d processors", k, q.Procs())
			}
			if p != nil && g.Bytes() > 0 {
				if q.Graph != g {
					t.Errorf("graph %d was changed", k)
				}
				continue
			}
			if r := ratio(q); math.Abs(r-0.7) > 1e-9 {
				t.Errorf("graph %d: the mean transfer takes %v of the mean run time", k, r)
			}
		}
	}
	c.CCR = 0
	e := open(t, c, nil, set, traces.Training)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 5, Window: 1}, ts); err != nil || e.ep.b.q.Graph.Bytes() != 0 {
		t.Errorf("%v; %v bytes", err, e.ep.b.q.Graph.Bytes())
	}
}

func TestEnvironmentsOfOneWorkloadAgree(t *testing.T) {
	c := small()["varied"]
	w, err := NewWorkload(c, nil, recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	if n, m := w.Largest(); n != 13 || m != 6 || w.Count(traces.Test) != 2 {
		t.Errorf("largest %d, %d; %d graphs in the test", n, m, w.Count(traces.Test))
	}
	var seen [2]bytes.Buffer
	for k, part := range []traces.Part{traces.Test, traces.Validation} {
		e, err := NewRecorded(c, w, part)
		if err != nil {
			t.Fatal(err)
		}
		ts := env.NewTimeStep(e.Spec())
		for seed := range uint64(4) {
			if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1, Split: "test"}, ts); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&seen[k], *ts)
		}
	}
	if seen[0].String() != seen[1].String() {
		t.Error("two environments show different episodes")
	}
}

func TestSnapshotsNameTheGraph(t *testing.T) {
	c := small()["default"]
	set := recorded(t)
	e := open(t, c, nil, set, traces.Training)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 9, Window: 1, Split: "test"}, ts); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := e.Step(ctx, env.Action{Disc: []int32{2}}, ts); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, c, nil, set, traces.Training)
	got := env.NewTimeStep(other.Spec())
	if err := other.RestoreSnapshot(s, got); err != nil || fmt.Sprint(*got) != fmt.Sprint(*ts) ||
		other.ep.b.q.Graph.Name != "g9" {
		t.Errorf("%v, graph %s", err, other.ep.b.q.Graph.Name)
	}
	plain, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.RestoreSnapshot(s, got); !errors.Is(err, env.ErrSnapshot) {
		t.Errorf("without the workload: %v", err)
	}
	another := open(t, c, nil, setOf(t, set.Graph(1), set.Graph(2)), traces.Training)
	if err := another.RestoreSnapshot(s, got); !errors.Is(err, env.ErrSnapshot) ||
		!strings.Contains(err.Error(), "of another workload") {
		t.Errorf("with another workload: %v", err)
	}
	if err := another.Step(ctx, env.Action{Disc: []int32{0}}, got); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("after a snapshot that was refused: %v", err)
	}
}

func TestGraphsThatCannotBeUsedAreNamed(t *testing.T) {
	c := small()["default"]
	set := recorded(t)
	good := set.Graph(1)
	graph := func(p *dag.Platform, tasks ...dag.Task) graphs.Graph {
		g, err := dag.NewGraph("x", tasks, nil)
		if err != nil {
			t.Fatal(err)
		}
		return graphs.Graph{Graph: g, Platform: p, At: "f.json, line 7 (x)"}
	}
	many := make([]float64, 7)
	for i := range many {
		many[i] = 1
	}
	unlinked := gpus(t, 0, 1, 1)
	for _, k := range []struct {
		want     string
		platform *dag.Platform
		graph    graphs.Graph
	}{
		{"f.json, line 7 (x): it has 7 processors, want at most gpus = 6; or slots,", nil,
			graph(gpus(t, 1, many...), dag.Task{ID: "a", Work: 1})},
		{"f.json, line 7 (x): task a has a cost for each of 2 processors, but the file has no processors", nil,
			graph(nil, dag.Task{ID: "a", Cost: []float64{1, 2}})},
		{"f.json, line 7 (x): task a runs on V100, P100 only, and drawn processors have no type", nil,
			graph(nil, dag.Task{ID: "a", Work: 1, Types: []string{"V100", "P100"}})},
		{"f.json, line 7 (x): tasks[0] (a): none of 2 processors can run it", nil,
			graph(gpus(t, 1, 1, 1), dag.Task{ID: "a", Cost: []float64{math.NaN(), math.NaN()}})},
		{"f.json, line 7 (x): tasks[0] (a): cost: got 1 numbers, want one for each of 3", gpus(t, 1, 1, 1, 1),
			graph(nil, dag.Task{ID: "a", Cost: []float64{1}})},
		{"f.json, line 2 (g1): bandwidth: none is given", unlinked, good},
	} {
		_, err := NewWorkload(c, k.platform, setOf(t, good, k.graph, good))
		if err == nil || !strings.HasPrefix(err.Error(), k.want) {
			t.Errorf("got %v\nwant %s", err, k.want)
		}
	}
	long := make([]dag.Task, maxTasks+1)
	for i := range long {
		long[i] = dag.Task{ID: fmt.Sprint(i), Work: 1}
	}
	for want, err := range map[string]error{
		"f.json, line 7 (x): it has 100001 tasks, want at most 100000": second(NewWorkload(c, nil,
			setOf(t, graph(nil, long...), good))),
		"too few task graphs: the training part (70 %) has none of 1": second(NewWorkload(c, nil, setOf(t, good))),
		"platform: it has 7 processors, want at most gpus = 6":        second(NewWorkload(c, gpus(t, 1, many...), nil)),
		`graph: got ""`: second(NewWorkload(Config{}, nil, set)),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	e := open(t, c, nil, set, traces.Training)
	ts := env.NewTimeStep(e.Spec())
	for want, ep := range map[string]env.Episode{
		`DAGPlace-v1: split "dev", want train, validation, test or nothing`: {Split: "dev"},
		"DAGPlace-v1: graph 7 of the training part: want 0 to 6":            {Window: 7},
		"DAGPlace-v1: graph 2 of the test part: want 0 to 1, or -1":         {Window: 2, Split: "test"},
		"DAGPlace-v1: a task of 1 numbers, want none":                       {Task: []float64{1}},
	} {
		if err := e.Reset(ctx, ep, ts); !errors.Is(err, env.ErrEpisode) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func second(_ *Workload, err error) error { return err }

func TestStepsOfAWorkloadAllocateNothing(t *testing.T) {
	c := small()["makespan"]
	var all []graphs.Graph
	for i := range 2 {
		sc := synth.DefaultConfig()
		sc.Tasks = 2000
		q, err := synth.Problem(sc, gpus(t, 1, 1, 1), "long", rng.Stream(uint64(i), "dagplace/long"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, graphs.Graph{Graph: q.Graph})
	}
	e := open(t, c, nil, setOf(t, all...), traces.Training)
	ts, a := env.NewTimeStep(e.Spec()), env.Action{Disc: []int32{0}}
	if err := e.Reset(ctx, env.Episode{}, ts); err != nil {
		t.Fatal(err)
	}
	for range 1100 {
		_ = e.Step(ctx, a, ts)
	}
	if n := testing.AllocsPerRun(500, func() { _ = e.Step(ctx, a, ts) }); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestRulesAndPlannersRankAsTheyShould(t *testing.T) {
	c := DefaultConfig()
	c.Tasks, c.GPUs = 40, 8
	for name, e := range map[string]*Env{"generated": open(t, c, nil, nil, traces.Training),
		"recorded": open(t, c, nil, recorded(t), traces.Training)} {
		mean := map[string]float64{}
		const episodes = 40
		for seed := range uint64(episodes) {
			ep := env.Episode{Seed: seed, Window: -1}
			heft := 0.0
			for _, p := range Planners() {
				makespan, leader, err := e.Plan(ctx, ep, p)
				if err != nil {
					t.Fatal(err)
				}
				if again, _, _ := e.Plan(ctx, ep, p); again != makespan {
					t.Errorf("%s plans %v, then %v", p, makespan, again)
				}
				mean["plan "+p] += makespan / leader / episodes
				heft = leader
			}
			for _, r := range Rules() {
				src, ts := rng.Stream(seed, "rule"), env.NewTimeStep(e.Spec())
				if err := e.Reset(ctx, ep, ts); err != nil {
					t.Fatal(err)
				}
				for !ts.Kind.Last() {
					if err := e.Step(ctx, env.Action{Disc: []int32{r.Choose(e, src)}}, ts); err != nil {
						t.Fatal(err)
					}
				}
				if ts.Info[1] != heft {
					t.Fatalf("the leader takes %v in the environment and %v beside a planner", ts.Info[1], heft)
				}
				mean[r.Name] += ts.Info[0] / heft / episodes
			}
		}
		t.Log(name, mean)
		if math.Abs(mean["plan heft"]-1) > 1e-12 {
			t.Errorf("%s: HEFT takes %v of HEFT", name, mean["plan heft"])
		}
		for _, pair := range [][2]string{{"eft", "first-free"}, {"first-free", "random"}, {"eft", "greedy-hope"},
			{"greedy-hope", "random"}, {"plan heft", "plan random"}, {"plan peft", "plan random"}} {
			if !(mean[pair[0]] < mean[pair[1]]) {
				t.Errorf("%s: %s takes %v and %s %v of HEFT: want the former to be shorter", name, pair[0], mean[pair[0]], pair[1],
					mean[pair[1]])
			}
		}
	}
	if _, err := sched.FindRule(ID, "best", Rules()); err == nil ||
		!strings.Contains(err.Error(),
			`DAGPlace-v1: rule "best" is unknown, want one of random, greedy-hope, first-free, eft`) {
		t.Errorf("%v", err)
	}
	if r, err := sched.FindRule(ID, "eft", Rules()); err != nil || r.Name != "eft" || r.About == "" {
		t.Errorf("%+v, %v", r, err)
	}
	e := open(t, c, nil, recorded(t), traces.Training)
	if _, _, err := e.Plan(ctx, env.Episode{}, "optimum"); err == nil ||
		!strings.Contains(err.Error(), `planner "optimum" is unknown, want one of heft,`) {
		t.Errorf("%v", err)
	}
	if _, _, err := e.Plan(ctx, env.Episode{Split: "x"}, "heft"); !errors.Is(err, env.ErrEpisode) {
		t.Errorf("%v", err)
	}
	_ = e.Close()
	if _, _, err := e.Plan(ctx, env.Episode{}, "heft"); !errors.Is(err, env.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A plan is made beside the episode in progress.
func TestPlanningLeavesTheEpisodeAlone(t *testing.T) {
	e := open(t, small()["default"], nil, recorded(t), traces.Training)
	ts, want := env.NewTimeStep(e.Spec()), ""
	for _, plan := range []bool{false, true} {
		if err := e.Reset(ctx, env.Episode{Seed: 2, Window: 4}, ts); err != nil {
			t.Fatal(err)
		}
		got := ""
		for k := 0; !ts.Kind.Last(); k++ {
			if plan {
				if _, _, err := e.Plan(ctx, env.Episode{Seed: 7, Window: -1}, "random"); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{int32(k % 6)}}, ts); err != nil {
				t.Fatal(err)
			}
			got += fmt.Sprintln(*ts)
		}
		if plan && got != want {
			t.Error("planning changed the episode")
		}
		want = got
	}
}

func TestRecordedTracesArePlayed(t *testing.T) {
	root := "../../../shared"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no recorded graphs in " + root)
	}
	for _, path := range []string{"traces/alibaba-dag-2018/dag_sample_50.csv", "traces/tpch-decima/tpch_2g.json.gz",
		"groundtruth/dag/tiny.jsonl.gz", "groundtruth/dag/wfcommons"} {
		set, err := graphs.Load(ctx, filepath.Join(root, path), graphs.Options{Instances: 4, MinWork: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		c := DefaultConfig()
		c.Reward = "makespan"
		e := open(t, c, nil, set, traces.Training)
		for _, r := range Rules() {
			sum := 0.0
			for k := range set.Count(traces.Test) {
				ts, src := env.NewTimeStep(e.Spec()), rng.Stream(1, "rule")
				if err := e.Reset(ctx, env.Episode{Seed: 1, Window: k, Split: "test"}, ts); err != nil {
					t.Fatal(err)
				}
				for !ts.Kind.Last() {
					if err := e.Step(ctx, env.Action{Disc: []int32{r.Choose(e, src)}}, ts); err != nil {
						t.Fatal(err)
					}
				}
				sum += ts.Info[0] / ts.Info[1] / float64(set.Count(traces.Test))
			}
			t.Logf("%s: %s takes %.3f of HEFT in %d graphs", path, r.Name, sum, set.Count(traces.Test))
			if !(sum > 0.5) {
				t.Errorf("%s: %s takes %v of HEFT", path, r.Name, sum)
			}
		}
	}
}
