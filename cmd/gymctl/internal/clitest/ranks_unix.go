//go:build unix

package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/lab/rundir"
)

// RankProcess is gymctl in a process of its own.
type RankProcess struct {
	Cmd  *exec.Cmd
	Done chan struct{} // closed when it has ended
	Code int

	mu   sync.Mutex
	said bytes.Buffer // on stderr
	grew chan struct{}
}

func (p *RankProcess) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.said.Write(b)
	select {
	case p.grew <- struct{}{}:
	default:
	}
	return n, err
}

// Text returns what the process has said.
func (p *RankProcess) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// Begin starts gymctl in a folder.
func Begin(t *testing.T, dir string, env []string, args ...string) *RankProcess {
	t.Helper()
	return BeginProgram(t, dir, env, os.Args[0], args...)
}

// BeginProgram is begin for a program that starts gymctl.
func BeginProgram(t *testing.T, dir string, env []string, program string, args ...string) *RankProcess {
	t.Helper()
	p := &RankProcess{Done: make(chan struct{}), grew: make(chan struct{}, 1)}
	p.Cmd = exec.Command(program, args...) //nolint:gosec // this test
	p.Cmd.Env = append(append(os.Environ(), AsProgram+"=1"), env...)
	p.Cmd.Dir, p.Cmd.Stderr = dir, p
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Cmd.Wait() // the code says it
		p.Code = p.Cmd.ProcessState.ExitCode()
		close(p.Done)
	}()
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill() // it may have ended
		<-p.Done
	})
	return p
}

// Await returns what follows a text on its line, once it was said.
func (p *RankProcess) Await(t *testing.T, text string) string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		_, rest, ok := strings.Cut(p.Text(), text)
		if line, _, whole := strings.Cut(rest, "\n"); ok && whole {
			return line
		}
		select {
		case <-p.grew:
		case <-p.Done:
			if !strings.Contains(p.Text(), text) {
				t.Fatalf("it ended with %d and did not say %q:\n%s", p.Code, text, p.Text())
			}
		case <-late:
			t.Fatalf("it does not say %q:\n%s", text, p.Text())
		}
	}
}

// End waits for a process and checks its code and, unless it is empty, a text that it has said.
func (p *RankProcess) End(t *testing.T, what string, code int, text string) {
	t.Helper()
	select {
	case <-p.Done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end:\n%s", what, p.Text())
	}
	if p.Code != code || !strings.Contains(p.Text(), text) {
		t.Errorf("%s ends with %d, want %d and %q:\n%s", what, p.Code, code, text, p.Text())
	}
}

// SmallTraining returns the arguments of a training of a second or two.
func SmallTraining(replicas int) []string {
	args := []string{"-c", "cartpole-ppo", "--no-eval"}
	for _, s := range []string{
		fmt.Sprintf("ppo.replicas=%d",
			replicas), "train.envs=6", "train.steps=48000", "train.eval_every=9000", "train.checkpoint_every=3000",
		"train.log_every=5000", "train.keep=0",
		"ppo.steps=64", "eval.validation=2", "ppo.target_kl=0.02", "ppo.shards=2",
	} {
		args = append(args, "--set", s)
	}
	return args
}

// RunFiles returns the files of a run that must repeat.
func RunFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "events.out.") || d.Name() == "lock" {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		text := string(b)
		if d.Name() == rundir.ProgressFile {
			text = ""
			for row := range bytes.Lines(b) {
				var m map[string]any
				if err := json.Unmarshal(row, &m); err != nil {
					return err
				}
				delete(m, "timing")
				line, err := json.Marshal(m)
				if err != nil {
					return err
				}
				text += string(line) + "\n"
			}
		}
		files[path] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// SameRuns compares the files of two runs.
func SameRuns(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s differs or is missing", what, name)
		}
	}
}
