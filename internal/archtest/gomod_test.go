package archtest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The table of libraries and go.mod name the same modules: each direct requirement may be imported by some package, and
// each module that a package may import is in go.mod.
func TestTheTableOfLibrariesAgreesWithGoMod(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	allowed := slices.Concat(everywhere, everyTest)
	for _, list := range libraries {
		allowed = append(allowed, list...)
	}
	for _, f := range checkGoMod(string(text), allowed) {
		t.Error(f)
	}
	const small = "module m\n\nrequire a.org/used v1.0.0\n\nrequire (\n\ta.org/new v1.0.0\n\ta.org/other v1.0.0 // indirect\n)\n"
	got := checkGoMod(small, []string{"a.org/used", "a.org/gone", "a.org/other"})
	if len(got) != 2 || !strings.HasPrefix(got[0], "a.org/new ") || !strings.HasPrefix(got[1], "a.org/gone ") {
		t.Errorf("got %q, expected a fault for a.org/new and one for a.org/gone", got)
	}
}

// checkGoMod compares the text of a go.mod with the modules that packages may import.
func checkGoMod(text string, allowed []string) (faults []string) {
	required := map[string]bool{}
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(words) < 2 || !strings.Contains(words[0], ".") || !strings.HasPrefix(words[1], "v") {
			continue
		}
		required[words[0]] = true
		if !strings.Contains(line, "// indirect") && !slices.Contains(allowed, words[0]) {
			faults = append(faults, words[0]+" is in go.mod, and tables_test.go allows it to no package")
		}
	}
	slices.Sort(allowed)
	for _, module := range slices.Compact(allowed) {
		if !required[module] {
			faults = append(faults, module+" is allowed in tables_test.go and is not in go.mod")
		}
	}
	return faults
}
