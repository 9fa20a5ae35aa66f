package run

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/agents/checkpoint"
	"clustergym/agents/train"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	"clustergym/lab/workload"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/sim"
)

func TestWorkersChangeNoByteOfARun(t *testing.T) {
	for _, agent := range config.Agents() {
		var want map[string]string
		for _, workers := range []int{1, 2, 8} {
			if raced.On && workers == 2 {
				continue
			}
			dir := t.TempDir()
			trainTo(t, tinyRun(agent), dir, TrainOptions{Workers: workers})
			got := contents(t, filepath.Join(dir, "tiny"))
			if want == nil {
				want = got
				var parts []string
				for name := range want {
					if strings.HasPrefix(name, "checkpoints/400/") {
						parts = append(parts, strings.TrimPrefix(name, "checkpoints/400/"))
					}
				}
				slices.Sort(parts)
				all := map[string][]string{
					"ppo": {"agent.json", "envs.bin", "manifest.json", "optimizer.safetensors", "rollout.bin", "trainer.json",
						"weights.safetensors"},
					"ddqn": {"agent.json", "envs.bin", "manifest.json", "optimizer.safetensors", "replay.bin", "target.safetensors",
						"trainer.json", "weights.safetensors"},

					"improper": {"agent.json", "envs.bin", "manifest.json", "rollout.bin", "trainer.json", "weights.safetensors"},
				}[agent]
				if !slices.Equal(parts, all) {
					t.Errorf("%s: the parts of a checkpoint are %v, want %v", agent, parts, all)
				}
				for _, name := range []string{"config.yaml", "best.json", "eval/test.json", "progress.jsonl",
					"checkpoints/1600/manifest.json"} {
					if want[name] == "" {
						t.Errorf("%s: no %s", agent, name)
					}
				}
				continue
			}
			sameFiles(t, agent, got, want, false)
		}
	}
}

func TestSeedsGiveOtherRuns(t *testing.T) {
	weights := map[string]bool{}
	for seed := range uint64(3) {
		cfg, dir := tinyRun("ppo"), t.TempDir()
		cfg.Seed, cfg.Train.Steps = seed, 300
		trainTo(t, cfg, dir, TrainOptions{NoEval: true})
		weights[contents(t, filepath.Join(dir, "tiny"))["checkpoints/300/weights.safetensors"]] = true
	}
	if len(weights) != 3 || weights[""] {
		t.Errorf("%d different weights of 3 seeds", len(weights))
	}
}

// A run that is interrupted once or several times and resumed with other numbers of workers ends with the files of an
// uninterrupted run.
func TestInterruptedAndResumedEqualsStraightThrough(t *testing.T) {
	for _, agent := range config.Agents() {
		if raced.On && agent != "ppo" {
			continue // goroutines are those of the test above
		}
		cfg, straight := tinyRun(agent), t.TempDir()
		whole := trainTo(t, cfg, straight, TrainOptions{})
		want := contents(t, filepath.Join(straight, "tiny"))
		for name, cuts := range map[string][]int64{
			"before the first step": {0},
			"in mid-rollout":        {348},
			"at a checkpoint":       {800},
			"at a validation":       {1000},
			"again and again":       {4, 8, 252, 500, 504, 1200, 1596},
		} {
			if (raced.On || agent != "ppo") && len(cuts) == 1 {
				continue // the last case has them all
			}
			dir := t.TempDir()
			for i, cut := range cuts {
				ctx, cancel := cancelled(t)
				opt := TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1 + i%3, Resume: i > 0}
				opt.Tick = func(p train.Progress) {
					if p.Step >= cut {
						cancel()
					}
				}
				if cut == 0 {
					cancel()
				}
				_, err := Train(ctx, cfg, opt)
				if !errors.Is(err, fault.ErrInterrupted) || !strings.Contains(err.Error(), "resume "+opt.RunDir) {
					t.Fatalf("%s, %s: %v, want fault.ErrInterrupted with what to do", agent, name, err)
				}
				if s := steps(t, opt.RunDir); len(s) == 0 || s[len(s)-1] != cut {
					t.Errorf("%s, %s: checkpoints %v after an interruption at %d", agent, name, s, cut)
				}
			}
			resumed := trainTo(t, cfg, dir, TrainOptions{Resume: true, Workers: 2})
			sameFiles(t, agent+", "+name, contents(t, filepath.Join(dir, "tiny")), want, true)
			if resumed.Step != whole.Step || resumed.Episodes != whole.Episodes ||
				!reflect.DeepEqual(resumed.Return, whole.Return) ||
				!reflect.DeepEqual(resumed.Eval, whole.Eval) {
				t.Errorf("%s, %s: the result is %+v, want %+v", agent, name, resumed, whole)
			}
		}
	}
}

// Training is saved if the comparison at the end is interrupted, and the resumed run only compares.
func TestInterruptedComparisonIsMadeUpFor(t *testing.T) {
	cfg, straight, dir := tinyRun("ppo"), t.TempDir(), t.TempDir()
	cfg.Train.Steps = 600
	whole := trainTo(t, cfg, straight, TrainOptions{})
	ctx, cancel := cancelled(t)
	run := filepath.Join(dir, "tiny")
	_, err := Train(ctx, cfg, TrainOptions{RunDir: run, Workers: 1, Game: func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, fault.ErrInterrupted) || !strings.Contains(err.Error(), "resume "+run) {
		t.Fatalf("got %v, want fault.ErrInterrupted with what to do", err)
	}
	if _, err := os.Stat(filepath.Join(run, rundir.EvalFile)); err == nil {
		t.Error("half a comparison is there")
	}
	ticks := 0
	got := trainTo(t, cfg, dir, TrainOptions{Resume: true, Tick: func(train.Progress) { ticks++ }})
	if ticks != 0 {
		t.Errorf("%d iterations of a run that was at its end", ticks)
	}
	sameFiles(t, "resumed", contents(t, run), contents(t, filepath.Join(straight, "tiny")), false)
	if got.Episodes != whole.Episodes || got.Step != 600 || got.Return == nil || *got.Return != *whole.Return ||
		got.PerSecond == nil {
		t.Errorf("the result is %+v, want %+v", got, whole)
	}
}

// A resumed run may have more steps than before, and its config.yaml says so.
func TestResumedRunMayBeMadeLonger(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Train.Steps = 400
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	cfg.Train.Steps = 800
	if r := trainTo(t, cfg, dir, TrainOptions{NoEval: true, Resume: true}); r.Step != 800 {
		t.Errorf("ended at step %d, want 800", r.Step)
	}
	if got, err := rundir.ReadConfig(filepath.Join(dir, "tiny")); err != nil || got.Train.Steps != 800 {
		t.Errorf("config.yaml says %d steps (%v), want 800", got.Train.Steps, err)
	}
	if s := steps(t, filepath.Join(dir, "tiny")); !slices.Equal(s, []int64{400, 500, 800}) &&
		!slices.Equal(s, []int64{400, 800}) {
		t.Errorf("checkpoints %v", s)
	}
}

func TestWhatARunIsMadeOfCannotChangeOnResume(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Train.Steps = 300
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	run := filepath.Join(dir, "tiny")
	want := contents(t, run)
	for key, change := range map[string]func(c *config.Config){
		"seed":        func(c *config.Config) { c.Seed++ },
		"trace":       func(c *config.Config) { c.Trace.Seed++ },
		"cluster":     func(c *config.Config) { c.Cluster = "8x4" },
		"env":         func(c *config.Config) { jobSelect(c).Load = 2 },
		"agent":       func(c *config.Config) { c.Agent = "ddqn" },
		"train.envs":  func(c *config.Config) { c.Train.Envs = 8 },
		"ppo":         func(c *config.Config) { c.PPO.Network.Hidden = []int{17} },
		"train.steps": func(c *config.Config) { c.Train.Steps = 100 },
	} {
		c := cfg
		change(&c)
		_, err := Train(t.Context(), c, TrainOptions{RunDir: run, Resume: true, Workers: 1})
		refused(t, key, err, key+": ")
	}
	sameFiles(t, "refused", contents(t, run), want, false)
}

// A crash cannot lose these files; a run without files that a person removed is refused.
func TestRunThatHasLostAFileIsRefusedUntouched(t *testing.T) {
	cfg := tinyRun("ppo")
	cfg.Train.Steps, cfg.Train.EvalEvery = 200, 100
	newest := rundir.Checkpoints + "/200"
	for name, want := range map[string]string{
		newest + "/manifest.json": "no whole checkpoint",
		rundir.ProgressFile:       "part of the file is lost",
	} {
		dir := t.TempDir()
		trainTo(t, cfg, dir, TrainOptions{NoEval: true})
		run := filepath.Join(dir, "tiny")
		if err := os.Remove(filepath.Join(run, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
		before := contents(t, run)
		_, err := Train(t.Context(), cfg, TrainOptions{RunDir: run, Resume: true, Workers: 1})
		refused(t, name, err, want)
		sameFiles(t, name, contents(t, run), before, false)
	}
}

// refused fails the test unless err is the user's mistake: one sentence that contains all of want.
func refused(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	var input *fault.Mistake
	if !errors.As(err, &input) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v (%T), want a *fault.Mistake of one line", what, err, err)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

func TestTraceThatChangedIsNotTheRunsTrace(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Train.Steps = 300
	cfg.Trace.File = filepath.Join(dir, "jobs.csv")
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu\n")
	for i := range 900 {
		b.WriteString(strings.Join([]string{itoa(30 * i), itoa(60 + 977*i%5000), itoa(1 + i%4)}, ",") + "\n")
	}
	for _, last := range []string{"27100,60,1\n", "27100,61,1\n"} {
		if err := os.WriteFile(cfg.Trace.File, []byte(b.String()+last), 0o600); err != nil {
			t.Fatal(err)
		}
		if last == "27100,60,1\n" {
			trainTo(t, cfg, dir, TrainOptions{NoEval: true})
		}
	}
	_, err := Train(t.Context(), cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Resume: true, Workers: 1})
	refused(t, "another trace", err, "jobs.csv", "changed")
}

func TestModelThatChangedIsNotTheRunsModel(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Train.Steps = 300
	model := filepath.Join(dir, "m.bin")
	cfg.Env.JobSelect().Estimates = sim.MustEstimates("gbdt:" + model)
	jobs, _, err := workload.LoadTrace(cfg.Trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []int{6, 7} { // of ten parts; the validation part begins behind the seventh
		m, err := gbdt.Fit(t.Context(), "jobs", jobs, jobs[len(jobs)*share/10].Submit, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(model, m.AppendBinary(nil), 0o600); err != nil {
			t.Fatal(err)
		}
		if share == 6 {
			trainTo(t, cfg, dir, TrainOptions{NoEval: true})
		}
	}
	resume := func() error {
		_, err := Train(t.Context(), cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Resume: true, Workers: 1})
		return err
	}
	refused(t, "another model", resume(), "m.bin", "changed")
	if err := os.Remove(model); err != nil {
		t.Fatal(err)
	}
	refused(t, "no model", resume(), "m.bin: there is no such file")
}

func itoa(i int) string {
	b, _ := json.Marshal(i) // an int
	return string(b)
}

// Only one process trains in a directory.
func TestRunDirectoryIsLocked(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Train.Steps = 300
	var during error
	trainTo(t, cfg, dir, TrainOptions{NoEval: true, Log: func(train.Record, float64) {
		if during == nil {
			_, during = Train(context.Background(), cfg,
				TrainOptions{RunDir: filepath.Join(dir, "tiny"), Resume: true, Workers: 1})
		}
	}})
	refused(t, "resumed while it runs", during, "another process", "tiny")
	trainTo(t, cfg, dir, TrainOptions{NoEval: true, Resume: true}) // and free again
}

func TestNewRunsNeedAVacantDirectory(t *testing.T) {
	cfg := tinyRun("ppo")
	cfg.Train.Steps = 300
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"a run":    {func(t *testing.T, dir string) { put(t, dir, rundir.ConfigFile) }, "resume"},
		"progress": {func(t *testing.T, dir string) { put(t, dir, rundir.ProgressFile) }, "left of a run"},
		"checkpoints": {func(t *testing.T, dir string) { put(t, dir, "checkpoints/7/"+checkpoint.ManifestName) },
			"left of a run"},
		"a file": {func(t *testing.T, dir string) {
			put(t, filepath.Dir(dir), filepath.Base(dir))
		}, "tiny"},
	} {
		dir := filepath.Join(t.TempDir(), "tiny")
		c.make(t, dir)
		before := map[string]string{}
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			maps.Copy(before, contentsRaw(t, dir))
		}
		_, err := Train(t.Context(), cfg, TrainOptions{RunDir: dir, Workers: 1})
		refused(t, name, err, c.want)
		if len(before) > 0 {
			sameFiles(t, name, contentsRaw(t, dir), before, false)
		}
	}
	// An empty directory is as good as none, and so is what a crash left of one before there was a run.
	dir := t.TempDir()
	put(t, filepath.Join(dir, "tiny"), ".config.yaml.new")
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	if _, err := os.Stat(filepath.Join(dir, "tiny", ".config.yaml.new")); err == nil {
		t.Error("the left-over is still there")
	}
}

func put(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// contentsRaw returns the files under dir unchanged.
func contentsRaw(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	var walk func(path string)
	walk = func(path string) {
		entries, err := os.ReadDir(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := filepath.Join(path, e.Name())
			if e.IsDir() {
				walk(name)
				continue
			}
			f, err := root.Open(filepath.ToSlash(name))
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 1<<16)
			n, _ := f.Read(b)
			_ = f.Close()
			files[name] = string(b[:n])
		}
	}
	walk(".")
	return files
}

// best.json names the checkpoint of the lowest validation, which is kept even if it is not among the newest.
func TestBestCheckpointIsKept(t *testing.T) {
	raced.Alone(t)
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Train.CheckpointEvery, cfg.Train.Keep = 2000, 100, 100, 1
	run := filepath.Join(dir, "tiny")
	looked := 0
	trainTo(t, cfg, dir, TrainOptions{NoEval: true, Tick: func(p train.Progress) {
		b, ok, err := rundir.ReadBest(run)
		if err != nil {
			t.Error(err)
		}
		if !ok {
			return
		}
		looked++
		if s := steps(t, run); !slices.Contains(s, b.Step) || len(s) > 2 {
			t.Errorf("step %d: checkpoints %v with best %d and keep 1", p.Step, s, b.Step)
		}
	}})
	if looked < 450 {
		t.Errorf("looked %d times only", looked)
	}
	_, validations := progressOf(t, run)
	var least rundir.Line
	for _, v := range validations {
		first := least.Eval == nil || v.Eval.JCT < least.Eval.JCT
		if v.Eval.Best != first {
			t.Errorf("step %d: best is %v", v.Step, v.Eval.Best)
		}
		if first {
			least = v
		}
	}
	b, ok, err := rundir.ReadBest(run)
	if err != nil || !ok || b.Step != least.Step || b.Value != least.Eval.JCT || b.Metric != rundir.BestMetric {
		t.Errorf("best.json holds %+v (%v), want step %d with %v", b, err, least.Step, least.Eval.JCT)
	}
	want := []int64{least.Step}
	if least.Step != 2000 {
		want = append(want, 2000)
	} else {
		t.Error("the last validation is the best: nothing is tested, take another seed")
	}
	if s := steps(t, run); !slices.Equal(s, want) {
		t.Errorf("checkpoints %v, want %v", s, want)
	}
	if dir, _, err := rundir.CheckpointDir(run); err != nil ||
		dir != checkpoint.Dir(filepath.Join(run, rundir.Checkpoints), least.Step) {
		t.Errorf("the run's checkpoint is %s (%v)", dir, err)
	}
}

// A crash between writing a checkpoint and removing an old one leaves one too many until the run is resumed.
func TestResumedRunRemovesCheckpointsThatACrashLeft(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	trainTo(t, cfg, dir, TrainOptions{NoEval: true}) // keeps all
	run := filepath.Join(dir, "tiny")
	b, _, err := rundir.ReadBest(run)
	if err != nil || len(steps(t, run)) < 4 {
		t.Fatalf("checkpoints %v (%v)", steps(t, run), err)
	}
	cfg.Train.Keep = 1
	trainTo(t, cfg, dir, TrainOptions{NoEval: true, Resume: true})
	if s := steps(t, run); !slices.Equal(s, slices.Compact([]int64{b.Step, 1600})) {
		t.Errorf("checkpoints %v, want the best, %d, and the last", s, b.Step)
	}
}

// Without validations there is no best checkpoint, and the newest one is evaluated.
func TestWithoutValidationsTheNewestCheckpointCounts(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Train.Steps, cfg.Train.EvalEvery = 600, 0
	r := trainTo(t, cfg, dir, TrainOptions{})
	run := filepath.Join(dir, "tiny")
	if _, ok, err := rundir.ReadBest(run); ok || err != nil {
		t.Errorf("best.json is there (%v)", err)
	}
	if r.Checkpoint != checkpoint.Dir(filepath.Join(run, rundir.Checkpoints), 600) ||
		r.Eval.(*report.Report).Policies[0].Name != "ppo:tiny@600" {
		t.Errorf("evaluated %s as %s", r.Checkpoint, r.Eval.(*report.Report).Policies[0].Name)
	}
}

func TestConfigOfARunIsReadAgainAsItWas(t *testing.T) {
	cfg, dir := tinyRun("ddqn"), t.TempDir()
	cfg.Train.Steps = 100
	own := jobSelect(&cfg)
	own.Estimates, own.Horizon, own.MaxSteps = sim.MustEstimates("noisy:0.5"), 3*time.Hour, 1000
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	got, err := rundir.ReadConfig(filepath.Join(dir, "tiny"))
	if err != nil || !reflect.DeepEqual(got, cfg) {
		t.Errorf("read %+v (%v), want %+v", got, err, cfg)
	}
}

// With a clock that does not depend on the machine, even the timing repeats.
func TestProgressHasItsKeys(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Train.Steps = 1000
	now := time.Unix(1_700_000_000, 0)
	r := trainTo(t, cfg, dir, TrainOptions{NoEval: true, Now: func() time.Time { now = now.Add(time.Second); return now }})
	records, validations := progressOf(t, filepath.Join(dir, "tiny"))
	if len(records) != 4 || len(validations) != 2 {
		t.Fatalf("%d records and %d validations, want 4 and 2", len(records), len(validations))
	}
	var at []int64
	for _, l := range records {
		at = append(at, l.Step)
		if l.Timing == nil || l.Timing.PerSecond <= 0 || l.Timing.Wall <= 0 || l.Learn["entropy"] <= 0 || l.Updates == 0 {
			t.Errorf("a record without timing or learning: %+v", l)
		}
	}
	if !slices.Equal(at, []int64{252, 500, 752, 1000}) {
		t.Errorf("records at %v", at)
	}
	last := records[3]
	if last.Episodes == 0 || last.Return == nil || last.Length == nil || last.Info["jct_s"] <= 0 {
		t.Errorf("the last record is %+v", last)
	}
	if r.Step != 1000 || r.Episodes != last.Episodes || *r.Return != *last.Return ||
		*r.PerSecond != last.Timing.PerSecond || r.Eval != nil {
		t.Errorf("the result is %+v, want the last record %+v", r, last)
	}
	b, err := json.Marshal(&TrainResult{})
	if want := `{"step":0,"episodes":0,"return_mean":null,"steps_per_s":null,"interval_steps_per_s":null,"kernels":"","checkpoint":""}`; err != nil || string(b) != want {
		t.Errorf("the document is %s (%v), want %s", b, err, want)
	}
}

func TestTooFewJobsForTheWindows(t *testing.T) {
	cfg := tinyRun("ppo")
	for _, c := range []struct {
		jobs int
		part string
	}{{60, "training"}, {500, "validation"}} {
		cfg.Trace.Synth.Jobs = c.jobs
		dir := filepath.Join(t.TempDir(), "tiny")
		_, err := Train(t.Context(), cfg, TrainOptions{RunDir: dir, Workers: 1})
		refused(t, c.part, err, "too few jobs", c.part, "synth:philly")
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the run directory was made", c.part)
		}
	}
	cfg.Trace.Synth.Jobs = 300
	_, err := arena.Evaluate(t.Context(), cfg, arena.EvalOptions{Workers: 1})
	refused(t, "evaluation", err, "too few jobs", "test")
}

// If a file in a run directory cannot be opened or replaced, the error names it and the directory is unlocked.
func TestRunDirectoryThatCannotBeWritten(t *testing.T) {
	cfg := tinyRun("ppo")
	cfg.Train.Steps, cfg.Train.EvalEvery = 200, 100
	for _, name := range []string{rundir.ProgressFile, rundir.BestFile, "." + rundir.BestFile + ".new/x",
		"." + rundir.ProgressFile + ".new/x"} {
		dir := t.TempDir()
		trainTo(t, cfg, dir, TrainOptions{NoEval: true})
		run := filepath.Join(dir, "tiny")
		if _, ok, _ := rundir.ReadBest(run); !ok {
			t.Fatal("no best checkpoint")
		}
		progress, err := os.ReadFile(filepath.Join(run, rundir.ProgressFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(run, name)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(name, "/") {
			name += "/x"
		}
		put(t, run, name) // a folder where the file should be
		_, err = Train(t.Context(), cfg, TrainOptions{RunDir: run, Resume: true, Workers: 1, NoEval: true})
		if err == nil || !strings.Contains(err.Error(), filepath.Dir(name)) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
		if err := os.RemoveAll(filepath.Join(run, filepath.Dir(name))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(run, rundir.ProgressFile), progress, 0o600); err != nil {
			t.Fatal(err)
		}
		trainTo(t, cfg, dir, TrainOptions{NoEval: true, Resume: true})
	}
}

// If a hook of the trainer cannot write, the run ends with its error.
func TestProgressThatCannotBeWrittenEndsTheRun(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	run := filepath.Join(dir, "tiny")
	_, err := Train(t.Context(), cfg, TrainOptions{RunDir: run, Workers: 1, Log: func(train.Record, float64) {
		if err := os.RemoveAll(filepath.Join(run, rundir.Checkpoints)); err != nil {
			t.Error(err)
		}
		put(t, run, rundir.Checkpoints) // a file where the folder should be
	}})
	var input *fault.Mistake
	if err == nil || errors.As(err, &input) || !strings.Contains(err.Error(), rundir.Checkpoints) {
		t.Errorf("got %v, want a failure that names %s", err, rundir.Checkpoints)
	}
}
