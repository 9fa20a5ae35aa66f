package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAFolderIsLockedUntilItIsReleased(t *testing.T) {
	if !Supported {
		t.Skip("this system has no locks")
	}
	dir := t.TempDir()
	unlock, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock: %v, expected ErrHeld", err)
	}
	unlock()
	if unlock, err = Folder(dir); err != nil {
		t.Fatalf("after the first was released: %v", err)
	}
	unlock()
	if _, err := Folder(dir + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

func TestASharedLockIsForSeveral(t *testing.T) {
	if !Supported {
		t.Skip("this system has no locks")
	}
	name := filepath.Join(t.TempDir(), "a")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a, b, c := open(), open(), open()
	defer c.Close() //nolint:errcheck // only locked
	for _, f := range []*os.File{a, b} {
		if err := Shared(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := File(c); !errors.Is(err, ErrHeld) {
		t.Errorf("a lock for one beside two: %v, expected ErrHeld", err)
	}
	_ = a.Close()
	if err := File(c); !errors.Is(err, ErrHeld) {
		t.Errorf("a lock for one beside one: %v, expected ErrHeld", err)
	}
	_ = b.Close()
	if err := File(c); err != nil {
		t.Error(err)
	}
	if err := Shared(c); err != nil {
		t.Errorf("a lock for one becomes one for several: %v", err)
	}
}
