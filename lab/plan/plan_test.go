package plan

import (
	"compress/gzip"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
)

const (
	diamond = `{"name":"diamond","tasks":[{"id":0,"work":4},{"id":1,"work":2},{"id":2,"cost":[3,1]},{"id":3,"work":1}],` +
		`"edges":[[0,1,10],[0,2,20],[1,3,5],[2,3,0]],"processors":[{"id":0,"speed":1},{"id":1,"speed":2}],"bandwidth":[[0,5],[5,0]]}`
	bare      = `{"name":"bare","tasks":[{"id":"x","work":3}],"edges":[]}`
	processor = `{"processors":[{"id":"a","speed":4}]}`
	// workflow is a in 4 s, then b in 2 s and c in 3 s, which read 10 and 20 bytes of it, then d in 1 s.
	workflow = `{"name":"w","schemaVersion":"1.5","workflow":{"specification":{"tasks":[
 {"name":"a","id":"a","parents":[],"children":["b","c"],"outputFiles":["ab","ac"]},
 {"name":"b","id":"b","parents":["a"],"children":["d"],"inputFiles":["ab"],"outputFiles":["bd"]},
 {"name":"c","id":"c","parents":["a"],"children":["d"],"inputFiles":["ac"]},
 {"name":"d","id":"d","parents":["b","c"],"children":[],"inputFiles":["bd"]}],
 "files":[{"id":"ab","sizeInBytes":10},{"id":"ac","sizeInBytes":20},{"id":"bd","sizeInBytes":5}]},
 "execution":{"tasks":[{"id":"a","runtimeInSeconds":4},{"id":"b","runtimeInSeconds":2},{"id":"c","runtimeInSeconds":3},{"id":"d","runtimeInSeconds":1}],"makespanInSeconds":8}}}`
	pair = `{"processors":[{"id":0,"speed":1},{"id":1,"speed":2}],"bandwidth":5}`
)

// write writes text to a file of a temporary folder and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clock is a wall clock that advances by a second with every reading.
func clock() func() time.Time {
	var now time.Time
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

// runAll returns everything that Run emits, and its error.
func runAll(cfg Config) ([]*Result, error) {
	var all []*Result
	err := Run(context.Background(), cfg, Hooks{Now: clock()}, func(r *Result) error {
		all = append(all, r)
		return nil
	})
	return all, err
}

func TestEveryGraphIsPlannedUnderEveryPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.jsonl.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	if _, err := z.Write([]byte(diamond + "\n" + bare + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig()
	c.Graph, c.Platform, c.Policies = path, write(t, "p.json", processor), []string{"heft", "optimum"}
	all, err := runAll(c)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d plans, %v", len(all), err)
	}
	for k, want := range []Document{
		{Graph: "diamond", Tasks: 4, Edges: 4, Processors: 2, Policy: "heft", Makespan: 4.5},
		{Graph: "diamond", Tasks: 4, Edges: 4, Processors: 2, Policy: "optimum", Makespan: 4.5, Proven: true},
		{Graph: "bare", Tasks: 1, Processors: 1, Policy: "heft", Makespan: 0.75},
		{Graph: "bare", Tasks: 1, Processors: 1, Policy: "optimum", Makespan: 0.75, Proven: true},
	} {
		got := all[k].Document
		if len(got.Placements) != want.Tasks || got.Wall != 1 {
			t.Errorf("plan %d has %d placements and took %v s", k, len(got.Placements), got.Wall)
		}
		got.Placements, got.Wall = nil, 0
		if got.Graph != want.Graph || got.Tasks != want.Tasks || got.Edges != want.Edges ||
			got.Processors != want.Processors ||
			got.Policy != want.Policy || got.Makespan != want.Makespan || got.Proven != want.Proven {
			t.Errorf("plan %d: %+v, want %+v", k, got, want)
		}
	}
	// All tasks on the faster GPU: 2 + 1 + 1 + 0.5.
	for i, want := range []Placement{{"0", "1", 0, 2}, {"1", "1", 2, 3}, {"2", "1", 3, 4}, {"3", "1", 4, 4.5}} {
		if got := all[0].Document.Placements[i]; got != want {
			t.Errorf("placement %d: %+v, want %+v", i, got, want)
		}
	}
}

// Run adds reading, checking and reporting to a planner, and changes nothing of its plan.
func TestARecordedGraphIsPlannedAsByListsched(t *testing.T) {
	c := DefaultConfig()
	c.Graph, c.Platform, c.Policies, c.Seed = write(t, "w.json",
		workflow), write(t, "p.json", pair), listsched.Policies(), 3
	c.Policies = slices.DeleteFunc(c.Policies, func(p string) bool { return p == "optimum" })
	all, err := runAll(c)
	if err != nil || len(all) != len(c.Policies) {
		t.Fatalf("%d plans of %d, %v", len(all), len(c.Policies), err)
	}
	for k, policy := range c.Policies {
		r := all[k]
		want, err := listsched.New(r.Problem,
			listsched.Options{RankMean: dag.Pairs}).Plan(context.Background(), policy, rng.Stream(3, "plan/"+policy))
		if err != nil {
			t.Fatal(err)
		}
		d := r.Document
		if d.Graph != "w" || d.Tasks != 4 || d.Edges != 4 || d.Policy != policy || d.Makespan != want.Makespan || d.Proven {
			t.Errorf("%s: %+v, want a makespan of %v", policy, d, want.Makespan)
		}
		for i, p := range d.Placements {
			if p.Task != r.Problem.Graph.Task(int32(i)).ID ||
				p.Processor != r.Problem.Platform.Processor(int(want.Proc[i])).ID ||
				p.Start != want.Start[i] || p.Finish != want.Finish[i] {
				t.Errorf("%s, task %d: %+v", policy, i, p)
			}
		}
		// Only eft-index leaves out the transfers, and its result says so.
		if noted := len(r.Notes) == 1 && strings.Contains(r.Notes[0], "without transfers"); noted != (policy == "eft-index") {
			t.Errorf("%s: notes %q", policy, r.Notes)
		}
	}
	// HEFT runs everything on the fast processor: 2 + 1 + 1.5 + 0.5.
	if got := all[0].Document.Makespan; math.Abs(got-5) > 1e-12 {
		t.Errorf("HEFT takes %v s, want 5", got)
	}
}

func TestAnOptimumThatIsNotProvenSaysWhy(t *testing.T) {
	c := DefaultConfig()
	c.Generate, c.Policies, c.Budget = "degree-3:10x3", []string{"optimum"}, "1"
	all, err := runAll(c)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d plans, %v", len(all), err)
	}
	if r := all[0]; r.Document.Proven || len(r.Notes) != 1 ||
		!strings.Contains(r.Notes[0], "is not proven to be the least: the search stopped after 1 nodes") {
		t.Errorf("proven %v, notes %q", r.Document.Proven, r.Notes)
	}
}

func TestAMistakeIsOneSentence(t *testing.T) {
	graphs, dir := write(t, "g.jsonl", diamond+"\n"+bare), t.TempDir()
	for _, x := range []struct {
		set  func(c *Config)
		want string
	}{
		{func(c *Config) { c.Graph = "" }, `graph: got "", want the path of a file; or generate FAMILY:TASKSxGPUS`},
		{func(c *Config) { c.Generate = "degree-3:20x4" }, `generate: got "degree-3:20x4", want one of graph and generate`},
		{func(c *Config) { c.Graph = "none.json" }, "graph: there is no file none.json"},
		{func(c *Config) { c.Graph = dir }, "is a folder, want a file"},
		{func(c *Config) { c.Platform = "none.json" }, "platform: there is no file none.json"},
		{func(c *Config) { c.Policies = nil }, `policies: got "", want one or more of heft, `},
		{func(c *Config) { c.Policies = []string{"heft2"} }, `policies: got "heft2", want one of heft, `},
		{func(c *Config) { c.RankMean = "x" }, `rank_mean: got "x", want one of pairs, mean-bandwidth, self-pairs`},
		{func(c *Config) { c.Budget = "x" }, `budget: got "x", want auto, ITERATIONSxWHALES`},
		{func(c *Config) { c.Start = "peft" }, `start: got "peft", want heft or random`},
		{func(c *Config) { c.B = math.NaN() }, `b: got NaN, want a number in [-10, 10]`},
		{func(c *Config) { c.Moves = -1 }, `moves: got -1, want 0 or more`},
		{func(c *Config) { c.Workers = 0 }, `workers: got 0, want 1 or more`},
		{func(c *Config) { c.Format = "dot" }, `format: got "dot", want one of auto, dag-json, wfformat, alibaba`},
		{func(c *Config) { c.Format = "wfformat" }, `schemaVersion: got "", want 1.5 or 1.6`},
		{func(c *Config) { c.Graph = write(t, "p.json", processor) }, "tasks is missing"},
		{func(c *Config) { c.Policies, c.Weights = []string{"worl-rtgs"}, "none" }, "generator: there is no file none"},
		{func(c *Config) { c.Policies, c.Weights = []string{"worl-rtgs"}, graphs },
			"generator " + graphs + ": the generator's weights: "},
	} {
		c := DefaultConfig()
		c.Graph = graphs
		x.set(&c)
		all, err := runAll(c)
		var input *fault.Mistake
		if len(all) > 0 || !errors.As(err, &input) || !strings.Contains(err.Error(), x.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%d plans, %v; want %s", len(all), err, x.want)
		}
	}
	c := DefaultConfig()
	c.Graph = graphs
	all, err := runAll(c)
	if want := graphs + ", line 2 (bare): the graph has no processors; want platform FILE"; len(all) != 1 || err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%d plans, %v; want the first graph's plan and %s", len(all), err, want)
	}
}

func TestPlanningStopsWhenItIsAskedTo(t *testing.T) {
	c := DefaultConfig()
	c.Generate = "degree-3:20x4"
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, c, Hooks{Now: clock()}, func(*Result) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("the disk is full")
	if err := Run(context.Background(), c, Hooks{Now: clock()}, func(*Result) error { return full }); !errors.Is(err,
		full) {
		t.Errorf("emit's error: %v", err)
	}
	h := Hooks{Now: clock(), Graph: func(*dag.Problem) error { return full }}
	if err := Run(context.Background(), c, h, func(*Result) error { t.Error("planned"); return nil }); !errors.Is(err,
		full) {
		t.Errorf("the hook's error: %v", err)
	}
}

func TestBudgets(t *testing.T) {
	for text, want := range map[string]budget{
		"auto": {}, "1": {nodes: 1}, "1000000": {nodes: 1_000_000}, "1x2": {iterations: 1, whales: 2},
		"1000000x10000": {iterations: 1_000_000, whales: 10_000},
	} {
		if got, err := parseBudget(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "Auto", "0", "-1", "+1", "1.5", "x", "10x", "x10", "10x1", "0x10", "10x10001",
		"1000001x10", "10x10x10", "10X10"} {
		if got, err := parseBudget(text); err == nil || got != (budget{}) {
			t.Errorf("%q: %+v, %v, want an error", text, got, err)
		}
	}
}
