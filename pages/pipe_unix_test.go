//go:build unix

package pages

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"clustergym/lab/rundir"
)

// A pipe in a folder, which nobody writes, does not hold up the pages: opening it would wait forever.
func TestPipesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	path := written(t, dir, "a", 2)
	odd := written(t, dir, "b", 1)
	for _, name := range []string{filepath.Join(dir, "log.jsonl"), filepath.Join(odd, rundir.ProgressFile)} {
		_ = os.Remove(name) // only one of them is there
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, Options{Paths: []string{dir}})
	if code, text, _ := get(t, s.URL+"/api/list"); code != http.StatusOK || !strings.Contains(text, idOf(path)) ||
		!strings.Contains(text, "is no regular file") {
		t.Errorf("%d %s", code, text)
	}
	if err := Check([]string{filepath.Join(dir, "log.jsonl")}); err == nil ||
		!strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("error %v", err)
	}
}
