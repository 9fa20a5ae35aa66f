package ddqn

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clustergym/env/vec"
)

// The page on metrics lists what an update reports, in the same order.
func TestMetricsAreDocumented(t *testing.T) {
	l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, small(), 1, 1<<20)
	l.update()
	var got []string
	for _, s := range l.stats {
		got = append(got, s.Name)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "## `agents/ddqn`")
	if !ok {
		t.Fatal("no section on agents/ddqn")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		want = append(want, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("an update reports\n%v\nand the page lists\n%v", got, want)
	}
}
