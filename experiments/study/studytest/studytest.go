// Package studytest runs studies in tests.
package studytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/experiments/study"
)

// Small runs the quick form of s with one worker and with three, which must write the same bytes: its rows, results and
// tables, and the figures that are named. It returns the report and these files, one after the other. The recorded
// figures of s are not those of small settings, so nothing is compared with them.
func Small(t *testing.T, s study.Study, figures ...string) (*study.Report, string) {
	t.Helper()
	s.Expected = nil
	var (
		r    *study.Report
		want string
	)
	for _, workers := range []int{1, 3} {
		dir := t.TempDir()
		var err error
		r, err = study.Run(t.Context(), s, study.Options{
			Plan: study.Plan{Quick: true, Workers: workers}, Dir: dir,
			Now: func() time.Time { return time.Unix(0, 0) },
		})
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		names := []string{"rows.csv", "results.csv", "table.txt"}
		for _, f := range figures {
			names = append(names, filepath.Join("figures", f+".svg"))
		}
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
		if want == "" {
			want = all.String()
		} else if all.String() != want {
			t.Error("three workers give other figures than one")
		}
	}
	return r, want
}
