package papers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"clustergym/experiments/study"
	"clustergym/internal/raced"
)

// forms are the plans whose figures expected.csv files record.
var forms = []study.Plan{{Quick: true}, {}, {Quick: true, Data: "traces"}, {Data: "traces"}}

// underHeader matches the line between the header of a table and its rows.
var underHeader = regexp.MustCompile(`(?m)^-+( +-+)*$`)

// A reader's terminal has 120 columns, and no table is so wide that it is written in several blocks. CLUSTERGYM_LOOK
// names a folder that gets the reports, so that people can look at them without computing anything.
func TestRecordedTablesFitATerminal(t *testing.T) {
	drawn(t)
	for _, s := range All() {
		for _, p := range forms {
			r, err := study.Recorded(s, p)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := r.WriteTable(&b); err != nil {
				t.Fatal(err)
			}
			tables := 0
			for _, table := range s.Tables(p) {
				if len(r.Results.Lines(table.Name)) > 0 {
					tables++
				}
			}
			if s.Claims != nil && len(s.Claims(p)) > 0 {
				tables++
			}
			if n := len(underHeader.FindAllString(b.String(), -1)); n != tables {
				t.Errorf("%s, %s: %d tables in %d blocks", s.Name, p.Mode(), tables, n)
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
					t.Errorf("%s, %s: a line of %d characters: %s", s.Name, p.Mode(), n, line)
				}
			}
			if dir := os.Getenv("CLUSTERGYM_LOOK"); dir != "" {
				name := s.Name + "-" + p.Mode()
				if p.Data != "" {
					name += "-data"
				}
				if err := r.WriteTo(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

var aBar = regexp.MustCompile(`text-anchor="end" fill="#[0-9a-f]*" font-size="12"`)

// A figure shows at once what is ours, and has few bars.
func TestFiguresShowOurs(t *testing.T) {
	drawn(t)
	ours := map[string]int{}
	for _, s := range All() {
		for _, p := range forms {
			r, err := study.Recorded(s, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range s.Figures(p) {
				svg := f.SVG(r.Results)
				if n := len(aBar.FindAllString(svg, -1)); n > 12 && f.Kind == study.Bars {
					t.Errorf("%s, %s: figure %s has %d bars", s.Name, p.Mode(), f.Name, n)
				}
				if strings.Contains(svg, `font-weight="700"`) {
					ours[s.Name]++
				} else if svg != "" && len(f.Ours) > 0 {
					t.Logf("%s, %s: figure %s has nothing of %s", s.Name, p.Mode(), f.Name, strings.Join(f.Ours, ", "))
				}
			}
		}
	}
	for _, s := range All() {
		if ours[s.Name] == 0 {
			t.Errorf("%s: no figure shows what is ours", s.Name)
		}
	}
}

// drawn leaves out a test that reads what is recorded and draws it.
func drawn(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine beside those of decompression, in which no race can be; make unit runs this test")
	}
}
