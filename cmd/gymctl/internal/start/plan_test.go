package start_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/simulator/dag/synth"
)

const planGraphs = `{"name":"diamond","tasks":[{"id":0,"work":4},{"id":1,"work":2},{"id":2,"cost":[3,1]},{"id":3,"work":1}],"edges":[[0,1,10],[0,2,20],[1,3,5],[2,3,0]],"processors":[{"id":0,"speed":1},{"id":1,"speed":2}],"bandwidth":[[0,5],[5,0]]}
{"name":"bare","tasks":[{"id":"x","work":3}],"edges":[]}
`

func planFiles(t *testing.T) (graphs, platform string) {
	t.Helper()
	dir := t.TempDir()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(planGraphs))
	_ = z.Close()
	graphs, platform = filepath.Join(dir, "g.jsonl.gz"), filepath.Join(dir, "p.json")
	for path, text := range map[string][]byte{graphs: b.Bytes(),
		platform: []byte(`{"processors":[{"id":"a","speed":4}]}`)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return graphs, platform
}

func TestPlanPrintsADocumentALine(t *testing.T) {
	graphs, platform := planFiles(t)
	var out, errs bytes.Buffer
	if code := clitest.Execute(context.Background(),
		[]string{"plan", "--graph", graphs, "--platform", platform, "--policy", "heft,optimum", "--json"}, &out,
		&errs); code != 0 {
		t.Fatalf("%d: %s", code, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	var doc map[string]any
	for k, want := range []string{
		`{"graph":"diamond","tasks":4,"edges":4,"processors":2,"policy":"heft","makespan_s":4.5,"proven_optimal":false,"placements":[{"task":"0","processor":"1","start_s":0,"finish_s":2},{"task":"1","processor":"1","start_s":2,"finish_s":3},{"task":"2","processor":"1","start_s":3,"finish_s":4},{"task":"3","processor":"1","start_s":4,"finish_s":4.5}],"wall_s":`,
		`{"graph":"diamond","tasks":4,"edges":4,"processors":2,"policy":"optimum","makespan_s":4.5,"proven_optimal":true,`,
		`{"graph":"bare","tasks":1,"edges":0,"processors":1,"policy":"heft","makespan_s":0.75,"proven_optimal":false,"placements":[{"task":"x","processor":"a","start_s":0,"finish_s":0.75}],"wall_s":`,
		`{"graph":"bare","tasks":1,"edges":0,"processors":1,"policy":"optimum","makespan_s":0.75,"proven_optimal":true,`,
	} {
		if !strings.HasPrefix(lines[k], want) {
			t.Errorf("line %d:\n got %s\nwant %s", k, lines[k], want)
		}
		if err := json.Unmarshal([]byte(lines[k]), &doc); err != nil || len(doc) != 9 {
			t.Errorf("line %d has %d keys, %v", k, len(doc), err)
		}
	}
}

func TestPlanSaysWhatIsWrongAndKeepsWhatWasPlanned(t *testing.T) {
	graphs, _ := planFiles(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `--graph: got "", want the path of a file; or generate FAMILY:TASKSxGPUS`},
		{[]string{"--generate", "degree-2:20x4"}, `FAMILY one of alibaba, degree-1, degree-3, degree-100, training`},
		{[]string{"--generate", "degree-3:20x4", "-o", "-"}, `--output: got "-", want the path of a file`},
		{[]string{"--graph", graphs, "-o", graphs}, `it is the input`},
		{[]string{"--graph", "none.json"}, "--graph: there is no file none.json"},
		{[]string{"--graph", graphs, "--policy", "heft2"}, `--policy: got "heft2", want one of heft, `},
		{[]string{"--graph", graphs, "--rank-mean", "x"},
			`--rank-mean: got "x", want one of pairs, mean-bandwidth, self-pairs`},
		{[]string{"--graph", graphs, "--format", "wfformat"}, `schemaVersion: got "", want 1.5 or 1.6`},
		{[]string{"--graph", graphs, "x"}, `plan: got "x", want flags only`},
		{[]string{"--graph", graphs}, "g.jsonl.gz, line 2 (bare): the graph has no processors; want --platform FILE"},
	} {
		var out, errs bytes.Buffer
		code := clitest.Execute(context.Background(), append([]string{"plan"}, c.args...), &out, &errs)
		if code != cli.ExitMistake || !strings.Contains(errs.String(), c.want) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%v: %d, %s; want %s", c.args, code, &errs, c.want)
		}
		if strings.Contains(c.want, "line 2") != strings.Contains(out.String(), "diamond") {
			t.Errorf("%v: printed\n%s", c.args, &out)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	if code := clitest.Execute(ctx, []string{"plan", "--graph", graphs}, &out, &errs); code != cli.ExitInterrupted {
		t.Errorf("interrupted: %d, %s", code, &errs)
	}
}

func TestAGeneratedGraphIsKeptAsItWasPlanned(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, family := range synth.Families() {
		spec := family + ":30x4"
		plans := func(args ...string) string {
			return regexp.MustCompile(`"wall_s":[^}]*`).ReplaceAllString(
				clitest.Must(t, append([]string{"plan", "--policy", "heft,worl-rtgs", "--budget", "2x3", "--json"}, args...)...),
				"")
		}
		drawn := plans("--generate", spec, "-o", "graph.json")
		if kept := plans("--graph", "graph.json"); kept != drawn {
			t.Errorf("%s: drawn\n%s\nread back\n%s", spec, drawn, kept)
		}
	}
}
