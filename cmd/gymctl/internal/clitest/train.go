package clitest

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

// tiny is a run that takes a second.
const tiny = `name: tiny
trace: {synth: {jobs: 3000}}
env: {window: 32, warm: 32, visible: 4, load: 3}
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
		n := func(v int) string { s, _ := json.Marshal(v); return string(s) } // an int
		b.WriteString(n(30*i) + "," + n(60+977*i%5000) + "," + n(1+i%4) + "\n")
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
		t.Errorf("gymctl %s: exit code %d, printed %q, said %q; want 2, nothing, one line", strings.Join(args, " "), code, out, said)
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
