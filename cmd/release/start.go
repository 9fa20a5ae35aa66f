package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// starter starts binaries of other platforms: those of Linux under qemu, those of Windows under wine. Those of macOS
// start on a Mac alone.
type starter struct {
	dir  string              // for binaries and what wine needs
	done map[[32]byte]string // what was said about each
}

// start runs gymctl version, and a small simulation and training, and returns in words how that went. version is what
// gymctl must call itself, "" if anything will do. It is an error only if a program could be started and failed.
func (s *starter) start(ctx context.Context, t target, data []byte, version string) (string, error) {
	key := sha256.Sum256(data)
	if said, ok := s.done[key]; ok {
		return said, nil
	}
	with, by, missing, err := s.command(ctx, t)
	switch {
	case err != nil:
		return "", err
	case missing != "":
		s.done[key] = missing
		return missing, nil
	}
	work, err := os.MkdirTemp(s.dir, "start-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(work, t.binary())
	if err := os.WriteFile(program, data, 0o700); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"version"},
		{"sim", "--policy", "fifo,sjf", "--jobs", "200"},
		{"train", "-c", "cartpole-ppo", "--set", "train.steps=2048", "--no-eval", "--run-dir", "trained", "--workers", "1"},
	} {
		said, err := s.one(ctx, work, append(with, append([]string{program}, args...)...))
		if err != nil {
			return "", fmt.Errorf("gymctl %s%s: %w: %s", strings.Join(args, " "), by, err, said)
		}
		if want := "gymctl   " + version; args[0] == "version" && !strings.HasPrefix(said, want) {
			return "", fmt.Errorf("gymctl version%s says %q, want %q first", by, said, want)
		}
	}
	if _, err := os.Stat(filepath.Join(work, "trained", "progress.jsonl")); err != nil {
		return "", fmt.Errorf("gymctl train%s left no progress.jsonl", by)
	}
	s.done[key] = "version, sim and train run" + by
	return s.done[key], nil
}

// one runs a command in a folder and returns what it says.
func (s *starter) one(ctx context.Context, dir string, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = dir
	// Wine crashed once in some fifty starts; threads that Go stops at any instruction are what it has least practice
	// with.
	c.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "WINEPREFIX="+filepath.Join(s.dir, "wine"), "WINEDEBUG=-all",
		"WINEDLLOVERRIDES=mscoree,mshtml=;bcryptprimitives=n,b")
	said, err := c.CombinedOutput()
	return strings.TrimSpace(string(said)), err
}

// command returns what starts a binary of a target here: the words before it, and the same for people, or what is
// missing.
func (s *starter) command(ctx context.Context, t target) (with []string, by, missing string, err error) {
	switch {
	case t.os == runtime.GOOS && t.arch == runtime.GOARCH:
		return nil, "", "", nil
	case t.os == "linux" && runtime.GOOS == "linux":
		name := map[string]string{"arm64": "qemu-aarch64", "amd64": "qemu-x86_64"}[t.arch]
		if qemu := lookPath(name, name+"-static"); qemu != "" {
			return []string{qemu}, " under " + name, "", nil
		}
		return nil, "", "not started: no " + name + " here (Debian: apt-get install qemu-user)", nil
	case t.os == "windows":
		wine := lookPath("wine64", "wine")
		if wine == "" || runtime.GOARCH != "amd64" {
			return nil, "", "not started: no wine here (Debian: apt-get install wine64 wine)", nil
		}
		return []string{wine}, " under wine", "", s.prepareWine(ctx, wine)
	}
	return nil, "", "not started: that needs a machine of its kind", nil
}

// prepareWine makes a Windows of its own. Wine 8 lacks bcryptprimitives.dll, from which Go gets random numbers: a
// function of advapi32.dll with the same signature takes its place. A training here must also be too short to drop a
// checkpoint, since Go cannot remove a folder with files in it under Wine 8, which answers a call of Windows 10 in
// another way than Windows does.
func (s *starter) prepareWine(ctx context.Context, wine string) error {
	system := filepath.Join(s.dir, "wine", "drive_c", "windows", "system32")
	if _, err := os.Stat(system); err == nil {
		return nil
	}
	if said, err := s.one(ctx, s.dir, []string{wine, "cmd", "/c", "exit"}); err != nil {
		return fmt.Errorf("wine cannot make a Windows: %w: %s", err, said)
	}
	dll := filepath.Join(system, "bcryptprimitives.dll")
	if _, err := os.Stat(dll); err == nil {
		return nil
	}
	return os.WriteFile(dll, forwarder("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"), 0o644)
}

// lookPath returns the first of programs that is installed, "" if none is.
func lookPath(programs ...string) string {
	for _, p := range programs {
		if found, err := exec.LookPath(p); err == nil {
			return found
		}
	}
	return ""
}
