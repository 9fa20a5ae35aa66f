//go:build unix

package steer_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/ops/steer"
)

// What others put in the place of a lease does not stop a program without a word: the sentence says whose it is, and
// where.
func TestWhatIsInTheWayOfALease(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lease")
	take := func() error { return (&steer.Lease{File: file, Term: time.Minute, Now: time.Now}).Take("a") }
	for _, x := range []struct {
		put  func() error
		says string
	}{
		{func() error { return syscall.Mkfifo(file, 0o600) }, "is a pipe of "},
		{func() error { return os.Mkdir(file, 0o700) }, "is a folder of "},
		{func() error { return os.Symlink("/dev/zero", file) }, "is a link of "},
	} {
		if err := x.put(); err != nil {
			t.Fatal(err)
		}
		if err := take(); err == nil || !strings.Contains(err.Error(), file+" "+x.says) ||
			!strings.Contains(err.Error(), "uid ") {
			t.Errorf("%v, want %q", err, x.says)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	if err := os.WriteFile(file, []byte("evil\x1b[2J"), 0o644); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	if err := os.Chown(file, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := take(); err == nil || !strings.Contains(err.Error(), "uid 65534") || !strings.Contains(err.Error(), file) ||
		strings.Contains(err.Error(), "\x1b") {
		t.Errorf("the fresh file of another user: %v", err)
	}
	for mode, private := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o777: false, 0o777 | os.ModeSticky: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := steer.Private(dir); (err == nil) != private {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if err := steer.Private(dir); err == nil || !strings.Contains(err.Error(), "uid 65534") {
		t.Error(err)
	}
}

// A full disk is said at once, and once; lines come again when it takes them, the first of them standing alone and
// counting what is lost.
func TestAFullDiskIsSaidAtOnce(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "log")
	if err := os.Symlink("/dev/full", file); err != nil {
		t.Fatal(err)
	}
	l, err := steer.OpenLog(file, 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	l.Note = func(text string) { notes = append(notes, text) }
	write := func(n int) {
		line := steer.Line{Waiting: n}
		if l.Fresh() {
			line.Log = steer.Format
		}
		if err := l.Write(&line); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		write(n)
		l.Flush()
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "no space left on device") || !strings.Contains(notes[0], file) {
		t.Fatalf("%q", notes)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		write(10 + n)
		l.Flush()
	}
	if len(notes) != 2 || !strings.Contains(notes[1], "3 are missing") {
		t.Errorf("%q", notes)
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Error("the end does not say that lines are missing", err)
	}
	lines := readLog(t, file)
	if len(lines) != 3 || lines[0].Log != steer.Format || lines[0].Lost != 3 || lines[0].Waiting != 10 ||
		lines[1].Lost != 0 {
		t.Errorf("%+v", lines)
	}
}
