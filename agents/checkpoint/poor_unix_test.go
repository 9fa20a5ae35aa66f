//go:build unix

package checkpoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"clustergym/internal/shortage"
)

const poorDir = "CHECKPOINT_TEST_POOR" // tells the child where to save without descriptors

// savePoor saves in a process that has no descriptor left. Whenever it asks for some, it gets one more, so that the
// save fails at every place that needs one.
func savePoor(dir string) {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		panic(err)
	}
	var held []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	asked := 0
	shortage.Relieves(func() {
		asked++
		if n := len(held); n > 0 {
			_ = held[n-1].Close() // it was only held
			held = held[:n-1]
		}
	})
	if err := Save(dir, Meta{Step: 2}, parts("new")...); err != nil {
		panic(err)
	}
	if asked < 2 {
		panic("it lacked no descriptors")
	}
}

// A process without descriptors saves as soon as it gets some, wherever it lacked them, and leaves nothing else behind.
func TestSaveOutlastsAShortageOfDescriptors(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []bool{false, true} {
		root := t.TempDir()
		dir := filepath.Join(root, "ckpt")
		if before {
			if err := Save(dir, Meta{Step: 1}, parts("old")...); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), poorDir+"="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		m, err := Verify(dir)
		if err != nil || m.Meta.Step != 2 {
			t.Errorf("%v, %v", m, err)
		}
		if list, err := os.ReadDir(root); err != nil || len(list) != 1 {
			t.Errorf("%v, %v: want the checkpoint alone", list, err)
		}
	}
}
