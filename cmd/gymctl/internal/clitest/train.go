package clitest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"clustergym/agents/checkpoint"
	"clustergym/cmd/gymctl/internal/cli"
)

// tiny is a run that takes a second.
const tiny = `name: tiny
trace: {synth: {jobs: 3000}}
env: {id: JobSelect-v1, window: 32, warm: 32, visible: 4, load: 3}
ppo: {steps: 32, epochs: 2, minibatches: 2, network: {hidden: [16]}}
train: {steps: 1000, envs: 4, log_every: 250, eval_every: 500, checkpoint_every: 400, keep: 2}
eval: {windows: 4, validation: 2, policies: [fifo, sjf@slots], whole: false}
`

// InRoom changes to an empty folder with tiny.yaml, jobs.csv and, if asked for, a run in folder run.
func InRoom(t *testing.T, withRun bool) {
	t.Helper()
	t.Chdir(t.TempDir())
	Write(t, "tiny.yaml", tiny)
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu\n")
	for i := range 900 {
		fmt.Fprintf(&b, "%d,%d,%d\n", 30*i, 60+977*i%5000, 1+i%4)
	}
	Write(t, "jobs.csv", b.String())
	if withRun {
		Must(t, "train", "-c", "tiny.yaml", "--run-dir", "run", "--no-eval", "--workers", "1")
	}
}

// files returns the files below the current folder: contents by path.
func files(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		found[path] = "a folder"
		if !d.IsDir() {
			found[path] = Read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Wrong checks that args end with exit code 2 and one sentence that contains want, that nothing is printed, and that
// nothing in the current folder changes.
func Wrong(t *testing.T, args []string, want ...string) {
	t.Helper()
	before := files(t)
	code, out, said := Run(t, args...)
	if code != cli.ExitMistake || out != "" || !strings.HasPrefix(said, "gymctl: ") || strings.Count(said, "\n") != 1 {
		t.Errorf("gymctl %s: exit code %d, printed %q, said %q; want 2, nothing, one line", strings.Join(args, " "), code,
			out, said)
	}
	for _, w := range want {
		if !strings.Contains(said, w) {
			t.Errorf("gymctl %s: said %q, want %q in it", strings.Join(args, " "), said, w)
		}
	}
	if after := files(t); !maps.Equal(before, after) {
		t.Errorf("gymctl %s changed files", strings.Join(args, " "))
	}
}

// Until cancels when something containing text is written to it.
type Until struct {
	mu     sync.Mutex
	Text   string
	Cancel func()
	Said   bytes.Buffer
}

func (u *Until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Said.Write(p)
	if strings.Contains(u.Said.String(), u.Text) {
		u.Cancel()
	}
	return len(p), nil
}

// Find returns the verb called name.
func Find(t *testing.T, name string) *cobra.Command {
	t.Helper()
	all := Commands()
	i := slices.IndexFunc(all, func(c *cobra.Command) bool { return c.CommandPath() == "gymctl "+name })
	if i < 0 {
		t.Fatalf("no verb %s", name)
	}
	return all[i]
}

// Brief makes a training end after a moment.
var Brief = strings.Fields(
	"--set train.steps=128 --set train.envs=2 --set train.eval_every=64 --set train.checkpoint_every=64 --set " +
		"ppo.steps=32 " +
		"--set ppo.minibatches=2 --set ppo.network.hidden=[8] --set eval.validation=2 --workers 1")

// InYard changes to an empty folder with jobs.csv, whose jobs name no models, and models.csv, whose jobs do.
func InYard(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	jobs, models := "submit_time,duration,num_gpu\n", "submit_time,duration,num_gpu,model\n"
	for i := range 600 {
		gpus := []int{1, 6, 2, 5, 8, 3}[i%6]
		jobs += fmt.Sprintf("%d,%d,%d\n", 120*i, 300+i*977%3000, gpus)
		models += fmt.Sprintf("%d,%d,%d,%s\n", 60*i, 900+i*7%500, 1+i%3, []string{"resnet-50", "vgg-16"}[i%2])
	}
	Write(t, "jobs.csv", jobs)
	Write(t, "models.csv", models)
}

// part is a part of a checkpoint with fixed content.
type part struct{ name, content string }

func (p part) Name() string { return p.name }

func (p part) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.content)
	return int64(n), err
}

func (p part) ReadFrom(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) }

// Save creates the run directory run with checkpoints of two steps.
func Save(t *testing.T) {
	t.Helper()
	SaveSteps(t, "run", 1000, 500)
}

// SaveSteps saves checkpoints of so many steps into the folder of a run.
func SaveSteps(t *testing.T, run string, steps ...int64) {
	t.Helper()
	for _, step := range steps {
		m := checkpoint.Meta{Step: step, Env: "JobSelect-v1", Agent: "ppo", Seed: 3, Kernels: "portable"}
		dir := checkpoint.Dir(filepath.Join(run, "checkpoints"), step)
		if err := checkpoint.Save(dir, m, part{"weights.bin", "weights"}, part{"agent.bin", strings.Repeat("x", 500)}); err !=
			nil {
			t.Fatal(err)
		}
	}
}
