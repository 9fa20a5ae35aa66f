package speed

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/internal/fault"
	"clustergym/lab/workload"
)

func TestTrivialKeepsTheContract(t *testing.T) {
	envtest.Run(t, func() env.Env { return new(trivial) }, envtest.NoAllocs())
}

// program writes a shell script that stands for Python.
func program(t *testing.T, script string) string {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("needs a shell")
	}
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return path
}

func TestBridgeRowsComeFromTheProgram(t *testing.T) {
	row := func(what string, envs string, rate string) string {
		return "cat <<END\n" + `{"what":"` + what + `","envs":` + envs + `,"rate":` + rate + `,"trips":` + rate + "}\nEND\n"
	}
	script := `[ "$1 $2" = "-m clustergym.bench" ] || exit 3` + "\n" +
		row(rowAlone, "1", "12000") + row(rowTrivial, "64", "600000") + row(rowSync, "64", "100000") +
		row(rowAsync, "64",
			"15000") + row(rowJobSelect, "64", "1e-3") + row(rowInTurn, "64", "1e-3") + row(rowSent, "64", "1e-3") + row(rowBare,
		"64", "2e-3")
	cfg := Config{Groups: []string{"bridge"}, Quick: true, Trace: workload.DefaultTraceConfig(),
		Python: program(t, script)}
	r, err := Run(context.Background(), cfg, Hooks{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	const rows = 9
	if len(r.Bridge) != rows || r.Bridge[rows-1].Rate < 100 {
		t.Fatalf("rows %+v", r.Bridge)
	}
	local := r.Bridge[rows-1].Rate
	want := []float64{12000, 600000, 40, 6, local / 1e-3, local / 1e-3, 2}
	if len(r.Ratios) != len(want) {
		t.Fatalf("rows %+v, ratios %+v", r.Bridge, r.Ratios)
	}
	for i, w := range want {
		if math.Abs(r.Ratios[i].Is-w) > 1e-6*w {
			t.Errorf("%s is %v, want %v", r.Ratios[i].What, r.Ratios[i].Is, w)
		}
	}
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{rowBare, "at most 1.50", "at least 500,000", rowLocal} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("the table lacks %q:\n%s", s, b.String())
		}
	}
}

func TestWhatTheProgramOfBenchBridgeDoesWrongIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		script, want string
		mistake      bool
	}{
		"no package": {"echo \"ModuleNotFoundError: No module named 'clustergym'\" >&2; exit 1",
			"pip install './python[gymnasium]'", true},
		"fails":    {"echo 'a traceback' >&2; echo 'KeyError: 3' >&2; exit 1", "KeyError: 3", false},
		"tells":    {`echo '{"error":"ConnectionLost: gone"}'; exit 1`, "ConnectionLost: gone", false},
		"not JSON": {"echo hello", "want JSON", false},
		"few rows": {"exit 0", "another version", false},
	} {
		cfg := Config{Groups: []string{"bridge"}, Quick: true, Trace: workload.DefaultTraceConfig(),
			Python: program(t, c.script)}
		_, err := Run(context.Background(), cfg, Hooks{Now: time.Now})
		var input *fault.Mistake
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &input) != c.mistake {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	cfg := Config{Groups: []string{"bridge"}, Quick: true, Trace: workload.DefaultTraceConfig(),
		Python: "/nonexistent/python"}
	if _, err := Run(context.Background(), cfg, Hooks{Now: time.Now}); err == nil ||
		!strings.Contains(err.Error(), "python") {
		t.Errorf("error %v, want one that names python", err)
	}
}
