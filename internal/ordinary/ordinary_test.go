package ordinary

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsReadUpToItsBound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	write(t, name, "12345")
	if b, err := Read(name, 5); err != nil || string(b) != "12345" {
		t.Errorf("five bytes with a bound of five: %q, %v", b, err)
	}
	if _, err := Read(name, 4); err == nil || !strings.Contains(err.Error(), "more than 4 bytes") {
		t.Errorf("five bytes with a bound of four: %v", err)
	}
}

func TestOnlyFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	for name, say := range map[string]string{dir: "a folder", filepath.Join(dir, "none"): "no such file"} {
		_, err := Open(name)
		var e *Error
		if !errors.As(err, &e) || e.Name != name || !strings.Contains(e.Why, say) {
			t.Errorf("%s: %v, expected a sentence with %q", name, err, say)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v does not wrap fs.ErrNotExist", err)
	}
}

func TestNothingBelowARootLeadsOutOfIt(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret"), "s")
	write(t, filepath.Join(dir, "in", "a"), "a")
	if err := os.Symlink("a", filepath.Join(dir, "in", "near")); err != nil {
		t.Skip("this system makes no links for this user:", err)
	}
	if err := os.Symlink("../secret", filepath.Join(dir, "in", "far")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{"a", "near"} {
		if b, err := ReadIn(root, name, 100); err != nil || string(b) != "a" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"far", "../secret", filepath.Join(dir, "secret")} {
		if b, err := ReadIn(root, name, 100); err == nil {
			t.Errorf("%s was read: %q", name, b)
		}
	}
}
