package jobselect_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

func TestContract(t *testing.T) {
	jobs := tangled(rand.New(rand.NewPCG(11, 11)), 300)
	for _, x := range []struct {
		name   string
		spec   cluster.Spec
		change func(c *jobselect.Config)
	}{
		{"default", topdrl(), func(*jobselect.Config) {}},
		{"counter", cluster.Spec{Pool: 24}, func(c *jobselect.Config) { c.Comm = "none" }},
		{"relative", topdrl(), func(c *jobselect.Config) { c.Relative, c.Gamma, c.Reward = "sjf", 0.99, "throughput" }},
		{"contested, linear", topdrl(), func(c *jobselect.Config) { c.Contested, c.TimeAxis = true, "linear" }},
		{"no estimates, oldest", topdrl(),
			func(c *jobselect.Config) { c.Estimates, c.Slots = sim.MustEstimates("none"), "oldest" }},
		{"running gangs", topdrl(), func(c *jobselect.Config) { c.Running, c.Forecast = 5, "on" }},
		{"critics", topdrl(), func(c *jobselect.Config) {
			c.Running, c.Privileged, c.Estimates = 5, true, sim.MustEstimates("noisy:0.5")
		}},
		{"tables alone", cluster.Spec{Pool: 24}, func(c *jobselect.Config) {
			c.Running, c.Images, c.Estimates, c.Comm = 5, false, sim.MustEstimates("none"), "none"
		}},
		{"cut off", topdrl(), func(c *jobselect.Config) {
			c.Horizon, c.MaxSteps, c.Estimates = 2*time.Hour, 60, sim.MustEstimates("noisy:0.5")
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm, cfg.Visible = 20, 20, 6
			x.change(&cfg)
			contract(t, cfg, x.spec, jobs)
		})
	}
}

// So do the stretches of version 2.
func TestOngoingContract(t *testing.T) {
	jobs := tangled(rand.New(rand.NewPCG(13, 13)), 500)
	for _, x := range []struct {
		name   string
		change func(c *jobselect.Config)
	}{
		{"default", func(*jobselect.Config) {}},
		{"causal", func(c *jobselect.Config) { c.Estimates, c.Running, c.Forecast = sim.MustEstimates("history"), 5, "on" }},
		{"relative, causal", func(c *jobselect.Config) {
			c.Estimates, c.Relative, c.Gamma, c.Ahead = sim.MustEstimates("history"), "auto", 0.99, "smallest"
		}},
		{"relative to a fork", func(c *jobselect.Config) {
			c.Estimates, c.Relative, c.Reward = sim.MustEstimates("noisy:0.5"), "sjf", "bsld"
		}},
		{"stops", func(c *jobselect.Config) {
			c.Running, c.Preempt, c.MinRun, c.Restart = 5, true, time.Minute, time.Minute
		}},
		{"no warm-up", func(c *jobselect.Config) { c.Warm = 0 }},
		{"cut off", func(c *jobselect.Config) { c.Horizon, c.MaxSteps = time.Hour, 20 }},
	} {
		t.Run(x.name, func(t *testing.T) {
			cfg := jobselect.OngoingConfig()
			cfg.Window, cfg.Warm, cfg.Visible, cfg.Load, cfg.Estimates = 20, 20, 6, 1.5, sim.MustEstimates("exact")
			x.change(&cfg)
			contract(t, cfg, topdrl(), jobs)
		})
	}
}

// offering are windows of a workload whose load is known, with predictors.
type offering struct {
	*traces.Windows
	load float64
}

func (o offering) Offered() float64 { return o.load }

func (o offering) Predictor(sim.Estimates) (predict.Maker, error) {
	return history.NewArchive(o.All()), nil
}

// contract checks the environment of cfg over jobs against the contract.
func contract(t *testing.T, cfg jobselect.Config, spec cluster.Spec, jobs []traces.Job) {
	t.Helper()
	w, err := jobselect.NewWorkload(cfg, spec, jobs)
	if err != nil {
		t.Fatal(err)
	}
	windows := sched.Windows(w.Windows)
	if cfg.Mode == sched.Ongoing {
		windows = offering{w.Windows, w.Offered}
	}
	options := []envtest.Option{envtest.Cap(8*cfg.Window + 64)}
	if !checked {
		options = append(options, envtest.NoAllocs())
	}
	envtest.Run(t, func() env.Env {
		e, err := jobselect.New(cfg, spec, windows, traces.Training)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}, options...)
}

// A snapshot is the episode's name and the actions so far; one that cannot be played is an error that leaves the
// environment where it was, also after a step or two.
func TestUnplayableSnapshots(t *testing.T) {
	e, ts := example(t, "jct")
	step(t, e, 1, ts)
	here, err := e.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(b []byte) []byte{
		"an illegal action":  func(b []byte) []byte { b[len(b)-1] = 10; return b },
		"a masked action":    func(b []byte) []byte { return append(b[:len(b)-2], 2, 1, 0) },
		"no such action":     func(b []byte) []byte { b[len(b)-1] = 77; return b },
		"no such window":     func(b []byte) []byte { b[12] = 9 << 1; return b },
		"steps past the end": func(b []byte) []byte { return append(b[:len(b)-2], 4, 0, 0, 0, 0) },
		"a lying length":     func(b []byte) []byte { return append(b[:len(b)-2], 0xff, 0xff, 0xff, 0xff, 0x7f) },
		"another format":     func(b []byte) []byte { b[0]++; return b },
	} {
		out := env.NewTimeStep(e.Spec())
		if err := e.RestoreSnapshot(change(bytes.Clone(here)), out); !errors.Is(err, env.ErrSnapshot) {
			t.Errorf("%s: %v, want ErrSnapshot", what, err)
		}
		if again, err := e.AppendSnapshot(nil); err != nil || !bytes.Equal(again, here) {
			t.Fatalf("%s: the environment is elsewhere: %v", what, err)
		}
	}
	step(t, e, 1, ts)
	closeTo(t, "reward", ts.Reward, -30.0/10800)
}

func TestConfigFaultsAllAtOnce(t *testing.T) {
	cfg := jobselect.DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg.Gamma, cfg.Tau, cfg.Window, cfg.Warm, cfg.Load, cfg.Relative, cfg.Horizon, cfg.MaxSteps = 0, 0, 0, -1, 1e9, "lifo",
		-1, -1
	cfg.Estimates, cfg.Visible, cfg.Slots, cfg.MaxGPUs, cfg.Placement, cfg.Comm = sim.Estimates{}, 3, "newest", 0,
		"anywhere", "pigeon"
	cfg.Reward, cfg.WaitCost, cfg.TimeAxis, cfg.Row, cfg.Models = "fame", -1, "cubic", 0, "no such mix"
	cfg.Running = -1
	var keys []string
	for _, f := range fault.All(cfg.Validate()) {
		keys = append(keys, f.Key)
	}
	want := "gamma tau window warm load relative horizon max_steps estimates visible slots max_gpus placement comm reward wait_cost time_axis row models running"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	cfg = jobselect.DefaultConfig()
	cfg.Contested, cfg.Estimates = true, sim.MustEstimates("none")
	if cfg.Validate() == nil {
		t.Error("contested needs estimates")
	}
	for _, relative := range []string{"", "fifo", "sjf", "smallest", "auto"} { // sjf is clairvoyant here, as the page says
		cfg = jobselect.DefaultConfig()
		cfg.Relative, cfg.Estimates = relative, sim.MustEstimates("none")
		if err := cfg.Validate(); err != nil {
			t.Errorf("relative %q: %v", relative, err)
		}
	}
	cfg.Relative = "lifo"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), `"", fifo, sjf, smallest or auto`) {
		t.Errorf("relative lifo: %v", err)
	}
}

func TestTasksAreRefused(t *testing.T) {
	e, ts := example(t, "jct")
	if err := e.Reset(ctx, env.Episode{Task: []float64{1}}, ts); err == nil {
		t.Error("the environment has no tasks")
	}
}

// The page as it is printed; rewritten with -update.
func TestPage(t *testing.T) {
	cfg := jobselect.DefaultConfig()
	e := newEnv(t, cfg, topdrl(), tangled(rand.New(rand.NewPCG(12, 12)), 1000))
	got := jobselect.Page(cfg, e.Spec())
	path := filepath.Join("testdata", "page.golden.md")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the page has changed (rewrite it with -update):\n%s", got)
	}
	for _, f := range e.Spec().Obs {
		if !strings.Contains(got, fmt.Sprintf("| %s | %v |", f.Name, f.Shape)) {
			t.Errorf("field %s is missing", f.Name)
		}
	}
	for _, f := range e.Spec().Info {
		if !strings.Contains(got, "| "+f.Name+" |") {
			t.Errorf("info %s is missing", f.Name)
		}
	}
}
