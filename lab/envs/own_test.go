package envs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/wire"
	"clustergym/env/dagplace"
	"clustergym/env/jobselect"
)

// racks are the keys of a cluster file as a client sends them.
func racks(count, gpus any) wire.Map {
	node := wire.Map{{Key: "count", Value: count}, {Key: "gpus", Value: gpus}}
	return wire.Map{{Key: "name", Value: "mine"},
		{Key: "racks", Value: []any{wire.Map{{Key: "nodes", Value: []any{node}}}}}}
}

// jobsFile writes a trace of 400 jobs, which run for work to work+99 seconds, and returns its path.
func jobsFile(t *testing.T, dir string, work int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu\n")
	for i := range 400 {
		fmt.Fprintf(&b, "%d,%d,%d\n", 60*i, work+i%100, 1+i%4)
	}
	at := filepath.Join(dir, "jobs.csv")
	if err := os.WriteFile(at, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// Any client may describe a cluster; it is the one of the same file.
func TestAClusterIsDescribedAsInItsFile(t *testing.T) {
	r := registry(t, nil)
	small := func(cluster any) wire.Map {
		return wire.Map{{Key: "cluster", Value: cluster}, {Key: "window", Value: int64(12)},
			{Key: "trace.synth.jobs", Value: int64(400)}}
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("racks: [{nodes: [{count: 2, gpus: 4}]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := registry(t, func(c *RegistryConfig) { c.OwnFiles = true })
	named, described := makeEnvs(t, own, jobselect.V1, small(file),
		1), makeEnvs(t, r, jobselect.V1, small(racks(int64(2), int64(4))), 1)
	if named.SHA != described.SHA {
		t.Errorf("the file has scenario %s, its description %s", named.SHA, described.SHA)
	}
	if described.Meta["cluster"] != "mine" || described.Meta["gpus"] != 8 {
		t.Errorf("described as %v", described.Meta)
	}
	for _, c := range []struct {
		id      string
		cluster wire.Map
		want    string
	}{
		{jobselect.V1, racks(int64(2), int64(4000)), "racks[0].nodes[0].gpus: got 4000, want 0 to 1024"},
		{jobselect.V1, racks(int64(2), "many"), "racks[0].nodes[0].gpus: got \"many\""},
		{jobselect.V1, racks(int64(0), int64(4)), "want 1 or more"},
		{jobselect.V1, wire.Map{{Key: "rack", Value: int64(1)}}, "did you mean racks?"},
		{jobselect.V1, wire.Map{{Key: "racks", Value: []byte("x")}}, "got bytes"},
		{jobselect.V1, racks(int64(50_000), int64(8)), "at most 131072 GPUs or nodes on this server"},
		{dagplace.ID, racks(int64(2), int64(4)), "DAGPlace-v1 has no cluster"},
	} {
		var e *wire.Error
		_, err := r.Make(t.Context(), c.id, wire.Map{{Key: "cluster", Value: c.cluster}}, 1)
		if !errors.As(err, &e) || e.Code != wire.BadKwargs || !strings.Contains(fmt.Sprint(e, e.Got, e.Want), c.want) {
			t.Errorf("%v: %v, want %s", c.cluster, err, c.want)
		}
	}
}

func TestTheOwnerOfAServerNamesAnyFile(t *testing.T) {
	dir := t.TempDir()
	own := registry(t, func(c *RegistryConfig) { c.OwnFiles = true })
	file := jobsFile(t, dir, 100)
	kwargs := func(more ...wire.Pair) wire.Map { return append(wire.Map{{Key: "window", Value: int64(12)}}, more...) }
	first := makeEnvs(t, own, jobselect.V1, kwargs(wire.Pair{Key: "trace.file", Value: file}), 1)
	if text := fmt.Sprint(first.Meta["workload"]); !strings.Contains(text, file) {
		t.Errorf("the workload is called %s", text)
	}
	// The same number of bytes at the same time is another workload, because its contents differ.
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	jobsFile(t, dir, 200)
	if err := os.Chtimes(file, time.Time{}, st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if time.Since(st.ModTime()) < fresh {
		if again := makeEnvs(t, own, jobselect.V1, kwargs(wire.Pair{Key: "trace.file", Value: file}), 1); again.SHA ==
			first.SHA {
			t.Error("a changed file is not read anew")
		}
	}
	yaml := filepath.Join(dir, "mine.yaml")
	write := func(at, text string) string {
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}
	write(yaml, "racks:\n  - nodes:\n      - {count: 2, gpus: 4}\n")
	if m := makeEnvs(t, own, jobselect.V1, kwargs(wire.Pair{Key: "cluster", Value: yaml}), 1); m.Meta["gpus"] != 8 {
		t.Errorf("described as %v", m.Meta)
	}
	bad := write(filepath.Join(dir, "bad.yaml"), "racks:\n  - nodes:\n      - {count: 2, gpu: 4}\n")
	row := write(filepath.Join(dir, "row.csv"), "submit_time,duration,num_gpu\n0,10,1\n5,soon,1\n")
	for _, c := range []struct {
		key, name string
		want      []string
	}{
		{"cluster", bad, []string{bad + ":3", "gpu", "did you mean gpus?"}},
		{"cluster", filepath.Join(dir, "nowhere.yaml"), []string{"nowhere.yaml", "no such file"}},
		{"cluster", dir, []string{dir, "folder"}},
		{"cluster", "mine.yaml", []string{"mine.yaml"}},
		{"trace.file", row, []string{row + ":3", "duration", "soon"}},
		{"trace.file", filepath.Join(dir, "nowhere.csv"), []string{"nowhere.csv", "a file that exists"}},
		{"trace.file", "jobs.csv", []string{"jobs.csv", "an absolute path"}},
		{"trace.profiles", filepath.Join(dir, "nowhere.csv"), []string{"trace.profiles", "a file that exists"}},
	} {
		var e *wire.Error
		_, err := own.Make(t.Context(), jobselect.V1, kwargs(wire.Pair{Key: c.key, Value: c.name}), 1)
		if !errors.As(err, &e) || e.Code != wire.BadKwargs {
			t.Errorf("%s %s: %v", c.key, c.name, err)
			continue
		}
		said := fmt.Sprint(e, e.Got, e.Want)
		for _, w := range c.want {
			if !strings.Contains(said, w) {
				t.Errorf("%s %s: %s, want %s", c.key, c.name, said, w)
			}
		}
		if strings.Contains(said, "\n") || strings.Contains(said, "trace-root") {
			t.Errorf("%s %s: %q", c.key, c.name, said)
		}
	}
	// Without it the same names are refused.
	strangers := registry(t, nil)
	for _, p := range []wire.Pair{{Key: "trace.file", Value: file}, {Key: "cluster", Value: yaml}} {
		if _, err := strangers.Make(t.Context(), jobselect.V1, kwargs(p), 1); err == nil {
			t.Errorf("a stranger may name %v", p)
		}
	}
}

// A file in a folder that is edited makes the folder another workload.
func TestAChangedFileInAFolderIsSeen(t *testing.T) {
	dir := t.TempDir()
	state := func() string {
		s, err := stamp(t.Context(), nil, dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	at := jobsFile(t, dir, 100)
	was := state()
	jobsFile(t, dir, 200)
	if st, err := os.Stat(at); err != nil || time.Since(st.ModTime()) < fresh && state() == was {
		t.Errorf("the same state after a change (%v)", err)
	}
}
