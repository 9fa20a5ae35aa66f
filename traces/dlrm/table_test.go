package dlrm

import (
	"io"
	"strings"
	"testing"
)

func TestRowsAreCutAtCommasOutsideQuotes(t *testing.T) {
	tab, err := newTable(strings.NewReader("a, b ,c\n\"x, \"\"y\"\"\",,\" z \"\n\n,\"\",\"\"\n"), "t.csv", "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{`x, "y"`, "", "z"}, {"", "", ""}} {
		if err := tab.next(); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := string(tab.cell(i)); got != w {
				t.Errorf("cell %d: %q, want %q", i, got, w)
			}
		}
	}
	if err := tab.next(); err != io.EOF || tab.column("b") != 1 || tab.column("d") != -1 || tab.cell(-1) != nil {
		t.Errorf("%v, columns %q", err, tab.columns)
	}
}

func TestFaultsInTheCutOfARow(t *testing.T) {
	for text, want := range map[string]string{
		"\"a,1\n":    `t.csv:2: got "\"a,1", want a closing quote in the same line`,
		"\"a\"b,1\n": `t.csv:2: got "b,1", want a comma or the end of the line after a closing quote`,
		"a\"b,1\n":   `t.csv:2: got "a\"b", want quotes around the whole field, those inside written twice`,
		"1,2,3\n":    `t.csv:2: got "3 fields", want 2, as in the header`,
		"1,2\n\n1\n": `t.csv:4: got "1 fields", want 2, as in the header`,
	} {
		tab, err := newTable(strings.NewReader("a,b\n"+text), "t.csv", "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = tab.next()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}
