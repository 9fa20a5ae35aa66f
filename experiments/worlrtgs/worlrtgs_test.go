package worlrtgs

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/experiments/study"
	"clustergym/internal/raced"
	"clustergym/lab/plan"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
	"clustergym/simulator/dag/synth"
	"clustergym/traces"
)

func TestRanksShareTheirPlaces(t *testing.T) {
	if got := ranks([]float64{3, 1, 3, 2, 9}); !slices.Equal(got, []float64{3.5, 1, 3.5, 2, 5}) {
		t.Errorf("ranks %v", got)
	}
}

func TestPearsonByHand(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{{[]float64{1, 2, 3}, []float64{2, 4, 6}, 1}, {[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{-1, 0, 1}, []float64{1, -2, 1}, 0}} {
		if got := pearson(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v and %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}

// The study's subject on a few graphs with a small budget: the trained generator makes shorter plans than plain whale
// optimisation and than the greedy generator, and a search that starts from HEFT's plan is never worse than HEFT.
func TestWORLRTGSBeatsItsKin(t *testing.T) {
	s := settings{Iterations: 5, Whales: 6}
	sum := map[string]float64{}
	for k := range 3 {
		q, err := synth.FamilyProblem("degree-3", 60, 20, k, true)
		if err != nil {
			t.Fatal(err)
		}
		heft := listsched.New(q, listsched.Options{}).HEFT(true).Makespan
		for _, p := range allPlanners {
			if p.name != "woa" && p.name != "rtgs" && p.name != "worl-rtgs" && p.name != "worl-rtgs+heft" {
				continue
			}
			plan, err := p.run(context.Background(), q, &s, 1, 1, trained{generator: plan.GeneratorWeights}, 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := dag.Check(q, plan, true); err != nil {
				t.Error(err)
			}
			sum[p.name] += math.Log(plan.Makespan/heft) / 3
			if p.start == "heft" && plan.Makespan > heft {
				t.Errorf("%s: %v is above HEFT's %v", p.name, plan.Makespan, heft)
			}
		}
	}
	t.Logf("makespan over HEFT's, logarithms: %v", sum)
	if sum["worl-rtgs"] >= sum["woa"] || sum["worl-rtgs"] >= sum["rtgs"] || sum["worl-rtgs"] > math.Log(1.05) {
		t.Errorf("%v", sum)
	}
}

func TestBothFormsOfTheStudyAreWellMade(t *testing.T) {
	for _, quick := range []bool{true, false} {
		p := study.Plan{Quick: quick, Workers: 1}
		all, err := Study().Cells(p)
		if err != nil || len(all) < 40 || len(Study().Notes(p)) == 0 {
			t.Errorf("quick %v: %d cells, %v", quick, len(all), err)
		}
	}
}

// What the study is about: whales in rank space find shorter plans than the best of as many noisy plans of HEFT. The
// graphs are none of the tables'.
func TestWhalesInRankSpaceBeatAsManyNoisyPlans(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	s := settings{Iterations: 20, Whales: 10}
	sum := map[string]float64{}
	for _, family := range synth.Families() {
		for k := range 3 {
			q, err := synth.FamilyProblem(family, 200, 30, 1000+k, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range allPlanners {
				if p.name != plan.NoisyPolicy && p.name != "worl-ranks+heft" {
					continue
				}
				for seed := range uint64(2) {
					plan, err := p.run(context.Background(), q, &s, 1, seed, trained{generator: plan.GeneratorWeights}, 2)
					if err != nil {
						t.Fatal(err)
					}
					if err := dag.Check(q, plan, true); err != nil {
						t.Error(err)
					}
					sum[p.name] += math.Log(plan.Makespan) / 30
				}
			}
		}
	}
	d := sum["worl-ranks+heft"] - sum[plan.NoisyPolicy]
	t.Logf("%+.2f %%", 100*d)
	if d > -0.001 { // other kernels of the network change some plans
		t.Errorf("%+.2f %% against noisy plans", 100*d)
	}
}

// A size without parts is planned by the whole planners alone, and no size by a generator that is not trained.
func TestPlannersOfASize(t *testing.T) {
	names := func(all []planner) (names []string) {
		for _, p := range all {
			names = append(names, p.name)
		}
		return names
	}
	s := settings{}
	all := names(s.without(graphSize{}).planners())
	if slices.Contains(all, hopefulPlanner) || len(all) != len(allPlanners)-1 || !s.every(graphSize{}) {
		t.Errorf("%v", all)
	}
	s.Hopeful = 1
	z := graphSize{Without: []string{parts, "peft"}}
	for _, name := range names(s.without(z).planners()) {
		if name == "peft" || strings.HasPrefix(name, "worl-rtgs ") {
			t.Errorf("%s plans a size without it", name)
		}
	}
	if s.every(z) || !s.every(graphSize{}) {
		t.Error("every planner or not")
	}
	s.Sizes = []graphSize{{Tasks: 1, GPUs: 1, Graphs: 1, Without: []string{plan.NoisyPolicy}}}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), plan.NoisyPolicy) {
		t.Errorf("%v", err)
	}
}

// Every key of the two sections that train networks is checked, and one that the study would not read is refused.
func TestSettingsOfNetworks(t *testing.T) {
	input := func(sets ...string) (map[string]any, error) {
		all, err := Study().Cells(study.Plan{Quick: true, Changes: study.Changes{Set: sets}})
		inputs := map[string]any{}
		for _, c := range all {
			text, err := json.Marshal(c.Input)
			if err != nil {
				t.Fatal(err)
			}
			inputs[c.Key] = string(text)
		}
		return inputs, err
	}
	for set, want := range map[string]string{
		"generator.learner.lr=0.002":          "generator.learner.lr: got 0.002, want 0.001, or generators or hopeful above 0: no generator is trained",
		"generator.learner.lr=-1":             "generator.learner.lr: got -1, want",
		"dras_agent.learner.network.hiden=3":  "did you mean",
		"dras_agent.envs=0":                   "dras_agent.envs: got 0, want 1 to 4096",
		"dras_agent.learner.network.hidden=0": "dras_agent.learner.network.hidden",
		"dras_agent.place.slots=8":            "dras_agent.place.slots: got 8, want 16: the queue sets it",
	} {
		if _, err := input(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
	if _, err := input("generators=1", "generator.place.slots=8"); err == nil ||
		!strings.Contains(err.Error(), "the search sets it") {
		t.Errorf("%v", err)
	}
	plain, err := input("generators=1")
	if err != nil {
		t.Fatal(err)
	}
	if plain[drasKey] != `{"Version":2,"Of":40000}` {
		t.Errorf("the default input is %v", plain[drasKey])
	}
	if own, err := json.Marshal(plan.DefaultGeneratorConfig()); err != nil ||
		plain[generatorKey(0)] != `{"Version":2,"Of":`+string(own)+"}" {
		t.Errorf("the default input of a generator is %v, %v", plain[generatorKey(0)], err)
	}
	wider, err := input("generators=1", "generator.learner.network.hidden=[64]", "dras_agent.learner.lr=0.01")
	if err != nil || wider[drasKey] == plain[drasKey] || wider[generatorKey(0)] == plain[generatorKey(0)] {
		t.Errorf("other networks, the same cells: %v", err)
	}
}

// A generator with another network than the program's plans with it.
func TestAGeneratorOfAnotherSizePlans(t *testing.T) {
	s := settings{Iterations: 2, Whales: 3, Generators: 1, Generator: plan.DefaultGeneratorConfig()}
	s.Generator.Steps, s.Generator.Judge, s.Generator.Place.Tasks, s.Generator.Learner.Network.Hidden = 320, 1, 20,
		[]int{8}
	g, err := plan.TrainGenerator(context.Background(), s.Generator, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, err := synth.FamilyProblem("degree-3", 30, 8, 1000, true)
	if err != nil {
		t.Fatal(err)
	}
	p := allPlanners[slices.IndexFunc(allPlanners, func(p planner) bool { return p.name == "worl-rtgs" })]
	found, err := p.run(context.Background(), q, &s, 1, 1, trained{generator: g.Weights}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := dag.Check(q, found, true); err != nil {
		t.Error(err)
	}
	s.Generators = 0
	if _, err := p.run(context.Background(), q, &s, 1, 1, trained{generator: g.Weights}, 1); err == nil {
		t.Error("weights of another network are taken for the program's")
	}
}

// The paper gives a critical difference of 1.260 for six methods, which corresponds to 36 graphs.
func TestTheCriticalDifferenceIsThePapers(t *testing.T) {
	if got := nemenyi(6, 36); math.Abs(got-1.260) > 0.005 {
		t.Errorf("%v", got)
	}
}

// All searches of a graph make equally many plans, at most as many as the automatic budget of the most expensive one.
func TestSearchesOfAGraphMakeEquallyManyPlans(t *testing.T) {
	s := settings{Iterations: 20, Whales: 10}
	for _, c := range []struct {
		tasks, gpus, iterations, whales int
	}{{100, 50, 20, 10}, {1000, 500, 20, 10}, {10_000, 500, 10, 8}} {
		for _, policy := range append([]string{plan.NoisyPolicy}, plan.SearchPolicies...) {
			if i, w := s.budget(policy, c.tasks, c.gpus); i != c.iterations || w != c.whales {
				t.Errorf("%s, %d tasks on %d GPUs: %dx%d, want %dx%d", policy, c.tasks, c.gpus, i, w, c.iterations, c.whales)
			}
		}
	}
	i, w := s.budget("worl-rtgs", 10_000, 500)
	if ai, aw := plan.AutoBudget("worl-rtgs", 10_000, 500); ai*aw > i*w {
		t.Errorf("%dx%d, and gymctl plan takes %dx%d", i, w, ai, aw)
	}
}

func testJobs() []traces.Job {
	job := func(id string, tasks int) traces.Job {
		j := traces.Job{ID: id, Graph: &traces.Graph{}}
		for k := range tasks {
			j.Graph.Tasks = append(j.Graph.Tasks,
				traces.Task{Name: fmt.Sprintf("M%d", k+1), Instances: 3, Work: time.Duration(k) * time.Second})
			if k > 0 {
				j.Graph.Edges = append(j.Graph.Edges, traces.Edge{Parent: int32(k - 1), Child: int32(k)})
			}
		}
		return j
	}
	jobs := []traces.Job{job("a", 2), job("b", 5), job("c", 3)}
	for k := range 60 {
		jobs = append(jobs, job(fmt.Sprint(k), 4))
	}
	return append(jobs, job("d", 6))
}

func TestGraphsOfRecordedJobs(t *testing.T) {
	jobs := testJobs()
	for _, c := range []struct {
		kind         string
		k            int
		name         string
		tasks, edges int
	}{
		{"job", 0, "d", 6, 5}, {"job", 1, "b", 5, 4}, {"instances", 1, "b", 15, 36},
		// 64 jobs in two parts: the second starts with the 33rd, from which fewer than 300 tasks remain.
		{"merged", 1, "29 and 31 more", 130, 98},
	} {
		q, err := recordedProblem(jobs, c.kind, c.k, 2)
		if err != nil {
			t.Fatal(err)
		}
		if q.Graph.Name != c.name || q.Tasks() != c.tasks || q.Graph.Edges() != c.edges || q.Procs() != recordedGPUs {
			t.Errorf("%s %d: %q, %d tasks, %d edges, %d GPUs", c.kind, c.k, q.Graph.Name, q.Tasks(), q.Graph.Edges(), q.Procs())
		}
		for i := range int32(q.Tasks()) {
			if q.Graph.Task(i).Work < leastWork {
				t.Errorf("%s: task %d takes %v", c.kind, i, q.Graph.Task(i).Work)
			}
		}
	}
	// Transfers take as long as in the generated graphs: half a mean run time on average.
	q, err := recordedProblem(jobs, "merged", 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	run := 0.0
	for i := range int32(q.Tasks()) {
		run += q.MeanExec(i) / float64(q.Tasks())
	}
	sent := q.Platform.MeanCost(dag.Pairs).Of(q.Graph.Bytes() / float64(q.Graph.Edges()))
	if ratio := sent / run; ratio < 0.35 || ratio > 0.65 {
		t.Errorf("transfers take %v of a run time", ratio)
	}
	if _, err := recordedProblem(jobs, "job", len(jobs), 100); err == nil {
		t.Error("more jobs than there are")
	}
}

func TestTheFolderOfData(t *testing.T) {
	dir := t.TempDir()
	if _, err := Study().Cells(study.Plan{Quick: true, Data: dir}); err == nil ||
		!strings.Contains(err.Error(), "dag_sample_part1.csv.gz: no such file") {
		t.Errorf("%v", err)
	}
	data := filepath.Join("..", "..", "..", "shared", "traces")
	if _, err := os.Stat(data); err != nil {
		t.Skip("no recorded data")
	}
	plain, err := Study().Cells(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	more, err := Study().Cells(study.Plan{Quick: true, Data: data})
	if err != nil || len(more) != len(plain)+6 {
		t.Fatalf("%d cells beside %d, %v", len(more), len(plain), err)
	}
	jobs, err := readJobs(filepath.Join(data, "alibaba-dag-2018", "dag_sample_part1.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range recordedKinds {
		q, err := recordedProblem(jobs, kind, 1, 2)
		if err != nil || q.Tasks() < 44 {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
