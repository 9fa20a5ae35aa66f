//go:build unix

package run

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/agents/train"
	"clustergym/internal/raced"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
)

// Environment variables for the child process of the test below.
const (
	crashDir   = "CLUSTERGYM_TEST_CRASH_DIR"
	crashAgent = "CLUSTERGYM_TEST_CRASH_AGENT"
)

func crashing(agent string) config.Config {
	cfg := tinyRun(agent)
	cfg.Train.Keep = 2
	return cfg
}

// TestChildOfTheCrashTest trains in the given directory until it is killed, and prints its progress.
func TestChildOfTheCrashTest(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("only in a process of its own")
	}
	run := filepath.Join(dir, "tiny")
	_, err := os.Stat(filepath.Join(run, rundir.ConfigFile))
	trainTo(t, crashing(os.Getenv(crashAgent)), dir, TrainOptions{
		Resume: err == nil,
		Tick:   func(p train.Progress) { fmt.Printf("at %d\n", p.Step) },
		Game:   func(done, _ int) { fmt.Printf("at %d\n", 1_000_000+done) },
	})
}

// A run may be killed at any time and any number of times, while it steps, writes a checkpoint or best.json, or
// compares: in the end its files are those of an uninterrupted run.
func TestKilledAtAnyMomentAndResumedEqualsStraightThrough(t *testing.T) {
	for _, agent := range config.Agents() {
		if raced.On && agent != "ppo" {
			continue
		}
		straight := t.TempDir()
		trainTo(t, crashing(agent), straight, TrainOptions{})
		want := contents(t, filepath.Join(straight, "tiny"))

		dir := t.TempDir()
		killed := 0
		// Checkpoints are written at every 400th step and at every 500th that is the best so far: there the moments
		// that matter lie close together.
		draw := rand.New(rand.NewPCG(1, 2))
		moments := []int64{4, 252, 400, 500, 500, 800, 1000, 1000, 1200, 1204, 1500, 1600, 1600, 1_000_002, 1_000_009}
		if raced.On || agent != "ppo" {
			moments = []int64{252, 400, 500, 1000, 1600, 1_000_002}
		}
		for _, at := range moments {
			if killedAt(t, dir, agent, at, time.Duration(draw.IntN(12_000))*time.Microsecond) {
				killed++
			}
		}
		if killed < len(moments)-2 { // the comparison may be over before the kill arrives
			t.Errorf("%s: killed %d times only", agent, killed)
		}
		t.Logf("%s: killed %d times", agent, killed)
		trainTo(t, crashing(agent), dir, TrainOptions{Resume: true})
		sameFiles(t, agent, contents(t, filepath.Join(dir, "tiny")), want, false)
	}
}

// killedAt trains in dir in another process and kills it some time after it has reported step at. It returns whether
// the process was still running.
func killedAt(t *testing.T, dir, agent string, at int64, after time.Duration) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestChildOfTheCrashTest$", "-test.v") //nolint:gosec // this binary
	c.Env = append(os.Environ(), crashDir+"="+dir, crashAgent+"="+agent)
	var said, failed bytes.Buffer
	c.Stderr = &failed
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		text, ok := strings.CutPrefix(lines.Text(), "at ")
		if step, err := strconv.ParseInt(text, 10, 64); ok && err == nil && step >= at {
			time.Sleep(after)
			if err := c.Process.Signal(syscall.SIGKILL); err != nil {
				t.Logf("kill: %v", err)
			}
			break
		}
	}
	for lines.Scan() { // what it said before it died
	}
	err = c.Wait()
	status, _ := c.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return true
	}
	if err != nil {
		t.Fatalf("the child failed: %v\n%s%s", err, said.String(), failed.String())
	}
	return false
}
