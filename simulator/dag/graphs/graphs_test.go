package graphs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/simulator/dag"
	"clustergym/traces"
)

var ctx = context.Background()

// One small file of each format.
const (
	dagText = `{"name":"diamond","tasks":[{"id":0,"work":4},{"id":"b","cost":[3,1]}],"edges":[[0,"b",10]],"processors":[{"id":0,"speed":1},{"id":1,"speed":2}],"bandwidth":5}
{"name":"alone","tasks":[{"id":0,"work":1}],"edges":[]}
`
	wfText = `{"name":"w","schemaVersion":"1.6","workflow":{"specification":{
 "tasks":[{"id":"a","parents":[],"children":["b"],"outputFiles":["f"]},{"id":"b","parents":["a"],"children":[],"inputFiles":["f"]}],
 "files":[{"id":"f","sizeInBytes":5}]},"execution":{"tasks":[{"id":"a","runtimeInSeconds":2.5},{"id":"b","runtimeInSeconds":1}]}}}`
	alibabaText = "task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem\nM1,3,j,Terminated,10,14,100,1\nR2_1,1,j,Terminated,14,14,100,1\n"
	tpchText    = `{"2":{"edges":[[0,1]],"stages":[{"fresh_durations":{},"first_wave":{"2":[30,40]},"rest_wave":{}},{"fresh_durations":{},"first_wave":{"2":[8]},"rest_wave":{}}]}}`
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheFormatIsFoundByContent(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text, format string
		tasks              []int
		at                 string // of the first graph
		own                bool   // it has processors
	}{
		{"a.txt", dagText, DAGJSON, []int{2, 1}, "a.txt, line 1 (diamond)", true},
		{"b.csv", wfText, WfFormat, []int{2}, "b.csv (w)", false},
		{"c.json", alibabaText, Alibaba, []int{2}, "c.json (job j)", false},
		{"d", tpchText, TPCH, []int{2}, "d (query 2)", false},
	} {
		path := write(t, dir, c.name, c.text)
		r, err := Open(ctx, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.format != c.format {
			t.Errorf("%s: format %s, want %s", c.name, r.format, c.format)
		}
		for k, n := range c.tasks {
			g, err := r.Next()
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if g.Len() != n || k == 0 && (g.At != filepath.Join(dir, c.at) || (g.Platform != nil) != c.own) {
				t.Errorf("%s: graph %d: %d tasks at %q, platform %v", c.name, k, g.Len(), g.At, g.Platform)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: behind the last graph: %v", c.name, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOptionsChangeTheGraphsOfTraces(t *testing.T) {
	path := write(t, t.TempDir(), "a.csv", alibabaText)
	r, err := Open(ctx, path, Options{Instances: 2, MinWork: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it was only read
	g, err := r.Next()
	if err != nil || g.Len() != 3 || g.Edges() != 2 || g.Task(0).Work != 4 || g.Task(2).Work != 0.5 {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestAFolderIsReadInTheOrderOfItsPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "1.jsonl", dagText)
	write(t, dir, "readme.md", "not a graph")
	if err := os.Mkdir(filepath.Join(dir, "2"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "2"), "w.json", wfText)
	f, err := os.Create(filepath.Join(dir, "3.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	if _, err := io.WriteString(z, alibabaText); err != nil || z.Close() != nil || f.Close() != nil {
		t.Fatal(err)
	}
	s, err := Load(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range s.Len() {
		names = append(names, s.Graph(i).Name)
	}
	if got := strings.Join(names, " "); got != "diamond alone w j" {
		t.Errorf("graphs %s", got)
	}
	if s, err := Load(ctx, dir, Options{MinTasks: 2}); err != nil || s.Len() != 3 {
		t.Errorf("with two tasks or more: %v, %v", s, err)
	}
}

func set(t *testing.T, n int) *Set {
	t.Helper()
	var all []Graph
	for i := range n {
		g, err := dag.NewGraph(fmt.Sprint(i), []dag.Task{{ID: "a", Work: float64(i)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Graph{Graph: g, At: fmt.Sprint("graph ", i)})
	}
	s, err := NewSet(all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPartsAreDisjointAndInOrder(t *testing.T) {
	s := set(t, 20)
	next := 0
	for p, want := range map[traces.Part]int{traces.Training: 14, traces.Validation: 2, traces.Test: 4} {
		if got := s.Count(p); got != want {
			t.Errorf("%s: %d graphs, want %d", p, got, want)
		}
	}
	for p := traces.Training; p <= traces.Test; p++ {
		for k := range s.Count(p) {
			for seed := range uint64(3) {
				if g, _, err := s.At(p, seed, k); err != nil || g.Name != fmt.Sprint(next) {
					t.Errorf("%s %d: %v, %v, want graph %d", p, k, g, err, next)
				}
			}
			next++
		}
		// Drawn ones are of the part, all of them come, and the seed alone says which.
		seen := map[string]bool{}
		for seed := range uint64(200) {
			g, _, err := s.At(p, seed, -1)
			again, _, _ := s.At(p, seed, -1)
			if err != nil || g != again {
				t.Fatal(err)
			}
			seen[g.Name] = true
		}
		if len(seen) != s.Count(p) {
			t.Errorf("%s: %d graphs were drawn of %d", p, len(seen), s.Count(p))
		}
		lo, hi := p.Bounds(20)
		for name := range seen {
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i < lo || i >= hi {
				t.Errorf("%s: graph %s was drawn", p, name)
			}
		}
	}
	if a, b := set(t, 20).SHA256(), set(t, 21).SHA256(); a != s.SHA256() || a == b {
		t.Errorf("digests %s, %s, %s", s.SHA256(), a, b)
	}
}

func TestWhatIsWrongWithFilesIsOneSentence(t *testing.T) {
	dir := t.TempDir()
	jobs := write(t, dir, "jobs.csv", "id,submit,work\n1,0,5\n")
	cyclic := write(t, dir, "cyclic.json",
		`{"name":"c","tasks":[{"id":"a","work":1},{"id":"b","work":1}],"edges":[["a","b",0],["b","a",0]]}`)
	other := write(t, dir, "other.json", `{"a": 1}`)
	alone := write(t, dir, "alone.json", `{"tasks":[{"id":0,"work":1}],"edges":[]}`)
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
		o          Options
	}{
		{jobs, "DAGPlace-v1 takes task graphs (WfCommons, Alibaba, TPC-H, dag JSON); jobs.csv holds jobs without graphs",
			Options{For: "DAGPlace-v1"}},
		{jobs, "want task graphs (WfCommons, Alibaba, TPC-H, dag JSON); jobs.csv holds jobs without graphs", Options{}},
		{jobs, jobs + ", line 1: this is no JSON", Options{Format: DAGJSON}},
		{cyclic, cyclic + ", line 1 (c): tasks a → b → a form a cycle; want a graph without cycles", Options{}},
		{other, other + ", line 1: tasks is missing", Options{}},
		{alone, alone + ": none of 1 graphs has min_tasks = 5 tasks; want a smaller min_tasks", Options{MinTasks: 5}},
		{filepath.Join(dir, "none"), "task graphs " + filepath.Join(dir, "none") + ": there is no such file or folder",
			Options{}},
		{filepath.Join(dir, "empty"),
			"task graphs " + filepath.Join(dir, "empty") + ": the folder has no file that ends in .json, .jsonl or .csv",
			Options{}},
		{alone, `format: got "swf", want one of dag-json, wfformat, alibaba, tpch`, Options{Format: "swf"}},
		{alone, `min_work: got -1, want seconds, 0 to 1e9`, Options{MinWork: -1}},
	} {
		if _, err := Load(ctx, c.path, c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v:\n got %v\nwant %s", c.o, err, c.want)
		}
	}
	var none *NoGraphsError
	if _, err := Load(ctx, jobs, Options{}); !errors.As(err, &none) || none.File != jobs {
		t.Errorf("%v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Load(done, alone, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a load that was cancelled: %v", err)
	}
	if _, err := NewSet(nil); err == nil {
		t.Error("a set of nothing was taken")
	}
	s := set(t, 3)
	for want, err := range map[string]error{
		"too few task graphs: the validation part (10 %) has none of 3; 4 graphs give every part one": third(
			s.At(traces.Validation, 1, -1)),
		"graph 2 of the training part: want 0 to 1, or -1 for one drawn from the seed": third(
			s.At(traces.Training, 1, 2)),
		"graph -2 of the test part": third(s.At(traces.Test, 1, -2)),
		"task graphs: want part":    third(s.At(9, 1, 0)),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func third(_ *dag.Graph, _ *dag.Platform, err error) error { return err }

// The recorded files lie beside this repository, of which they are no part.
func TestRecordedGraphsAreRead(t *testing.T) {
	root := "../../../../shared"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no recorded graphs in " + root)
	}
	for _, c := range []struct {
		path  string
		o     Options
		least int
	}{
		{"traces/alibaba-dag-2018/dag_sample_50.csv", Options{}, 40},
		{"traces/alibaba-dag-2018/dag_sample_part1.csv.gz", Options{MinTasks: 5}, 500},
		{"traces/alibaba-dag-2018", Options{}, 6000},
		{"traces/tpch-decima", Options{}, 110},
		{"traces/tpch-decima/tpch_2g.json.gz", Options{Instances: 4}, 22},
		{"groundtruth/dag/tiny.jsonl.gz", Options{}, 64},
		{"groundtruth/dag/random.jsonl.gz", Options{}, 96},
		{"groundtruth/dag/wfcommons", Options{}, 3},
	} {
		s, err := Load(ctx, filepath.Join(root, c.path), c.o)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if s.Len() < c.least {
			t.Errorf("%s: %d graphs, want %d or more", c.path, s.Len(), c.least)
		}
		t.Logf("%s: %d graphs", c.path, s.Len())
	}
}

func TestASetTellsWhatItsFilesLack(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.csv": "task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem\nM1_1,1,x,Terminated,1,2,,\nM1,1,y,Terminated,1,2,,\nM1,1,z,Failed,1,2,,\n",
		"b.json": `{"name":"w","schemaVersion":"1.5","workflow":{"specification":{"tasks":[{"id":"a","parents":[],"children":["b"]},{"id":"b","parents":["a"],"children":[]}]},` +
			`"execution":{"tasks":[{"id":"a","runtimeInSeconds":1},{"id":"b","runtimeInSeconds":1}]}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load(t.Context(), dir, Options{})
	if err != nil || s.Len() != 2 {
		t.Fatalf("%v", err)
	}
	all := strings.Join(s.Notes(), "\n")
	for _, want := range []string{"a.csv: 1 left out (job whose tasks need themselves by way of their parents, as names that are cut say (first in line 2))", "a.csv: 1 left out (job with a task that is Failed)", "b.json (w): 1 of 1 edges carries no bytes"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s\ndoes not tell: %s", all, want)
		}
	}
}
