package agenttest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clustergym/env/vec"
)

// row is a line of a table in docs/reference/metrics.md.
var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// metricsAreDocumented checks that the page on metrics lists what an update reports, in the same order.
func (s Suite[A]) metricsAreDocumented(t testing.TB) {
	l := NewLoop(t, s.New,
		Setting{Env: "ProbeContext-v1", Rows: 4, Workers: 1, Autoreset: vec.SameStep, Seed: 1, Total: 1 << 20})
	l.Update()
	var got, more []string
	for _, stat := range l.Stats {
		if strings.Contains(stat.Name, "/") { // of a key that is off by default
			more = append(more, stat.Name)
		} else {
			got = append(got, stat.Name)
		}
	}
	file := s.page
	if file == "" {
		file = filepath.Join(root(t), "docs", "reference", "metrics.md")
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "## `agents/"+s.Name+"`")
	if !ok {
		t.Fatalf("docs/reference/metrics.md has no section on agents/%s", s.Name)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range more {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("the page does not list %s", name)
		}
	}
	var want []string
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		want = append(want, m[1])
	}
	if len(got) == 0 || !slices.Equal(got, want) {
		t.Errorf("an update reports\n%v\nand the page lists\n%v", got, want)
	}
}

// root returns the folder of go.mod, above the package under test.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir
		}
		if up := filepath.Dir(dir); !errors.Is(err, fs.ErrNotExist) || up == dir {
			t.Fatalf("no go.mod above the test: %v", err)
		}
		dir = filepath.Dir(dir)
	}
}
