package workload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/lab/catalog"
)

// get:NAME names a public trace wherever a file can be named. Before the trace is fetched, the message says how to
// fetch it.
func TestPublicTracesAreFoundInTheCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("CLUSTERGYM_CACHE", cache)
	for what, try := range map[string]func() error{
		"trace": func() error {
			_, _, err := LoadTrace(TraceConfig{File: "get:lublin-256", Format: FormatAuto, Synth: DefaultTraceConfig().Synth})
			return err
		},
		"cluster": func() error { _, err := ClusterSpec("get:openb-nodes"); return err },
		"profiles": func() error {
			c := DefaultTraceConfig()
			c.Synth.Jobs, c.Profiles = 5, "get:gavel-throughputs"
			_, _, err := LoadTrace(c)
			return err
		},
	} {
		err := try()
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), "gymctl trace get") {
			t.Errorf("%s that was not fetched: %v", what, err)
		}
	}
	if _, err := ClusterSpec("get:nothing-like-that"); err == nil || !strings.Contains(err.Error(), "nothing-like-that") {
		t.Errorf("unknown name: %v", err)
	}

	// A file in the cache is read. Its size is checked here; its hash was checked when it was fetched.
	e, err := catalog.Public().Find("lublin-256")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := catalog.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := e.Path(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	row := "1 5 -1 10 2 -1 -1 2 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
	if err := os.WriteFile(path,
		[]byte(row+strings.Repeat("; nothing\n", (int(e.Files[0].Size)-len(row))/10)+
			strings.Repeat("\n", (int(e.Files[0].Size)-len(row))%10)), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultTraceConfig()
	cfg.File = "get:lublin-256"
	jobs, info, err := LoadTrace(cfg)
	if err != nil || len(jobs) != 1 || info.File != "get:lublin-256" {
		t.Errorf("%d jobs of %q: %v", len(jobs), info.File, err)
	}
}
