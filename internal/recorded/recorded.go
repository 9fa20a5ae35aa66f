// Package recorded opens recorded data in tests: real traces, and results of other programs. The data is in the folder
// shared beside the checkout, of which it is no part, so a test that needs it is skipped where it is missing.
package recorded

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Path returns the path of name, a slash-separated path in the folder of recorded data. It skips the test if the folder
// that name is in does not exist. Whether name itself exists is not looked at.
func Path(t testing.TB, name string) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		above := filepath.Dir(root)
		if above == root {
			t.Fatal("no go.mod above the working directory, and so no folder beside it")
		}
		root = above
	}
	path := filepath.Join(filepath.Dir(root), "shared", filepath.FromSlash(name))
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("recorded data is not at hand: there is no folder %s", filepath.Dir(path))
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}

// Open returns the contents of the recorded file name, unpacked if it ends in .gz. A file that its folder does not have
// fails the test. The file is closed when the test ends.
func Open(t testing.TB, name string) io.Reader {
	t.Helper()
	f, err := os.Open(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if !strings.HasSuffix(name, ".gz") {
		return f
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return z
}

// Rows returns the rows of the recorded CSV name, each by the names of its columns. A table without rows fails the
// test.
func Rows(t testing.TB, name string) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(Open(t, name)).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(all) < 2 {
		t.Fatalf("%s: no rows", name)
	}
	rows := make([]map[string]string, 0, len(all)-1)
	for _, fields := range all[1:] {
		row := make(map[string]string, len(fields))
		for i, column := range all[0] {
			row[column] = fields[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// Number returns the number in text. Anything else fails the test.
func Number(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Whole returns the whole number in text. Anything else fails the test.
func Whole(t testing.TB, text string) int64 {
	t.Helper()
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
