//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// oddFiles makes in the current folder what is no ordinary file, and returns the names.
func oddFiles(t *testing.T) []string {
	t.Helper()
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := os.Symlink("/dev/zero", "endless"); err != nil {
		t.Fatal(err)
	}
	return []string{"pipe", "socket", "endless", "/dev/zero"}
}

// ended runs gymctl, and fails the test if it still runs after a minute.
func ended(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out, errs bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- clitest.Execute(t.Context(), args, &out, &errs) }()
	select {
	case code = <-done:
		return code, errs.String()
	case <-time.After(time.Minute):
		t.Fatalf("gymctl %s has not ended after a minute", strings.Join(args, " "))
		return 0, ""
	}
}

// A file of settings, results or weights is an ordinary one. Anything else is refused at once, in one sentence: a pipe
// without a writer would hold the command up for ever, and a device has no end.
func TestCommandsOpenOrdinaryFilesOnly(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range oddFiles(t) {
		for _, args := range [][]string{
			{"sim", "--jobs", "9", "--cluster", "./" + name},
			{"config", "show", "./" + name}, {"config", "check", "./" + name}, {"config", "show", "--cluster", "./" + name},
			{"train", "-c", "./" + name, "--run-dir", "run"}, {"eval", "-c", "./" + name},
			{"eval", "--set", "cluster=./" + name}, {"eval", "--set", "trace.profiles=./" + name},
			{"eval", "--policies", "hold", "--hold", "./" + name},
			{"eval", "-c", "cartpole-ppo", "--policies", "random", "--policy-onnx", "./" + name},
			{"sim", "--jobs", "9", "--policy", "sjf", "--estimates", "gbdt:./" + name},
			{"sim", "--jobs", "9", "--interference", "./" + name},
			{"twin", "check", "./" + name}, {"steer", "report", "./" + name}, {"ui", "./" + name},
			{"benchmark", "verify", "./" + name},
			{"experiment", "run", "topdrl", "--quick", "--out", "new", "--settings", "./" + name},
			{"predict", "show", "./" + name},
		} {
			for i, a := range args { // a device has its own name
				args[i] = strings.Replace(a, ".//dev/", "/dev/", 1)
			}
			code, said := ended(t, args...)
			if code != cli.ExitMistake || strings.Count(said, "\n") != 1 || !strings.Contains(said, name) && args[0] != "eval" {
				t.Errorf("gymctl %s: exit code %d, said %q", strings.Join(args, " "), code, said)
			}
		}
	}
}

// What a folder of a run or a checkpoint holds may be anything as well.
func TestFoldersWithOddFilesAreRefusedAtOnce(t *testing.T) {
	room := t.TempDir()
	t.Chdir(room)
	clitest.Must(t, "train", "-c", "cartpole-ppo", "--run-dir", "run", "--no-eval", "--set", "train.steps=256", "--set",
		"train.envs=2", "--set", "ppo.steps=64")
	steps, err := filepath.Glob("run/checkpoints/*")
	if err != nil || len(steps) == 0 {
		t.Fatal(steps, err)
	}
	ckpt := steps[len(steps)-1]
	for _, file := range []string{"run/config.yaml", "run/best.json", "run/progress.jsonl", ckpt + "/manifest.json",
		ckpt + "/weights.safetensors"} {
		kept, err := os.ReadFile(file)
		missing := err != nil
		_ = os.Remove(file)
		for kind, put := range map[string]func() error{
			"pipe":    func() error { return syscall.Mkfifo(file, 0o600) },
			"endless": func() error { return os.Symlink("/dev/zero", file) },
			"huge":    func() error { return os.WriteFile(file, nil, 0o600) },
		} {
			if err := put(); err != nil {
				t.Fatal(err)
			}
			if kind == "huge" && os.Truncate(file, 1<<40) != nil {
				t.Skip("no large files here")
			}
			for _, args := range [][]string{
				{"ckpt", "show", "run"}, {"ckpt", "verify", "run"}, {"ckpt", "export", "run", "-o", "x.onnx"},
				{"eval", "--checkpoint", "run", "--policies", "random", "--episodes", "1"},
				{"train", "--resume", "run", "--set", "train.steps=256"},
			} {
				ended(t, args...) // some of them need not read this file
			}
			if code, said := ended(t, "eval", "--checkpoint", "run", "--policies", "random", "--episodes", "1"); code ==
				cli.ExitDone && !strings.Contains(file, "progress") {
				t.Errorf("%s as %s: exit code %d, said %q", file, kind, code, said)
			}
			_ = os.Remove(file)
		}
		if !missing {
			clitest.Write(t, file, string(kept))
		}
	}
}

// A trace may come through a pipe, and Ctrl-C ends the waiting: for a program that opens the other end, and for one
// that has opened it and writes nothing.
func TestAnInterruptEndsTheWaitForAPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	// Read and write, so that the opening does not wait.
	silent := func() io.Closer {
		f, err := os.OpenFile("pipe", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, open := range []bool{false, true} {
		for _, args := range [][]string{
			{"sim", "--trace", "pipe", "--cluster", "2x8"}, {"trace", "stats", "pipe"}, {"predict", "eval", "--trace", "pipe"},
			{"plan", "--graph", "pipe"},
		} {
			var writer io.Closer
			if open {
				writer = silent()
			}
			ctx, stop := context.WithCancel(t.Context())
			var out, errs bytes.Buffer
			done := make(chan int, 1)
			go func() { done <- clitest.Execute(ctx, args, &out, &errs) }()
			time.Sleep(100 * time.Millisecond) // so that it waits; too short a time makes the test weaker, never wrong
			stop()
			select {
			case code := <-done:
				if code != cli.ExitInterrupted && code != cli.ExitMistake {
					t.Errorf("gymctl %s: exit code %d, said %q", strings.Join(args, " "), code, errs.String())
				}
			case <-time.After(time.Minute):
				t.Fatalf("gymctl %s has not ended a minute after an interrupt", strings.Join(args, " "))
			}
			if writer != nil {
				_ = writer.Close()
			}
			// Let an opening that was given up end.
			if f, err := os.OpenFile("pipe", os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				_ = f.Close()
			}
		}
	}
}

// A trace still comes through a pipe.
func TestATraceComesThroughAPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := filepath.Abs("pipe")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		// Where a signal interrupts the reader's opening, which is then done again, nobody reads for a moment.
		for errors.Is(os.WriteFile(pipe, []byte("submit_time,duration,num_gpu\n0,60,1\n5,60,2\n"), 0o600), syscall.EPIPE) {
		}
	}()
	code, said := ended(t, "sim", "--trace", "pipe", "--cluster", "2x8", "--policy", "fifo")
	if code != cli.ExitDone {
		t.Errorf("exit code %d, said %q", code, said)
	}
}
