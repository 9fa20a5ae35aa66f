package traces

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Table reads a CSV file (RFC 4180) row by row, by the names in its header, for the readers of formats. Columns
// are told by their index in the header, which Column finds once; -1 stands for a column that the file does not
// have. Reading a row allocates nothing. Not safe for concurrent use.
type Table struct {
	lines   *Lines
	breaks  bool // quoted fields may hold line ends
	columns []string
	fields  [][]byte // of the row read last
	row     []byte   // text of a row with quotes in it, without them
	ends    []int    // of each field in row
}

// NewTable reads the header of r, the first line that is not blank. Columns may stand in any order, with blanks
// around their names; file is the name that messages give. A header without some of the required columns, all of
// which are named at once, or with a name that stands twice is a *RowError. In a file of this kind a row is a
// line: a quote that is not closed in its line is a fault of that line.
func NewTable(r io.Reader, file string, required ...string) (*Table, error) {
	return newTable(r, file, false, required)
}

// NewTableOfText is NewTable for a file whose quoted fields may hold line ends. A row that is longer than MaxLine,
// as one whose quote is never closed, is a fault.
func NewTableOfText(r io.Reader, file string, required ...string) (*Table, error) {
	return newTable(r, file, true, required)
}

func newTable(r io.Reader, file string, breaks bool, required []string) (*Table, error) {
	t := &Table{lines: NewLines(r, file), breaks: breaks}
	if err := t.read(); err == io.EOF {
		return nil, &RowError{File: file, Line: 1, Want: "a header with " + strings.Join(required, ", ")}
	} else if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(t.fields))
	for _, f := range t.fields {
		name := string(trim(f))
		if seen[name] && name != "" { // columns without a name are not asked for by it
			return nil, t.lines.Fault(name, name, "each column once in the header")
		}
		seen[name] = true
		t.columns = append(t.columns, name)
	}
	var missing []string
	for _, name := range required {
		if !seen[name] {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, t.FaultIn("", strings.Join(t.columns, ","), "a header with also "+strings.Join(missing, ", "))
	}
	t.fields = t.fields[:0]
	return t, nil
}

// HasColumns says whether head, the first bytes of an unpacked file, begins with a header that has all of required
// and whatever else.
func HasColumns(head []byte, required ...string) bool {
	_, err := NewTable(bytes.NewReader(head), "", required...)
	return err == nil
}

// HasHeader says whether head, the first bytes of an unpacked file, begins with a header that has all of required
// and, besides them, none but optional columns.
func HasHeader(head []byte, required, optional []string) bool {
	t, err := NewTable(bytes.NewReader(head), "", required...)
	return err == nil && !slices.ContainsFunc(t.columns, func(c string) bool {
		return !slices.Contains(required, c) && !slices.Contains(optional, c)
	})
}

// Columns are the names in the header, in its order. The caller must not change them.
func (t *Table) Columns() []string { return t.columns }

// Column is the index of the first column of that name, -1 where there is none.
func (t *Table) Column(name string) int { return slices.Index(t.columns, name) }

// At is Column of each of names.
func (t *Table) At(names ...string) []int {
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = t.Column(name)
	}
	return at
}

// Next reads the next row, io.EOF after the last. Blank lines are passed over; a row with fewer or more fields than
// the header, or with quotes that are not those of RFC 4180, is a *RowError.
func (t *Table) Next() error {
	if err := t.read(); err != nil {
		return err
	}
	if n := len(t.fields); n != len(t.columns) {
		return t.FaultIn("", fmt.Sprintf("%d fields", n), fmt.Sprintf("%d, as in the header", len(t.columns)))
	}
	return nil
}

// Line is the number of the line in which the row read last ends, counted from 1.
func (t *Table) Line() int { return t.lines.Line() }

// Cell is the current row's value as it stands, without the quotes around it; nil for column -1 and before the
// first row. The bytes are valid until the next row.
func (t *Table) Cell(col int) []byte {
	if uint(col) >= uint(len(t.fields)) {
		return nil
	}
	return t.fields[col]
}

// Text is Cell without the blanks around it.
func (t *Table) Text(col int) []byte { return trim(t.Cell(col)) }

// Given says whether a cell has more than blanks in it; false for column -1.
func (t *Table) Given(col int) bool {
	b := t.Cell(col)
	return len(b) > 0 && len(trim(b)) > 0
}

// trim is bytes.TrimSpace, at less than half the cost where there is nothing to trim, as in most cells.
func trim(b []byte) []byte {
	if n := len(b); n == 0 || b[0]-'!' <= '~'-'!' && b[n-1]-'!' <= '~'-'!' {
		return b
	}
	return bytes.TrimSpace(b)
}

// Number reads 10^places times a decimal number (see Decimal), from lo to hi after this scaling. Without places it
// must be whole, else it is rounded. want completes the sentence of the fault.
func (t *Table) Number(col, places int, lo, hi int64, want string) (int64, error) {
	v, exact, err := Decimal(string(t.Text(col)), places)
	if err != nil || v < lo || v > hi || places == 0 && !exact {
		return 0, t.Fault(col, want)
	}
	return v, nil
}

// Whole reads a whole number from lo to hi; a hi of math.MaxInt64 is no limit worth telling.
func (t *Table) Whole(col int, lo, hi int64) (int64, error) {
	v, exact, err := Decimal(string(t.Text(col)), 0)
	if err == nil && exact && v >= lo && v <= hi {
		return v, nil
	}
	if hi == math.MaxInt64 {
		return 0, t.Fault(col, fmt.Sprintf("a whole number, %d or more", lo))
	}
	return 0, t.Fault(col, fmt.Sprintf("a whole number from %d to %d", lo, hi))
}

// Seconds reads a time in seconds, 0 or more.
func (t *Table) Seconds(col int) (time.Duration, error) {
	v, err := t.Number(col, 9, 0, math.MaxInt64, "seconds, 0 or more and below 292 years")
	return time.Duration(v), err
}

// Fault describes a fault in a cell of the row read last.
func (t *Table) Fault(col int, want string) *RowError {
	column := ""
	if col >= 0 {
		column = t.columns[col]
	}
	return t.FaultIn(column, string(t.Cell(col)), want)
}

// FaultIn describes a fault of the row read last, or of the header before the first, that is not one cell's.
func (t *Table) FaultIn(column, value, want string) *RowError {
	return t.lines.Fault(column, value, want)
}
