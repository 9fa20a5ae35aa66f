package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsName is the file with the checksums of all others, as sha256sum -c reads it.
const sumsName = "SHA256SUMS"

// sumLine is a line of it.
type sumLine struct{ sum, name string }

// readSums reads the checksums in a folder.
func readSums(dir string) ([]sumLine, error) {
	text, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		return nil, err
	}
	var all []sumLine
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || name != filepath.Base(name) {
			return nil, fmt.Errorf("%s: %q is no line of sum and file name", sumsName, line)
		}
		all = append(all, sumLine{sum, name})
	}
	return all, nil
}

// writeSums writes the checksums of what was written to a folder, and keeps those of older files that are still there:
// make wheels after make release leaves the archives checkable.
func writeSums(dir string, written, old []sumLine) error {
	for _, o := range old {
		if slices.ContainsFunc(written, func(w sumLine) bool { return w.name == o.name }) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, o.name)); err == nil {
			written = append(written, o)
		}
	}
	var text bytes.Buffer
	for _, l := range written {
		fmt.Fprintf(&text, "%s  %s\n", l.sum, l.name)
	}
	return os.WriteFile(filepath.Join(dir, sumsName), text.Bytes(), 0o644)
}
