package traces

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// around is what a Table keeps of the things that programs write around the rows of a table: the separator's name of
// Excel, comments, the lines that psql, mysql and Markdown draw, and psql's number of rows.
type around struct {
	sep     byte   // that a first line such as "sep=;" names; 0 = none
	ahead   []byte // a row read to find out whether the line before it is the header
	aheadAt int    // its line, 0 = none
	hashed  bool   // a row began with #, so that no later one is a comment
	aligned bool   // lines are drawn, so cells have blanks around them
	rows    int    // read so far
}

// HeaderLine returns the line of head, the first bytes of an unpacked file, that a Table takes for its header: the
// first that is not blank, that does not name the separator ("sep=;"), that is no comment with # and that is not drawn
// ("-----+-----"). It has no line end and no byte order mark; nil = there is none.
func HeaderLine(head []byte) []byte {
	t := &Table{lines: NewLines(bytes.NewReader(head), ""), delimiter: ','}
	line, err := t.header(&TableOptions{})
	if err != nil {
		return nil
	}
	return bytes.Clone(line)
}

// header returns the line of the header.
func (t *Table) header(o *TableOptions) ([]byte, error) {
	line, err := t.line()
	if err == nil && t.lines.Line() == 1 {
		if t.sep = separator(line); t.sep != 0 {
			line, err = t.line()
		}
	}
	for err == nil && line[0] == '#' {
		// A comment, unless the next line has as many fields.
		mark, at := bytes.Clone(line), t.lines.Line()
		if line, err = t.line(); err == io.EOF {
			return mark, nil
		} else if err != nil || line[0] == '#' {
			continue
		}
		delimiter := t.delimiter
		if o.Delimiter != nil {
			delimiter, _ = o.Delimiter(mark)
		}
		if n, next := t.width(mark, delimiter), t.width(line, delimiter); n > 1 && (next == n || next < 0) {
			t.ahead, t.aheadAt = bytes.Clone(line), t.lines.line
			t.lines.line = at
			return mark, nil
		}
	}
	return line, err
}

// separator returns what a line such as "sep=;" names, 0 if it is another line.
func separator(line []byte) byte {
	if line = trim(bytes.Trim(trim(line), `"`)); len(line) == len("sep=;") && bytes.EqualFold(line[:4], []byte("sep=")) {
		return line[4]
	}
	if bytes.EqualFold(line, []byte("sep=")) { // a tab, which is a blank
		return '\t'
	}
	return 0
}

// next reads the row ahead, or the next row.
func (t *Table) next() error {
	if t.aheadAt == 0 {
		return t.read()
	}
	t.lines.line, t.aheadAt = t.aheadAt, 0
	return t.split(t.ahead)
}

// comment reports whether a line that begins with # is no row: it does not have the fields of one.
func (t *Table) comment(line []byte) bool {
	if t.columns == nil || t.hashed {
		return false
	}
	n := t.width(line, t.delimiter)
	// the row may go on after the line
	if n == len(t.columns) || n < 0 && t.breaks && bytes.Count(line, []byte(`"`))%2 == 1 {
		t.hashed = true
		return false
	}
	return true
}

// width returns the number of fields of a line, -1 if its quotes are not those of fields.
func (t *Table) width(line []byte, delimiter byte) int {
	row := Table{lines: t.lines, delimiter: delimiter, raw: t.raw}
	if row.split(line) != nil {
		return -1
	}
	return len(row.fields)
}

// drawn reports whether a line holds nothing but what is drawn between the rows of a table, as in "-----+-----" or
// "|---|---|".
func drawn(line []byte) bool {
	lines, crosses := false, false
	for i, c := range line {
		switch c {
		case '-', '=':
			lines = lines || i > 0 && line[i-1] == c
		case '+', '|':
			crosses = true
		case ' ', '\t', ':':
		default:
			return false
		}
	}
	return lines && crosses
}

// footer reports whether the row read last is psql's number of rows, "(2 rows)".
func (t *Table) footer() bool {
	b := trim(t.fields[0])
	b, ok := bytes.CutPrefix(b, []byte("("))
	b, all := bytes.CutSuffix(b, []byte(")"))
	n, word, two := bytes.Cut(b, []byte(" "))
	_, err := strconv.Atoi(string(n))
	return ok && all && two && err == nil && (string(word) == "row" || string(word) == "rows")
}

// after checks what comes with and after a footer, and returns io.EOF if all is well.
func (t *Table) after() error {
	b, said := trim(t.fields[0]), fmt.Sprintf("(%d rows)", t.rows)
	if t.rows == 1 {
		said = "(1 row)"
	}
	if string(b) != said {
		return t.FaultIn("", string(b), said+", the number of rows before it; the file is not complete")
	}
	if err := t.next(); err != nil {
		return err
	}
	return t.FaultIn("", "a row after the number of rows", "the end of the file")
}
