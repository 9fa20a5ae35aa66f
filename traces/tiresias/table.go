package tiresias

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

// table reads the rows of a CSV file (RFC 4180, without line breaks inside fields) by the names of its columns.
type table struct {
	lines   *traces.Lines
	columns []string // of the header, blanks around them removed
	fields  [][]byte // of the row read last, valid until the next
	text    []byte   // fields that stood in quotes, without them
}

// newTable reads the header, in which the required columns must stand and no column may stand twice.
func newTable(r io.Reader, file string, required ...string) (*table, error) {
	t := &table{lines: traces.NewLines(r, file)}
	line, err := t.lines.Next()
	if err == io.EOF {
		return nil, &traces.RowError{File: file, Line: 1, Want: "a header with " + strings.Join(required, ", ")}
	} else if err != nil {
		return nil, err
	}
	if err := t.split(line); err != nil {
		return nil, err
	}
	for _, f := range t.fields {
		name := string(bytes.TrimSpace(f))
		if slices.Contains(t.columns, name) {
			return nil, t.lines.Fault(name, name, "each column once in the header")
		}
		t.columns = append(t.columns, name)
	}
	var missing []string
	for _, name := range required {
		if t.column(name) < 0 {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, t.lines.Fault("", string(line), "a header with also "+strings.Join(missing, ", "))
	}
	return t, nil
}

// column is the index of a column, -1 where the header does not have it.
func (t *table) column(name string) int { return slices.Index(t.columns, name) }

// next reads a row; blank lines are passed over. io.EOF at the end.
func (t *table) next() error {
	var line []byte
	for len(bytes.TrimSpace(line)) == 0 {
		var err error
		if line, err = t.lines.Next(); err != nil {
			return err
		}
	}
	if err := t.split(line); err != nil {
		return err
	}
	if n := len(t.fields); n != len(t.columns) {
		return t.lines.Fault("", fmt.Sprintf("%d fields", n), fmt.Sprintf("%d, as in the header", len(t.columns)))
	}
	return nil
}

func (t *table) split(line []byte) error {
	t.fields, t.text = t.fields[:0], t.text[:0]
	for {
		if len(line) == 0 || line[0] != '"' {
			f, rest, more := bytes.Cut(line, []byte{','})
			if bytes.IndexByte(f, '"') >= 0 {
				return t.lines.Fault("", string(f), "quotes around the whole field, those inside written twice")
			}
			t.fields = append(t.fields, f)
			if !more {
				return nil
			}
			line = rest
			continue
		}
		from, rest := len(t.text), line[1:]
		for {
			f, after, closed := bytes.Cut(rest, []byte{'"'})
			if !closed {
				return t.lines.Fault("", string(line), "a closing quote in the same line")
			}
			t.text, rest = append(t.text, f...), after
			if len(rest) == 0 || rest[0] != '"' {
				break
			}
			t.text, rest = append(t.text, '"'), rest[1:]
		}
		t.fields = append(t.fields, t.text[from:]) // stays as it is when t.text moves on
		if len(rest) == 0 {
			return nil
		}
		if rest[0] != ',' {
			return t.lines.Fault("", string(rest), "a comma or the end of the line after a closing quote")
		}
		line = rest[1:]
	}
}

// cell is the current row's value in a column, blanks around it removed; nil for column -1.
func (t *table) cell(col int) []byte {
	if col < 0 {
		return nil
	}
	return bytes.TrimSpace(t.fields[col])
}

func (t *table) fault(col int, want string) error {
	return t.lines.Fault(t.columns[col], string(t.fields[col]), want)
}

// number reads 10^places times a decimal number of 0 to most; without places it must be whole.
func (t *table) number(col, places int, most int64, want string) (int64, error) {
	v, exact, err := traces.Decimal(string(t.cell(col)), places)
	if err != nil || v < 0 || v > most || places == 0 && !exact {
		return 0, t.fault(col, want)
	}
	return v, nil
}

// seconds reads a time of 0 or more.
func (t *table) seconds(col int) (time.Duration, error) {
	v, err := t.number(col, 9, math.MaxInt64, "seconds, 0 or more and below 292 years")
	return time.Duration(v), err
}

// header says whether head, the first bytes of a file, starts with a line of columns among which are all of
// required and, besides them, none but optional ones.
func header(head []byte, required, optional []string) bool {
	t, err := newTable(bytes.NewReader(head), "", required...)
	return err == nil && !slices.ContainsFunc(t.columns, func(c string) bool {
		return !slices.Contains(required, c) && !slices.Contains(optional, c)
	})
}
