package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"clustergym/agents/checkpoint"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// smallDisk mounts a file system of a few megabytes, which ends with the test.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,nr_inodes=10000"); err != nil {
		t.Skipf("this process may not mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill takes all the space of a disk, until free is called.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for block := bytes.Repeat([]byte("x"), 1<<16); len(block) > 0; block = block[:len(block)/2] {
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	_ = f.Close() // full
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// A training whose disk fills up says so, waits, and continues when there is space. Ctrl-C ends it meanwhile, with the
// last checkpoint whole, and it can be continued. What it leaves has the bytes of a run that never waited.
func TestTrainingWaitsForAFullDisk(t *testing.T) {
	clitest.OneGoroutine(t)
	disk := smallDisk(t)
	checkpoints := filepath.Join(disk, "run", "checkpoints")
	args := []string{"train", "-c", "cartpole-ppo", "--workers", "1", "--no-eval"}
	for _, s := range []string{"train.steps=300000", "train.checkpoint_every=4096", "train.log_every=4096",
		"train.eval_every=0", "train.keep=2"} {
		args = append(args, "--set", s)
	}
	p := clitest.Begin(t, disk, nil, append(args, "--run-dir", "run")...)
	p.Await(t, "step ")
	for range 2 {
		before := len(p.Text())
		free := fill(t, disk)
		clitest.Eventually(t, "it tells of the full disk", func() bool {
			return strings.Contains(p.Text()[before:], "cannot be written, the disk is full")
		})
		free()
		clitest.Eventually(t, "it tells of space",
			func() bool { return strings.Contains(p.Text()[before:], "is written: there is space again") })
	}
	free := fill(t, disk)
	before := len(p.Text())
	clitest.Eventually(t, "it tells of the full disk", func() bool {
		return strings.Contains(p.Text()[before:], "cannot be written, the disk is full")
	})
	if err := p.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.End(t, "the training", cli.ExitInterrupted, "make space and continue with --resume run")
	latest, err := checkpoint.Latest(checkpoints)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Verify(latest); err != nil {
		t.Error(err)
	}
	free()
	again := clitest.Begin(t, disk, nil, "train", "--workers", "1", "--no-eval", "--resume", "run")
	again.End(t, "the training, continued", cli.ExitDone, "")
	straight := t.TempDir()
	clitest.Begin(t, straight, nil,
		append(args, "--run-dir", "run")...).End(t, "the training without a pause", cli.ExitDone, "")
	clitest.SameRuns(t, "after the full disk", clitest.RunFiles(t, filepath.Join(disk, "run")),
		clitest.RunFiles(t, filepath.Join(straight, "run")))
}
