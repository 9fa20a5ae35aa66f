package run

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/checkpoint"
	"clustergym/env/jobselect"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
)

// tinyRun returns a run of a second on small windows that are crowded enough for policies to differ.
func tinyRun(agent string) config.Config {
	c := config.For("JobSelect-v1")
	c.Name, c.Agent = "tiny", agent
	c.Trace.Synth.Jobs = 3000
	own := jobSelect(&c)
	own.Window, own.Warm, own.Visible, own.Load = 32, 32, 4, 3
	c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches, c.PPO.RewardScale = 32, 2, 2, true
	c.PPO.Network.Hidden = []int{16}
	c.DDQN.Buffer, c.DDQN.LearningStarts, c.DDQN.Batch, c.DDQN.TrainEvery, c.DDQN.TargetEvery = 300, 200, 16, 16, 300
	c.DDQN.Network.Hidden = []int{16}
	c.Train.Steps, c.Train.Envs, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery, c.Train.Keep = 1600, 4, 250,
		500, 400, 0
	c.Eval.Windows, c.Eval.Validation, c.Eval.Seeds = 4, 2, 2
	c.Eval.Policies = []string{"fifo+strict", "sjf+skip", "sjf@slots", "random@slots"}
	return c
}

// trainTo trains in dir/tiny, so that equal runs have equal names.
func trainTo(t *testing.T, cfg config.Config, dir string, opt TrainOptions) *TrainResult {
	t.Helper()
	opt.RunDir = filepath.Join(dir, "tiny")
	if opt.Workers == 0 {
		opt.Workers = 1
	}
	r, err := Train(t.Context(), cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents returns the files under dir whose bytes must repeat, by path: all but the event files, which contain times,
// and progress.jsonl without the timing.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "events.out.tfevents.") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if filepath.Base(name) == rundir.ProgressFile {
			b = untimed(t, b)
		}
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func untimed(t *testing.T, progress []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for row := range bytes.Lines(progress) {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(row, &m); err != nil {
			t.Fatalf("progress.jsonl: %v in %q", err, row)
		}
		delete(m, "timing")
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(b, '\n'))
	}
	return out.Bytes()
}

// sameFiles compares two runs. more allows checkpoints in got that want does not have.
func sameFiles(t *testing.T, what string, got, want map[string]string, more bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok {
			t.Errorf("%s: %s is missing", what, name)
		} else if g != want[name] {
			t.Errorf("%s: %s differs", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok &&
			!(more && strings.HasPrefix(name, rundir.Checkpoints+"/") && !strings.Contains(name, "/.")) {
			t.Errorf("%s: %s is too many", what, name)
		}
	}
}

func steps(t *testing.T, run string) []int64 {
	t.Helper()
	s, err := checkpoint.List(filepath.Join(run, rundir.Checkpoints))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// progressOf returns the lines of progress.jsonl: records and validations.
func progressOf(t *testing.T, run string) (records, validations []rundir.Line) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run, rundir.ProgressFile))
	if err != nil {
		t.Fatal(err)
	}
	for row := range bytes.Lines(b) {
		var l rundir.Line
		d := json.NewDecoder(bytes.NewReader(row))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.Eval != nil {
			validations = append(validations, l)
		} else {
			records = append(records, l)
		}
	}
	return records, validations
}

// cancelled returns a context and the function that cancels it.
func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// jobSelect returns the settings of JobSelect-v1 in c, for changes.
func jobSelect(c *config.Config) *jobselect.Config { return c.Edit().(*jobselect.Config) }

// inEnv changes the environment of c to id.
func inEnv(c *config.Config, id string) {
	if err := c.SetEnv(id); err != nil {
		panic(err)
	}
}
