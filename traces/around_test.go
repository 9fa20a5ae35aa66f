package traces

import (
	"io"
	"strings"
	"testing"
)

// whole returns the rows of a table, joined, by the names a and b.
func whole(text string) (string, error) {
	t, err := OpenTable(strings.NewReader(text), "t.csv", TableOptions{Text: true, Delimiter: func(h []byte) (byte, bool) {
		for _, c := range []byte(",;|\t") {
			if strings.IndexByte(string(h), c) >= 0 {
				return c, false
			}
		}
		return ',', false
	}}, "a", "b")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for {
		if err := t.Next(); err == io.EOF {
			return out.String(), nil
		} else if err != nil {
			return out.String(), err
		}
		out.Write(t.Cell(t.Column("a")))
		out.WriteByte('/')
		out.Write(t.Cell(t.Column("b")))
		out.WriteByte('\n')
	}
}

func TestWhatProgramsWriteAroundATableIsNoRow(t *testing.T) {
	const rows = "1/2\n3/4\n"
	for name, c := range map[string]struct{ text, want string }{
		"sep": {"sep=;\na;b\n1;2\n3;4\n", rows}, "SEP in quotes": {"\ufeff\"SEP=,\"\r\na,b\r\n1,2\r\n3,4\r\n", rows},
		"sep of a tab": {"sep=\t\na\tb\n1\t2\n3\t4\n", rows},
		"a rare sep":   {"sep=^\na^b\n1^2\n3^4\n", rows}, "CR only": {"a,b\r1,2\r3,4\r", rows},
		"CR only, no last": {"a,b\r1,2\r3,4", rows}, "CR only, sep": {"sep=;\ra;b\r1;2\r3;4", rows},
		"comments":                     {"# exported\n#\n# by ops\na,b\n1,2\n# half\n3,4\n# end of export, 2, rows\n", rows},
		"a comment that ends the file": {"a,b\n1,2\n3,4\n# end", rows},
		"a comment of as many fields before a header": {"# x\na,b\n1,2\n3,4\n", rows},
		"ids with #":     {"a,b\n#1,2\n#3,4\n", "#1/2\n#3/4\n"},
		"a quoted break": {"a,b\n#1,\"x\ny\"\n", "#1/x\ny\n"},
		"psql":           {" a | b \n---+---\n 1 | 2\n 3 | 4\n(2 rows)\n\n", rows},
		"psql, one row":  {"a,b\n1,2\n(1 row)\n", "1/2\n"},
		"mysql":          {"+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n| 3 | 4 |\n+---+---+\n", rows},
		"Markdown":       {"| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n", rows},
	} {
		if got, err := whole(c.text); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestAHeaderMayBeginWithAHash(t *testing.T) {
	for _, text := range []string{"#n,a,b\n0,1,2\n", "#n,a,b\n\"x,y\",1,2\n", "#n,a,b\n\"x\ny\",1,2\n",
		"# made\n#n,a,b\n0,1,2\n"} {
		if got, err := whole(text); got != "1/2\n" || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	d, err := NewTable(strings.NewReader("#n,a\n\n0,1\n2\n"), "t")
	if err != nil || d.Next() != nil || d.Line() != 3 {
		t.Fatalf("%v", err)
	}
	if err := d.Next(); err == nil || err.Error() != `t:4: got "1 fields", want 2, as in the header` {
		t.Errorf("%v", err)
	}
}

func TestATableThatIsNotWholeIsAFault(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n1,2\n(3 rows)\n":      `t.csv:3: got "(3 rows)", want (1 row), the number of rows before it; the file is not complete`,
		"a,b\n1,2\n(1 row)\n3,4\n":  `t.csv:4: got "a row after the number of rows", want the end of the file`,
		"a,b\n#1,2\n#3\n":           `t.csv:3: got "1 fields", want 2`,
		"a,b\n1,2\nthe end\n":       `t.csv:3: got "1 fields", want 2`,
		"a,b\n1,2\n(some rows)\n":   `t.csv:3: got "1 fields", want 2`,
		"sep=;\na;b\n1;2\n3\n":      `t.csv:4: got "1 fields", want 2`,
		"# c\n\na,b\n1,2\n# d\n3\n": `t.csv:6: got "1 fields", want 2`,
		"a,b\r1,2\r3\r":             `t.csv:3: got "1 fields", want 2`,
		"sep=;\n":                   `t.csv:1: got "", want a header with a, b`,
		"# only a comment":          `t.csv:1: got "# only a comment", want a header with also a, b`,
		"a,b\n-----\n":              `t.csv:2: got "1 fields", want 2`,
	} {
		if _, err := whole(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

func TestTheHeaderOfAFile(t *testing.T) {
	for text, want := range map[string]string{"\ufeff\n a,b \r\n1,2": " a,b ", "sep=;\r\n# x\r\na;b": "a;b",
		"a,b\r1,2": "a,b", "+--+--+\n|a|b|\n": "|a|b|", "": ""} {
		if got := string(HeaderLine([]byte(text))); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
