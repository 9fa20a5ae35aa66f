package muri_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/traces"
	"clustergym/traces/muri"
)

func TestSniffKnowsItsFilesAmongAllRealOnes(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "traces")
	if _, err := os.Stat(root); err != nil {
		t.Skip("real traces not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	known := 0
	if err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := traces.OpenFile(path)
		if err != nil {
			return err
		}
		defer f.Close()
		head, err := io.ReadAll(io.LimitReader(f, 1<<16))
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		want := strings.HasPrefix(rel, "philly-muri/")
		if got := muri.Sniff(head); got != want {
			t.Errorf("%s: %v, want %v", rel, got, want)
		}
		if want {
			known++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if known != 3 {
		t.Errorf("%d files of this format, want 3", known)
	}
}
