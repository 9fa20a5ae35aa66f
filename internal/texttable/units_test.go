package texttable

import (
	"math"
	"strings"
	"testing"
)

// cellsOf returns the cells of a column of a table, written as people read it.
func cellsOf(cells ...string) string {
	rows := make([][]string, len(cells))
	for i, c := range cells {
		rows[i] = []string{c}
	}
	OneUnit(rows)
	out := make([]string, len(cells))
	for i := range rows {
		out[i] = rows[i][0]
	}
	return strings.Join(out, " | ")
}

func TestAColumnHasOneUnit(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		cells []string
		want  string
	}{
		{[]string{Time(7596), Time(7164)}, "126.6 min | 119.4 min"}, // of two values the lower one's
		{[]string{Time(7596), Time(7164), Time(7300)}, "2.11 h | 1.99 h | 2.03 h"},
		{[]string{Time(97.91 * 3600), Time(4.5 * 86400)}, "97.91 h | 108.00 h"},
		{[]string{Time(52), Time(100)}, "52 s | 100 s"},
		{[]string{Time(5), Time(7)}, "5 s | 7 s"},
		{[]string{Time(858), Time(900)}, "14.3 min | 15.0 min"},
		{[]string{Time(5), Time(900), Time(1000), Time(1e6)}, "0.083 min | 15.000 min | 16.667 min | 16666.667 min"},
		{[]string{Time(nan), Time(86400 * 9), "now", ""}, "– | 9.0 d | now | "},
		{[]string{Time(math.Inf(1)), Time(60)}, "beyond | 60 s"},
		{[]string{Time(0), Time(0)}, "0 s | 0 s"},
		{[]string{Time(0), Time(7200)}, "0.00 h | 2.00 h"},
		{[]string{TimeSpan(21600, [2]float64{18000, 27000}), Time(9000)}, "6.00 [5.00, 7.50] h | 2.50 h"},
		{[]string{"+" + Time(30), "−" + Time(36000)}, "+30 s | −36000 s"},
		{[]string{Wall(0.0000254)}, "25 µs"}, {[]string{Wall(0.0254)}, "25.4 ms"}, {[]string{Wall(12.34)}, "12.3 s"},
		{[]string{Wall(0.0254), Wall(0.0004), Wall(0.031)}, "25.40 ms | 0.40 ms | 31.00 ms"},
		{[]string{Bytes(15e6), Bytes(17e6), Bytes(2e5)}, "15.00 MB | 17.00 MB | 0.20 MB"},
		{[]string{"no quantity"}, "no quantity"},
		{[]string{"\x00", "\x00t\x01", "\x00tx\x01", "\x00q5\x01"}, "\x00 |  | – | 5 "},
	} {
		if got := cellsOf(c.cells...); got != c.want {
			t.Errorf("%q: got %q, expected %q", c.cells, got, c.want)
		}
	}
}

// Names of others cannot hide what a table says, nor tell a terminal anything.
func TestCellsAreCleaned(t *testing.T) {
	for _, name := range []string{"\x1b[2J", "\x1b]0;title\x07", "\u009b31m", "two\nlines", "over\rwritten", "\u202egnp",
		"\u2066x", "\xff", "\x00t5", "\x01"} {
		var b strings.Builder
		if err := Write(&b, []string{"user", "jobs"}, [][]string{{"a" + name + "b", "1"}}, 1); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if strings.Count(text, "\n") != 3 || strings.ContainsAny(text, "\x1b\x07\u009b\r\u202e\u2066\x00\x01") ||
			!strings.Contains(text, "a\ufffd") && !strings.Contains(text, "two\ufffd") && !strings.Contains(text, "over\ufffd") {
			t.Errorf("%q is written as %q", name, text)
		}
		b.Reset()
		if err := WriteBlocks(&b, 20, []string{"user", "jobs", "more"},
			[][]string{{"a" + name + "b", "1000000000", "2000000000"}}, 1, func(int) bool { return false }); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); strings.ContainsAny(text, "\x1b\x07\u009b\r\u202e\u2066\x00\x01") {
			t.Errorf("%q is written in blocks as %q", name, text)
		}
	}
}

func TestAtMost(t *testing.T) {
	var b strings.Builder
	if err := Write(AtMost(&b, 60), []string{"name", "text"}, [][]string{{"a", strings.Repeat("words ", 60)}}, 2); err !=
		nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 61 {
			t.Errorf("a line of %d characters", len(line))
		}
	}
	if w := WidthOf(AtMost(&screen{width: 40}, 60)); w != 40 {
		t.Errorf("a terminal of 40 characters counts as %d", w)
	}
}
