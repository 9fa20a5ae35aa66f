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
	"clustergym/env/jobselect"
	"clustergym/internal/raced"
	"clustergym/lab/workload"
	"clustergym/simulator/predict/gbdt"
	"clustergym/traces"
)

// modelTrace writes a trace of so many jobs to dir and returns its name.
func modelTrace(t *testing.T, dir string, n int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu,user\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,%d,%d,u%d\n", 60*i, 60+977*i%3000, 1+i%4, i%5)
	}
	if err := os.WriteFile(filepath.Join(dir, "jobs.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return "jobs.csv"
}

// writeModel fits trees to the jobs of dir's trace that had ended by until, and writes them to dir.
func writeModel(t *testing.T, dir, name string, until time.Duration) {
	t.Helper()
	cfg := workload.DefaultTraceConfig()
	cfg.File = filepath.Join(dir, "jobs.csv")
	jobs, _, err := workload.LoadTrace(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := gbdt.Fit(t.Context(), "jobs.csv", jobs, until, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), m.AppendBinary(nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestClientsNameModelsByTheRulesForTraces(t *testing.T) {
	raced.Alone(t)
	dir := t.TempDir()
	modelTrace(t, dir, 1000)
	writeModel(t, dir, "m.bin", 40_000*time.Second) // the validation part begins at 42,000 s
	writeModel(t, dir, "same.bin", 40_000*time.Second)
	writeModel(t, dir, "other.bin", 38_000*time.Second)
	writeModel(t, dir, "late.bin", traces.MaxTime)
	r := registry(t, func(c *RegistryConfig) { c.TraceRoot = dir })
	kwargs := func(estimates string) wire.Map {
		return wire.Map{
			{Key: "trace.file", Value: "jobs.csv"}, {Key: "window", Value: int64(20)}, {Key: "warm", Value: int64(4)},
			{Key: "cluster", Value: "2x4"},
			{Key: "estimates", Value: estimates},
		}
	}
	sha := func(r *Registry, estimates string) string {
		t.Helper()
		m, err := r.Make(t.Context(), jobselect.V1, kwargs(estimates), 1)
		if err != nil {
			t.Fatalf("%s: %v", estimates, err)
		}
		defer m.Release()
		defer m.Envs[0].Close() //nolint:errcheck // it holds nothing
		return m.SHA
	}
	want := sha(r, "gbdt:m.bin")
	if got := sha(r, "gbdt:same.bin"); got != want {
		t.Error("the name of a model is part of the scenario")
	}
	if got := sha(r, "gbdt:other.bin"); got == want {
		t.Error("another model is the same scenario")
	}
	if got := sha(r, "gbdt"); got == want {
		t.Error("no model is the same scenario")
	}
	// A file that changes is read anew.
	writeModel(t, dir, "m.bin", 38_000*time.Second)
	if got := sha(r, "gbdt:m.bin"); got != sha(r, "gbdt:other.bin") {
		t.Error("a model that has changed is not read again")
	}

	own := registry(t, func(c *RegistryConfig) { c.OwnFiles = true })
	refused := func(r *Registry, estimates string, want ...string) {
		t.Helper()
		m, err := r.Make(t.Context(), jobselect.V1, kwargs(estimates), 1)
		if err == nil {
			m.Release()
		}
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != wire.BadKwargs {
			t.Errorf("%s: %v", estimates, err)
			return
		}
		said := fmt.Sprint(e, e.Got, e.Want)
		for _, w := range want {
			if !strings.Contains(said, w) {
				t.Errorf("%s: %q, want %q in it", estimates, said, w)
			}
		}
		if strings.Contains(said, "\n") || strings.Contains(said, dir) {
			t.Errorf("%s: %q", estimates, said)
		}
	}
	refused(r, "gbdt:nowhere.bin", "estimates", "gbdt:nowhere.bin", "a file that exists below the server's --trace-root")
	refused(r, "gbdt:../m.bin", "gbdt:../m.bin", "a path below the server's --trace-root")
	refused(r, "gbdt:.", "the name of an ordinary file")
	refused(r, "gbdt:jobs.csv", "model jobs.csv: it is no model of gymctl predict fit")
	refused(r, "gbdt:late.bin", "model late.bin has been fitted to", "validation part",
		"predict fit until 11h40m0s or earlier")
	refused(registry(t, nil), "gbdt:m.bin", "this server reads no files", "--trace-root DIR")
	refused(own, "gbdt:m.bin", "an absolute path")
	absolute := kwargs("gbdt:" + filepath.Join(dir, "m.bin"))
	absolute[0].Value = filepath.Join(dir, "jobs.csv")
	m, err := own.Make(t.Context(), jobselect.V1, absolute, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	defer m.Envs[0].Close() //nolint:errcheck // it holds nothing
	if m.SHA != sha(r, "gbdt:m.bin") {
		t.Error("the same model and trace on the owner's server are another scenario")
	}
}
