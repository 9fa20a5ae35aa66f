package lock

import (
	"errors"
	"io/fs"
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
