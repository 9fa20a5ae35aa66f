package docstest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// linked returns the packages of each outside module that packages and what they import belong to, for Linux.
func linked(t *testing.T, packages ...string) map[string][]string {
	t.Helper()
	c := exec.Command("go",
		append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}"}, packages...)...)
	c.Dir = "../.."
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if module, path, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Contains(module, ".") && path != "" {
			of[module] = append(of[module], path)
		}
	}
	return of
}

// The page names what Gorgonia brings into the binary, and how much of it.
func TestThePageOfDependenciesIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	all, brought := linked(t, "./cmd/gymctl"), linked(t, "gorgonia.org/gorgonia", "gorgonia.org/tensor")
	var want, got []string
	for module, packages := range brought {
		if all[module] == nil {
			t.Errorf("%s is not in gymctl", module)
		}
		want = append(want, fmt.Sprintf("%s %d", module, len(packages)))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([0-9]+) \\|").FindAllStringSubmatch(string(page), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/design/dependencies.md lists\n%s\nand go list -deps\n%s", strings.Join(got, "\n"),
			strings.Join(want, "\n"))
	}
	for _, module := range []string{"gorgonia.org/cu", "github.com/google/uuid"} {
		if all[module] != nil {
			t.Errorf("the page says that %s is not linked", module)
		}
	}
}
