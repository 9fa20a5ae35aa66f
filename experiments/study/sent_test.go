package study

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
)

func TestSettingsOfATaskNameNoFiles(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"file", "/etc/passwd", "names the file"}, {"file", "token", "names the file"},
		{"file", "../../x.csv", "names the file"}, {"file", "", ""},
		{"profiles", "x.json", "names the file"}, {"imitate_from", "runs/x", "names the file"},
		{"cluster", "nodes.yaml", "no preset"}, {"cluster", "/dev/zero", "no preset"}, {"cluster", "token", "no preset"},
		{"cluster", "../clusters/philly-192", "no preset"},
		{"cluster", "philly-192", ""}, {"cluster", "4x8", ""}, {"cluster", "pool:64", ""},
		{"cluster", "get:philly", "no preset"}, {"clusters", "4x2", ""}, {"clusters", "a/b", "no preset"},
		{"estimates", "gbdt:/etc/passwd", "names the model"}, {"estimates", "gbdt", ""}, {"estimates", "noisy:0.5", ""},
		{"congestion_at", "philly/tree", ""}, {"name", "mine", ""}, {"profile", "philly", ""},
		{"set", "trace.file=/etc/passwd", "names the file"}, {"set", " trace.file = 'token'", "names the file"},
		{"set", `trace.file="token"`, "names the file"},
		{"set", "trace.profiles=x", "names the file"}, {"set", "cluster=nodes.yaml", "no preset"},
		{"set", "cluster=philly-192", ""}, {"set", "env.estimates=gbdt:x", "names the model"},
		{"set", "trace={file: token}", "more than a plain value"},
		{"set", "trace=&a {file: token}", "more than a plain value"},
		{"set", "trace.file=!!str token", "more than a plain value"},
		{"set", "trace=\nfile: token", "more than a plain value"}, {"set", "trace=file: token", "more than a plain value"},
		{"set", "trace.file=>-\n token", "more than a plain value"},
		{"set", "env.args=[trace.file=token]", "names the file"},
		{"set", "env.args=[load=2, 'cluster=nodes.yaml']", "no preset"},
		{"set", "env.args+=[trace.file=token]", "names the file"},
		{"set", "env.args[0]=trace.file=token", "names the file"}, {"set", "env.load=1.5", ""},
		{"set", "eval.policies=[sjf+skip, fifo]", ""}, {"set", "ppo.lr=1e-4", ""},
		{"args", "trace.file=token", "names the file"},
	} {
		if got := opens(c.key, c.value); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %q: got %q, expected %q", c.key, c.value, got, c.want)
		}
	}
}

// The folder of recorded workloads and changed settings come with a task. A worker takes the folder from its own user,
// and no files of settings at all.
func TestACellOpensNoFileOfTheWorker(t *testing.T) {
	made := 0
	toys := filed(&made)
	h := Handler(func(string) (Study, error) { return toys, nil }, "")
	do := func(in cellTask) error {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = h(t.Context(),
			&workqueue.Job{Task: workqueue.Task{Kind: CellKind, Input: text}, Dir: t.TempDir(), Workers: 1})
		return err
	}
	for want, in := range map[string]cellTask{
		"start it with data": {Study: "filed", Quick: true, Data: "/etc", Key: "cell"},
		`file: it names the file "/etc/passwd"`: {Study: "filed", Quick: true, Key: "cell",
			Changes: &Changes{Set: []string{"file=/etc/passwd"}}},
		`file: it names the file "token"`: {Study: "filed", Quick: true, Key: "cell",
			Changes: &Changes{File: "x.yaml", Text: "file: token\n"}},
		"take at most 10000": {Study: "filed", Quick: true, Key: "cell", Seeds: 1 << 40},
		"has not brought it": {Study: "filed", Quick: true, Key: "cell", Agents: []string{"x"}},
	} {
		err := do(in)
		if _, mistake := errors.AsType[*fault.Mistake](err); err == nil || !mistake && in.Agents == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q", err, want)
		}
	}
	if made > 0 {
		t.Errorf("cells were made %d times, with files of the task's choice", made)
	}
	if err := do(cellTask{Study: "filed", Quick: true, Key: "none", Changes: &Changes{Set: []string{"runs=3"}}}); err ==
		nil || made != 1 || !strings.Contains(err.Error(), "has none of that name") {
		t.Errorf("got %v after %d cells", err, made)
	}
}

// fileSettings are the settings of the study that filed makes.
type fileSettings struct {
	Runs int    `yaml:"runs"`
	File string `yaml:"file"`
}

func (*fileSettings) Validate() error { return nil }

// filed makes a study whose settings can name a file; it counts how often they were used.
func filed(made *int) Study {
	return Study{
		Name: "filed", Title: "Files", Tables: func(Plan) []Table { return nil },
		Cells: func(p Plan) ([]Cell, error) {
			if _, err := Settings("filed", experimentYAML("quick:\n  runs: 1\nfull:\n  runs: 2\n"), p, fileSettings{}); err !=
				nil {
				return nil, err
			}
			*made++
			return nil, nil
		},
	}
}
