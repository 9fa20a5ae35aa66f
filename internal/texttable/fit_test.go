package texttable

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// screen is a terminal of so many characters.
type screen struct {
	strings.Builder
	width int
}

func (s *screen) Width() int { return s.width }

func longest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
	}
	return n
}

var (
	wideHeader = []string{"policy", "JCT mean (h)", "JCT p50 (min)", "bounded slowdown", "GPUs used", "preemptions"}
	wideRows   = [][]string{
		{"fifo+strict", "290.65", "17.94", "7646.30", "67.4 %", "0"},
		{"fifo+strict+conservative", "248.63", "16.10", "5100.96", "68.5 %", "12"},
		{"fifo+strict+conservatiwe", "248.63", "16.10", "5100.96", "68.5 %", "12"},
	}
)

func TestATableFitsTheTerminal(t *testing.T) {
	for width := 1; width <= 120; width++ {
		s := &screen{width: width}
		if err := Write(s, wideHeader, wideRows, 1, "JCT p50", "GPUs used"); err != nil {
			t.Fatal(err)
		}
		if n := longest(s.String()); n > width {
			t.Errorf("a line of %d characters on a terminal of %d:\n%s", n, width, s.String())
		}
	}
	var plain strings.Builder
	if err := Write(&plain, wideHeader, wideRows, 1); err != nil {
		t.Fatal(err)
	}
	enough := &screen{width: longest(plain.String())}
	if err := Write(enough, wideHeader, wideRows, 1); err != nil {
		t.Fatal(err)
	}
	if enough.String() != plain.String() {
		t.Errorf("a table that fits is changed:\n%s\nwant\n%s", enough.String(), plain.String())
	}
}

// First headers are broken and names shortened, then the least important columns go, and the note names them in the
// order of the table.
func TestWhatATableGivesUpFirst(t *testing.T) {
	for width, want := range map[int]string{
		60: `policy             JCT    JCT   bounded    GPUs  preemptions
                  mean    p50  slowdown    used
                   (h)  (min)
--------------  ------  -----  --------  ------  -----------
fifo+strict     290.65  17.94   7646.30  67.4 %            0
fifo+st…vative  248.63  16.10   5100.96  68.5 %           12
fifo+st…vatiwe  248.63  16.10   5100.96  68.5 %           12
`,
		34: `policy               JCT   bounded
                    mean  slowdown
                     (h)
----------------  ------  --------
fifo+strict       290.65   7646.30
fifo+str…rvative  248.63   5100.96
fifo+str…rvatiwe  248.63   5100.96

Left out to fit 34 characters a
line: JCT p50 (min), GPUs used,
preemptions. --json has them.
`,
	} {
		s := &screen{width: width}
		if err := Write(s, wideHeader, wideRows, 1, "JCT p50", "GPUs used"); err != nil {
			t.Fatal(err)
		}
		if s.String() != want {
			t.Errorf("at %d:\n%s\nwant\n%s", width, s.String(), want)
		}
	}
}

func TestTextsAreBrokenBetweenWords(t *testing.T) {
	s := &screen{width: 50}
	rows := [][]string{{"quickstart", "the run that gymctl train makes without a file"}, {"bandit-maml", "a bandit"}}
	if err := Write(s, []string{"preset", "what it is"}, rows, 2); err != nil {
		t.Fatal(err)
	}
	const want = `preset       what it is
-----------  ---------------------------------
quickstart   the run that gymctl train makes
             without a file
bandit-maml  a bandit
`
	if got := s.String(); got != strings.ReplaceAll(want, "---------------------------------\n",
		"-------------------------------\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestShortKeepsBothEnds(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"fifo+strict", 11, "fifo+strict"}, {"fifo+strict", 10, "fifo+…rict"}, {"fifo+strict", 3, "f…t"},
		{"größe", 4, "gr…e"}, {"ab", 1, "a"}, {"ab", 0, ""},
	} {
		if got := Short(c.s, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.s, c.width, got, c.want)
		}
	}
}

func TestSentencesFitAPage(t *testing.T) {
	const text = "workload   synth:philly (seed 1): 200 jobs, sha256 abc\n\nIQM over windows with its\ninterval. Two words.\n  indented text that is long\nx\n"
	var b strings.Builder
	p := NewPage(&b, func() int { return 24 })
	for _, piece := range []string{text[:5], text[5:60], text[60:]} { // wherever it is cut
		if _, err := p.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"workload   synth:philly", "           (seed 1): 200", "           jobs, sha256", "           abc", "",
		"IQM over windows with", "its interval. Two words.",
		"  indented text that is", "  long", "x", "",
	}
	if got := strings.Split(b.String(), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), strings.Join(want, "\n"))
	}
	b.Reset()
	if _, err := NewPage(&b, func() int { return 0 }).Write([]byte(text)); err != nil || b.String() != text {
		t.Errorf("%v: without a width %q, want it as it is", err, b.String())
	}
}
