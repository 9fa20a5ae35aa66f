package clitest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Unchanged compares lines with testdata/unchanged/name. The current folder is that of the package.
func Unchanged(t *testing.T, name string, lines []string) {
	t.Helper()
	file := filepath.Join("testdata", "unchanged", name)
	if *Update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		Write(t, file, strings.Join(lines, "\n")+"\n")
	}
	want := strings.Split(strings.TrimSuffix(Read(t, file), "\n"), "\n")
	for _, l := range want {
		if !slices.Contains(lines, l) {
			t.Errorf("%s (-update rewrites) has, and this program does not give,\n  %s", file, l)
		}
	}
	for _, l := range lines {
		if !slices.Contains(want, l) {
			t.Errorf("%s does not have\n  %s", file, l)
		}
	}
	if !t.Failed() && !slices.Equal(lines, want) {
		t.Errorf("%s has the lines in another order", file)
	}
}

// Digest returns the SHA-256 of a text.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Elsewhere runs f in a folder of its own, and returns to the current one.
func Elsewhere(t *testing.T, f func()) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	f()
	t.Chdir(here)
}
