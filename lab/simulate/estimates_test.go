package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/lab/workload"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// habits writes a trace of users with run times of their own, and returns its path.
func habits(t *testing.T, jobs int) string {
	t.Helper()
	src := rng.Stream(1, t.Name())
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu,user,vc\n")
	for i := range jobs {
		u := src.IntN(9)
		fmt.Fprintf(&b, "%d,%d,%d,u%d,v%d\n", 40*i, 1+src.IntN(200<<u), 1<<src.IntN(4), u, u%2)
	}
	path := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// modelOf fits trees to the jobs of a trace that had ended by until, and returns the path of their file.
func modelOf(t *testing.T, trace string, until time.Duration) string {
	t.Helper()
	cfg := workload.DefaultTraceConfig()
	cfg.File = trace
	jobs, _, err := workload.LoadTrace(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := gbdt.Fit(t.Context(), "jobs.csv", jobs, until, 2)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.bin")
	if err := os.WriteFile(path, m.AppendBinary(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Predictors of a streamed run know what those of a run in memory know.
func TestStreamedRunsForecastAlike(t *testing.T) {
	trace := habits(t, 1400)
	for _, estimates := range []string{"history", "gbdt", "gbdt:" + modelOf(t, trace, 10*time.Hour)} {
		var want, exact string
		for _, stream := range []string{"off", "on"} {
			cfg := DefaultConfig()
			cfg.Trace.File, cfg.Cluster, cfg.Stream = trace, "pool:96", stream
			cfg.Policies = []string{"sjf+skip", "gittins", "fifo+strict+easy"}
			run := func(estimates string) string {
				cfg.Policy.Estimates = sim.MustEstimates(estimates)
				var rows bytes.Buffer
				r, err := Run(t.Context(), cfg, Hooks{Jobs: &rows})
				if err != nil {
					t.Fatal(err)
				}
				doc, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				return string(doc) + rows.String()
			}
			got := run(estimates)
			if want == "" {
				want, exact = got, strings.ReplaceAll(run("exact"), `"exact"`, fmt.Sprintf("%q", estimates))
			}
			if got != want {
				t.Errorf("estimates %s: the streamed run differs", estimates)
			}
		}
		if want == exact {
			t.Errorf("estimates %s: the run is that with exact ones", estimates)
		}
	}
}

func TestAModelThatKnowsTheJobsIsNoted(t *testing.T) {
	trace := habits(t, 1200)
	cfg := DefaultConfig()
	cfg.Trace.File, cfg.Cluster, cfg.Policies = trace, "pool:96", []string{"sjf+skip"}
	model := modelOf(t, trace, traces.MaxTime)
	for _, stream := range []string{"off", "on"} {
		cfg.Policy.Estimates, cfg.Stream, cfg.Trace.Skip = sim.MustEstimates("gbdt:"+model), stream, 0
		r, err := Run(t.Context(), cfg, Hooks{})
		if err != nil || len(r.Notes) != 1 ||
			!strings.Contains(r.Notes[0], "m.bin has been fitted to 1200 jobs that are simulated") {
			t.Errorf("stream %s: notes %q, %v", stream, r.Notes, err)
		}
		cfg.Policy.Estimates = sim.MustEstimates("gbdt:" + modelOf(t, trace, 10*time.Hour))
		cfg.Trace.Skip = 900 // submitted 10 hours after the first
		if r, err = Run(t.Context(), cfg, Hooks{}); err != nil || len(r.Notes) != 0 {
			t.Errorf("stream %s, later jobs: notes %q, %v", stream, r.Notes, err)
		}
	}
	cfg.Policies, cfg.Policy.Estimates = []string{"fifo"}, sim.MustEstimates("gbdt:"+trace)
	_, err := Run(t.Context(), cfg, Hooks{})
	if _, mistake := errors.AsType[*fault.Mistake](err); !mistake ||
		!strings.HasSuffix(err.Error(), "jobs.csv: it is no model of gymctl predict fit") {
		t.Errorf("a trace as a model: %v", err)
	}
}
