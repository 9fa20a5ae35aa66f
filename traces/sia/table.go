package sia

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strings"

	"clustergym/traces"
)

// table reads a CSV file row by row, by the names of its columns.
type table struct {
	lines  *traces.Lines
	names  []string // of the columns that are used, those that must be there first
	at     []int    // where each stands in a row, -1 = not there
	fields [][]byte // of the row read last
}

// newTable reads the header. The first required of names must be in it, all that are missing are named at once;
// a column that stands twice is a fault, one that is not in names is passed over.
func newTable(r io.Reader, file string, names []string, required int) (*table, error) {
	t := &table{lines: traces.NewLines(r, file), names: names, at: make([]int, len(names))}
	want := "a header with " + strings.Join(names[:required], ",")
	if err := t.read(); err == io.EOF {
		return nil, &traces.RowError{File: file, Line: 1, Want: want}
	} else if err != nil {
		return nil, err
	}
	for c := range t.at {
		t.at[c] = -1
	}
	for i, f := range t.fields {
		for c, name := range names {
			if string(bytes.TrimSpace(f)) != name {
				continue
			}
			if t.at[c] >= 0 {
				return nil, t.lines.Fault(name, name, "each column once in the header")
			}
			t.at[c] = i
		}
	}
	var missing []string
	for c, i := range t.at[:required] {
		if i < 0 {
			missing = append(missing, names[c])
		}
	}
	if missing != nil {
		return nil, t.lines.Fault("", string(bytes.Join(t.fields, []byte{','})), "a header with also "+strings.Join(missing, ", "))
	}
	return t, nil
}

// next reads the next row, io.EOF after the last.
func (t *table) next() error {
	width := len(t.fields)
	if err := t.read(); err != nil {
		return err
	}
	if len(t.fields) != width {
		return t.lines.Fault("", fmt.Sprintf("%d fields", len(t.fields)), fmt.Sprintf("%d, as in the header", width))
	}
	return nil
}

// read cuts the next line that is not blank into fields. Quotes are those of RFC 4180, but within one line: no
// value of this format has a line end in it.
func (t *table) read() error {
	var line []byte
	for len(bytes.TrimSpace(line)) == 0 {
		var err error
		if line, err = t.lines.Next(); err != nil {
			return err
		}
	}
	t.fields = t.fields[:0]
	if bytes.IndexByte(line, '"') >= 0 {
		row, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			return t.lines.Fault("", string(line), "quotes around whole fields, closed in the same line, those inside written twice")
		}
		for _, f := range row {
			t.fields = append(t.fields, []byte(f))
		}
		return nil
	}
	for more := true; more; {
		var f []byte
		f, line, more = bytes.Cut(line, []byte{','})
		t.fields = append(t.fields, f)
	}
	return nil
}

// cell is a column's value without blanks around it, nil where the file has no such column.
func (t *table) cell(col int) []byte {
	if t.at[col] < 0 {
		return nil
	}
	return bytes.TrimSpace(t.fields[t.at[col]])
}

func (t *table) fault(col int, want string) error {
	return t.lines.Fault(t.names[col], string(t.cell(col)), want)
}

// whole reads a whole number from lo to hi; a hi of math.MaxInt64 is no limit worth telling.
func (t *table) whole(col int, lo, hi int64) (int64, error) {
	v, exact, err := traces.Decimal(string(t.cell(col)), 0)
	if err == nil && exact && v >= lo && v <= hi {
		return v, nil
	}
	if hi == math.MaxInt64 {
		return 0, t.fault(col, fmt.Sprintf("a whole number, %d or more", lo))
	}
	return 0, t.fault(col, fmt.Sprintf("a whole number from %d to %d", lo, hi))
}

// hasHeader says whether the first line of head names the first required of names.
func hasHeader(head []byte, names []string, required int) bool {
	_, err := newTable(bytes.NewReader(head), "", names, required)
	return err == nil
}

// maxGPUs bounds a gang, so that sums of demands in thousandths stay far inside an int64.
const maxGPUs = 1 << 30
