package sia

import (
	"errors"
	"io"
	"strings"
	"testing"

	"clustergym/traces"
)

func TestATableIsReadByTheNamesOfItsColumns(t *testing.T) {
	text := "\ufeff\n x ,b,\"a\"\r\n1,2, 3 \n\n\"4\",\"5,\"\"\",6\r\n\r\n \n"
	d, err := newTable(strings.NewReader(text), "t.csv", []string{"a", "b", "c"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][2]string{{"3", "2"}, {"6", `5,"`}} {
		if err := d.next(); err != nil || string(d.cell(0)) != want[0] || string(d.cell(1)) != want[1] || d.cell(2) != nil {
			t.Errorf("%q, %q, %q, %v; want %q", d.cell(0), d.cell(1), d.cell(2), err, want)
		}
	}
	if err := d.next(); err != io.EOF {
		t.Errorf("%v at the end", err)
	}
}

func TestFaultsOfATableSayWhereAndWhatWouldBeRight(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", `t.csv:1: got "", want a header with a,b`},
		"blank":             {"\n \n", `t.csv:1: got "", want a header with a,b`},
		"two missing":       {"c,x\n", `t.csv:1: got "c,x", want a header with also a, b`},
		"twice":             {"a,b,a\n", `t.csv:1: a: got "a", want each column once in the header`},
		"a field too few":   {"a,b\n\n1\n", `t.csv:3: got "1 fields", want 2, as in the header`},
		"a field too many":  {"a,b\n1,2,3\n", `t.csv:2: got "3 fields", want 2, as in the header`},
		"quote in the text": {"a,b\n1,2\"3\n", `t.csv:2: got "1,2\"3", want quotes around whole fields`},
		"an open quote":     {"a,b\n1,\"2\n3\"\n", `t.csv:2: got "1,\"2", want quotes around whole fields, closed in the same line`},
	} {
		d, err := newTable(strings.NewReader(c.text), "t.csv", []string{"a", "b", "c"}, 2)
		if err == nil {
			err = d.next()
		}
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}
