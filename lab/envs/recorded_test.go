package envs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/envtest"
	"clustergym/env/jobselect"
	"clustergym/env/workerplace"
	"clustergym/simulator/dag/dagjson"
	"clustergym/simulator/dag/synth"
)

// recorded writes a folder of small task graphs and a trace of jobs, with and without models, into a trace root.
func recorded(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "graphs"), 0o750); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		q, err := synth.FamilyProblem("degree-3", 8+i, 4, i, true)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(root, "graphs", fmt.Sprintf("g%02d.json", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(dagjson.Write(f, q.Graph, nil), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var named, nameless strings.Builder
	named.WriteString("submit_time,duration,num_gpu,model\n")
	nameless.WriteString("submit_time,duration,num_gpu\n")
	for i := range 120 {
		fmt.Fprintf(&named, "%d,%d,%d,%s\n", 60*i, 900+i*7%500, 1+i%3, []string{"resnet-50", "vgg-16"}[i%2])
		fmt.Fprintf(&nameless, "%d,%d,%d\n", 60*i, 900+i*7%500, 1+i%3)
	}
	for name, text := range map[string]string{"named.csv": named.String(), "nameless.csv": nameless.String()} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRemotePlayersTakeRecordedGraphsAndWorkers(t *testing.T) {
	r := registry(t, func(c *RegistryConfig) { c.TraceRoot = recorded(t) })
	file := func(name string, more ...wire.Pair) wire.Map {
		return append(wire.Map{{Key: "trace", Value: wire.Map{{Key: "file", Value: name}}}}, more...)
	}
	jobs := wire.Pair{Key: "jobs", Value: int64(6)}
	for _, c := range []struct {
		id     string
		kwargs wire.Map
	}{
		{dagplace.ID, file("graphs", wire.Pair{Key: "gpus", Value: int64(4)})},
		{workerplace.ID, file("nameless.csv", jobs, wire.Pair{Key: "trace.mix", Value: "dl2"})},
	} {
		generated := makeEnvs(t, r, c.id, c.kwargs[1:2], 1)
		m := makeEnvs(t, r, c.id, c.kwargs, 1)
		if m.SHA == generated.SHA || m.Meta["split_windows"] == nil {
			t.Errorf("%s: a file is not part of the scenario: %v", c.id, m.Meta)
		}
		test := makeEnvs(t, r, c.id, append(c.kwargs, wire.Pair{Key: "split", Value: env.SplitTest}), 1)
		if test.SHA == m.SHA {
			t.Errorf("%s: the part is not in the scenario's hash", c.id)
		}
		t.Run(c.id, func(t *testing.T) {
			envtest.Run(t, func() env.Env { return makeEnvs(t, r, c.id, c.kwargs, 1).Envs[0] }, envtest.Episodes(2))
		})
	}
}

func TestATraceThatAnEnvironmentCannotUseSaysWhatItTakes(t *testing.T) {
	r := registry(t, func(c *RegistryConfig) { c.TraceRoot = recorded(t) })
	own := map[string]string{dagplace.ID: "gpus", workerplace.ID: "jobs"}
	for _, c := range []struct {
		id   string
		file string
		want []string
	}{
		{dagplace.ID, "named.csv", []string{"DAGPlace-v1 takes task graphs", "named.csv holds jobs without graphs"}},
		{workerplace.ID, "nameless.csv", []string{"WorkerPlace-v1", "it names no model", "mix"}},
		{workerplace.ID, "graphs/g00.json", []string{"g00.json"}},
		{workerplace.ID, "graphs", []string{"trace.file", "ordinary file"}},
	} {
		_, err := r.Make(t.Context(), c.id, wire.Map{{Key: "trace.file", Value: c.file}, {Key: own[c.id], Value: int64(6)}},
			1)
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != wire.BadKwargs || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, %s: %v", c.id, c.file, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s, %s: %q does not say %q", c.id, c.file, err, w)
			}
		}
	}
}

// A client maps the columns of a file, as a map or by keys with dots; what it maps wrongly is its mistake, and quotes
// nothing of the file.
func TestClientsMapColumns(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("Submitted;Elapsed;Secret\n")
	for i := range 900 {
		fmt.Fprintf(&text, "2024-03-01 12:%02d:%02d;00:01:00;1\n", i/60, i%60)
	}
	if err := os.WriteFile(filepath.Join(dir, "export.csv"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := registry(t, func(c *RegistryConfig) { c.TraceRoot = dir })
	window := wire.Pair{Key: "window", Value: int64(16)}
	columns := wire.Map{{Key: "submit_time", Value: "Submitted"}, {Key: "duration", Value: "Elapsed"},
		{Key: "num_gpu", Value: "Secret"}}
	a := makeEnvs(t, r, jobselect.V1,
		wire.Map{window,
			{Key: "trace", Value: wire.Map{{Key: "file", Value: "export.csv"}, {Key: "columns", Value: columns}}}}, 1)
	b := makeEnvs(t, r, jobselect.V1,
		wire.Map{window, {Key: "trace.file", Value: "export.csv"}, {Key: "trace.delimiter", Value: ";"},
			{Key: "trace.columns.submit_time", Value: "submitted"},
			{Key: "trace.columns.duration", Value: "ELAPSED"}, {Key: "trace.columns.num_gpu", Value: "secret"}}, 1)
	if a.SHA != b.SHA || a.SHA ==
		makeEnvs(t, r, jobselect.V1, wire.Map{window, {Key: "trace.synth.jobs", Value: int64(900)}}, 1).SHA {
		t.Errorf("scenarios %s and %s", a.SHA, b.SHA)
	}
	for want, more := range map[string]wire.Map{
		"did you mean submit_time": {{Key: "trace.columns", Value: wire.Map{{Key: "submit", Value: "Submitted"}}}},
		"not one that the format":  {{Key: "trace.columns", Value: columns[:2]}},
		"columns":                  {{Key: "trace.columns", Value: "Submitted"}},
	} {
		_, err := r.Make(t.Context(), jobselect.V1,
			append(wire.Map{window, {Key: "trace.file", Value: "export.csv"}}, more...), 1)
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != wire.BadKwargs || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "Secret") {
			t.Errorf("%v: %v, want %q", more, err, want)
		}
	}
}
