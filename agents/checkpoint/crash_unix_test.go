//go:build unix

package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	crashDir = "CHECKPOINT_TEST_DIR" // tells the child where to save …
	crashAt  = "CHECKPOINT_TEST_AT"  // … and before which change on disk to kill itself
)

// TestMain lets the test binary play the process that dies: no deferred call runs, nothing is flushed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(poorDir); dir != "" {
		savePoor(dir)
		os.Exit(0)
	}
	dir := os.Getenv(crashDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	at, err := strconv.Atoi(os.Getenv(crashAt))
	if err != nil {
		panic(err)
	}
	step := 0
	err = save(dir, Meta{Step: 2}, parts("new"), func(op string) {
		if _, err := os.Stdout.WriteString(op + "\n"); err != nil {
			panic(err)
		}
		if step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		step++
	})
	if err != nil {
		panic(err)
	}
	os.Exit(0)
}

// crash runs a save of dir in a process that is killed before its at-th change, and returns the last one's name.
func crash(t *testing.T, dir string, at int) (op string, finished bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashAt+"="+strconv.Itoa(at))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	op = lines[len(lines)-1]
	if err == nil {
		return op, true
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("killed at %d: %v\n%s", at, err, errOut.String())
	}
	return op, false
}

// Killed before any change on disk, a save leaves the old checkpoint or the new one, whole, and the next Latest
// leaves nothing else.
func TestCrashLeavesOldOrNew(t *testing.T) {
	old, fresh := contents(parts("old")), contents(parts("new"))
	for _, first := range []bool{false, true} { // is there an old one?
		sawOld, sawNew, ops := false, false, 0
		for at := 0; ; at++ {
			root := filepath.Join(t.TempDir(), "c")
			dir := Dir(root, 2)
			if !first {
				mustSave(t, Dir(root, 1), "old", 1)
				mustSave(t, dir, "old", 1)
			}
			op, finished := crash(t, dir, at)
			if finished {
				break
			}
			ops++

			// Read at once, as evaluation would, without any cleaning first.
			got := places()
			m, err := Load(dir, got...)
			switch {
			case err == nil && m.Step == 1 && reflect.DeepEqual(contents(got), old):
				sawOld = true
			case err == nil && m.Step == 2 && reflect.DeepEqual(contents(got), fresh):
				sawNew = true
			case first && errors.Is(err, os.ErrNotExist):
				sawOld = true
			default:
				t.Fatalf("killed before %q: meta %+v, error %v", op, m, err)
			}

			if _, err := Latest(root); err != nil && (!first || !errors.Is(err, ErrNone)) {
				t.Fatalf("killed before %q: Latest: %v", op, err)
			}
			if _, err := os.Stat(root); err == nil {
				for _, name := range names(t, root) {
					if strings.HasPrefix(name, ".") {
						t.Errorf("killed before %q: %s is left", op, name)
					}
				}
			}
			mustSave(t, dir, "again", 3)
			if m, err := Load(dir, places()...); err != nil || m.Step != 3 {
				t.Errorf("killed before %q: the next save: step %d, %v", op, m.Step, err)
			}
		}
		// Three parts and a manifest: written and synced, and the directories around them.
		if ops < 15 || !sawOld || !sawNew {
			t.Errorf("killed at %d places; old seen %v, new seen %v", ops, sawOld, sawNew)
		}
	}
}

// The next Save, too, repairs a save that crashed after it moved the old checkpoint aside and before the new one was
// in place.
func TestNextSaveCleansUp(t *testing.T) {
	for at := 0; ; at++ {
		root := t.TempDir()
		mustSave(t, Dir(root, 2), "old", 1)
		if _, finished := crash(t, Dir(root, 2), at); finished {
			return
		}
		mustSave(t, Dir(root, 5), "other", 5)
		if got, want := names(t, root), []string{"2", "5"}; !reflect.DeepEqual(got, want) {
			t.Errorf("killed before change %d, then saved: %v, want %v", at, got, want)
		}
	}
}

// Latest does not touch what a running process is writing.
func TestLatestSparesASaveUnderWay(t *testing.T) {
	root := t.TempDir()
	mustSave(t, Dir(root, 1), "old", 1)
	err := save(Dir(root, 2), Meta{Step: 2}, parts("new"), func(op string) {
		if dir, err := Latest(root); op != "sync root" && op != "done" && (err != nil || dir != Dir(root, 1)) {
			t.Errorf("before %q: latest is %s, %v", op, dir, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Dir(root, 2), places()...); err != nil {
		t.Error(err)
	}
}
