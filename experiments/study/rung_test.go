package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A report says above its tables what their policies know of run times.
func TestReportNamesTheRung(t *testing.T) {
	s, dir := new(toy).study(), t.TempDir()
	s.RunTimes = "history (causal)"
	if _, err := Run(t.Context(), s, Options{Dir: dir, Plan: Plan{Workers: 1}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"table.txt": "\nestimates history (causal)\n",
		"index.html": "<dt>estimates</dt><dd>history (causal)</dd>"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), want) {
			t.Errorf("%s does not have %q:\n%.300s", name, want, b)
		}
	}
}
