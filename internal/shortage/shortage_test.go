package shortage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestTheReserveIsFilledAgain(t *testing.T) {
	t.Parallel()
	r := NewReserve(3)
	for range 2 {
		r.Fill()
		for range 3 {
			if !r.Give() {
				t.Fatal("it has less than its size")
			}
		}
		if r.Give() {
			t.Error("it has more than its size")
		}
	}
	r.Fill()
	r.Close()
	r.Fill()
	if r.Give() {
		t.Error("it has something after its end")
	}
}

// failing returns a function that fails n times by err and then not.
func failing(n int, err error) func() error {
	return func() error {
		if n--; n >= 0 {
			return &os.PathError{Op: "open", Path: "x", Err: err}
		}
		return nil
	}
}

// A shortage of descriptors passes, and listeners are asked for theirs; other errors come back at once.
func TestFilesAreTriedAgain(t *testing.T) {
	asked := 0
	stop := Relieves(func() { asked++ })
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE} {
		if asked = 0; Files(failing(3, err)) != nil || asked != 3 {
			t.Errorf("%v: asked %d times, want 3", err, asked)
		}
	}
	if asked = 0; !errors.Is(Files(failing(1, syscall.EACCES)), os.ErrPermission) || asked != 0 {
		t.Errorf("another error: asked %d times", asked)
	}
	if err := Files(failing(1, syscall.ENOSPC)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	stop()
	if asked = 0; Files(failing(2, syscall.EMFILE)) != nil || asked != 0 {
		t.Errorf("asked %d times after the end", asked)
	}
}

// notes collects what the user reads.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

func (n *notes) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.list, "\n")
}

// A full disk is waited for; the user reads it once, and once more when there is space.
func TestAFullDiskIsWaitedFor(t *testing.T) {
	for _, err := range full {
		var n notes
		w := Patient(t.Context(), n.say)
		w.look = time.Millisecond
		if err := w.Do("the checkpoint", failing(5, err)); err != nil {
			t.Errorf("%v", err)
		}
		if len(n.list) != 2 || !strings.Contains(n.list[0], "the checkpoint cannot be written, the disk is full") ||
			n.list[1] != "the checkpoint is written: there is space again" {
			t.Errorf("%v: %q", err, n.list)
		}
	}
}

// The end of the context ends the waiting with the error of the disk, and lets nothing wait that begins later.
func TestTheWaitingEndsWithItsContext(t *testing.T) {
	var n notes
	ctx, cancel := context.WithCancel(t.Context())
	w := Patient(ctx, n.say)
	w.look = time.Hour
	done := make(chan error, 1)
	go func() { done <- w.Do("the checkpoint", failing(9, syscall.ENOSPC)) }()
	for n.text() == "" {
		time.Sleep(time.Millisecond)
	}
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v", err)
		}
		go func() { done <- w.Do("the checkpoint", failing(9, syscall.ENOSPC)) }()
	}
	if err := <-done; !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if err := (*Wait)(nil).Do("x", failing(9, syscall.ENOSPC)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("without patience: %v", err)
	}
	if err := (*Wait)(nil).Do("x", failing(3, syscall.EMFILE)); err != nil {
		t.Errorf("without patience: %v", err)
	}
}

// narrow is a file on a disk that has room for a few bytes at a time.
type narrow struct {
	bytes.Buffer
	room []int
}

func (f *narrow) Write(b []byte) (int, error) {
	n := len(b)
	if len(f.room) > 0 {
		n, f.room = min(n, f.room[0]), f.room[1:]
	}
	f.Buffer.Write(b[:n])
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// Nothing is written twice, and nothing is lost, when a disk is full in the middle of a line.
func TestAWriterGoesOnWhereTheDiskWasFull(t *testing.T) {
	f := &narrow{room: []int{3, 0, 0, 4, 1}}
	var n notes
	w := Patient(t.Context(), n.say)
	w.look = time.Millisecond
	out := w.Writer("progress.jsonl", f)
	for _, line := range []string{"0123456789\n", "abcdef\n"} {
		if k, err := out.Write([]byte(line)); k != len(line) || err != nil {
			t.Errorf("%d, %v", k, err)
		}
	}
	if f.String() != "0123456789\nabcdef\n" {
		t.Errorf("%q", f.String())
	}
}

// The errors that files of this system have are recognised.
func TestRealErrorsAreRecognised(t *testing.T) {
	if OfFiles(nil) || OfSpace(nil) || Passing(nil) {
		t.Error("no error is a shortage")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer f.Close()
	if _, err := f.WriteString("x"); !OfSpace(err) {
		t.Errorf("%v", err)
	}
	if _, err := os.Open(filepath.Join(t.TempDir(), "none")); OfSpace(err) || OfFiles(err) {
		t.Errorf("%v", err)
	}
}
