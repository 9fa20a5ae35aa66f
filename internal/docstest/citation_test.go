package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The version stands in the Python package alone; CITATION.cff repeats it, because readers who cite need nothing else.
func TestCitationHasTheVersion(t *testing.T) {
	find := func(pattern string, name ...string) string {
		data, err := os.ReadFile(filepath.Join(append([]string{root}, name...)...))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindStringSubmatch(string(data))
		if m == nil {
			t.Fatalf("%v has no line %s", name, pattern)
		}
		return m[1]
	}
	version := find(`(?m)^__version__ = "([^"]+)"$`, "python", "src", "clustergym", "_version.py")
	if got := find(`(?m)^version: (\S+)$`, "CITATION.cff"); got != version {
		t.Errorf("CITATION.cff has version %s, the package %s", got, version)
	}
	for _, key := range []string{"cff-version: (1.2.0)", "message: (.+)", "title: (.+)", "license: (Apache-2.0)",
		`authors:\n  - name: (.+)`} {
		find("(?m)^"+key+"$", "CITATION.cff")
	}
}
