package envs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The pages in docs/reference/environments are the output of gymctl envs; -update writes them.
func TestDocsHaveTheEnvironmentsPages(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "reference", "environments")
	want := map[string]string{}
	var index strings.Builder
	index.WriteString(
		"# Environments\n\nThese pages are printed by `gymctl envs ID`. A test holds them against the program.\n\n")
	index.WriteString("| environment | the agent decides | --trace | --cluster | preset |\n|---|---|---|---|---|\n")
	for _, d := range descriptors {
		info, err := Describe(d.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		want[d.ID+".md"] = strings.TrimRight(info.Page, "\n") + "\n"
		if d.Scheduling() {
			cluster := "–"
			if d.Takes.Cluster {
				cluster = "yes"
			}
			preset := "–"
			if d.Preset != "" {
				preset = "`" + d.Preset + "`"
			}
			fmt.Fprintf(&index, "| [%s](%s.md) | %s | %s | %s | %s |\n", d.ID, d.ID, d.About, cell(d.Takes.Trace()), cluster,
				preset)
		}
	}
	index.WriteString("\nProblems with known answers, on which agents are checked (docs/guides/train.md):\n\n")
	for _, d := range descriptors {
		if !d.Scheduling() {
			fmt.Fprintf(&index, "- [%s](%s.md)\n", d.ID, d.ID)
		}
	}
	want["README.md"] = index.String()
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || string(text) != want[e.Name()] {
			t.Errorf(
				"%s is not what the program says (%v); go test ./experiments/envs -run TestDocsHaveTheEnvironmentsPages -update writes it", e.Name(), err)
		}
	}
	for name := range want {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing", name)
		}
	}
}
