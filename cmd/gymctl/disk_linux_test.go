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
	oneGoroutine(t)
	disk := smallDisk(t)
	checkpoints := filepath.Join(disk, "run", "checkpoints")
	args := []string{"train", "-c", "cartpole-ppo", "--workers", "1", "--no-eval"}
	for _, s := range []string{"train.steps=300000", "train.checkpoint_every=4096", "train.log_every=4096", "train.eval_every=0", "train.keep=2"} {
		args = append(args, "--set", s)
	}
	p := begin(t, disk, nil, append(args, "--run-dir", "run")...)
	p.await(t, "step ")
	for range 2 {
		before := len(p.text())
		free := fill(t, disk)
		eventually(t, "it tells of the full disk", func() bool {
			return strings.Contains(p.text()[before:], "cannot be written, the disk is full")
		})
		free()
		eventually(t, "it tells of space", func() bool { return strings.Contains(p.text()[before:], "is written: there is space again") })
	}
	free := fill(t, disk)
	before := len(p.text())
	eventually(t, "it tells of the full disk", func() bool {
		return strings.Contains(p.text()[before:], "cannot be written, the disk is full")
	})
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.end(t, "the training", exitInterrupted, "make space and continue with --resume run")
	latest, err := checkpoint.Latest(checkpoints)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Verify(latest); err != nil {
		t.Error(err)
	}
	free()
	again := begin(t, disk, nil, "train", "--workers", "1", "--no-eval", "--resume", "run")
	again.end(t, "the training, continued", exitDone, "")
	straight := t.TempDir()
	begin(t, straight, nil, append(args, "--run-dir", "run")...).end(t, "the training without a pause", exitDone, "")
	sameRuns(t, "after the full disk", runFiles(t, filepath.Join(disk, "run")), runFiles(t, filepath.Join(straight, "run")))
}
