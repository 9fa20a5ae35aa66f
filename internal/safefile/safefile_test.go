package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplacesAndLeavesNothingBeside(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	for _, content := range []string{"one", "", "three"} {
		if err := Write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != content {
			t.Fatalf("the file holds %q (%v), want %q", b, err, content)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), want the file alone", entries, err)
	}
}

func TestAFailedWriteLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "taken") // a folder cannot be replaced
	if err := os.MkdirAll(filepath.Join(name, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(name, []byte("x")); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	if _, err := os.Stat(Aside(name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was written aside is still there: %v", err)
	}
}

func TestAFolderIsLockedOnce(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock says %v, want ErrLocked", err)
	}
	unlock()
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	again()
	if _, err := Lock(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
