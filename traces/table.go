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

// Table reads a CSV file (RFC 4180) row by row, by the names in its header, for the readers of formats. Cells are
// addressed by the index of their column in the header; Column looks up the index, and -1 stands for a column that the
// file does not have. Reading a row allocates nothing. Not safe for concurrent use.
type Table struct {
	lines     *Lines
	delimiter byte // between fields
	breaks    bool // quoted fields may hold line ends
	raw       bool // quotes are letters like others
	columns   []string
	fields    [][]byte // of the row read last
	row       []byte   // text of a row that had quotes, without the quotes
	ends      []int    // of each field in row
	pointed   []byte   // a number whose decimal comma became a point
	around             // what programs write around tables
}

// TableOptions changes how a table is read. The zero value is that of NewTable.
type TableOptions struct {
	// Delimiter chooses what stands between fields by the header, its first line; nil = a comma. Where it is a semicolon,
	// numbers may have a decimal comma. raw means that no field is quoted: quotes are letters like others.
	Delimiter func(header []byte) (delimiter byte, raw bool)
	// quoted fields may hold line ends; a row longer than MaxLine, such as one whose quote is never closed, is a fault
	Text   bool
	Header string // what the header should have, for the fault of an empty file; "" = the required columns
}

// NewTable reads the header of r, the first line that is not blank, a comment or another thing that programs write
// before a table (see HeaderLine). Columns may come in any order, with blanks around their names; file is the name used
// in messages. A header that lacks required columns (the error names all of them) or repeats a name is a *RowError.
// Each row must be one line: a quote that is not closed in its line is a fault of that line.
func NewTable(r io.Reader, file string, required ...string) (*Table, error) {
	return OpenTable(r, file, TableOptions{}, required...)
}

// OpenTable is NewTable with options.
func OpenTable(r io.Reader, file string, o TableOptions, required ...string) (*Table, error) {
	t := &Table{lines: NewLines(r, file), delimiter: ',', breaks: o.Text}
	line, err := t.header(&o)
	if err == io.EOF {
		if o.Header == "" {
			o.Header = strings.Join(required, ", ")
		}
		return nil, &RowError{File: file, Line: 1, Want: "a header with " + o.Header}
	} else if err != nil {
		return nil, err
	}
	if o.Delimiter != nil {
		t.delimiter, t.raw = o.Delimiter(line)
		if t.sep != 0 && bytes.IndexByte(line, t.delimiter) < 0 {
			t.delimiter = t.sep
		}
	}
	if err := t.split(line); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(t.fields))
	for _, f := range t.fields {
		name := string(trim(f))
		if seen[name] && name != "" { // columns without a name are never looked up by name
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

// HasColumns reports whether head, the first bytes of an unpacked file, begins with a header that has all of required;
// it may have other columns too.
func HasColumns(head []byte, required ...string) bool {
	_, err := NewTable(bytes.NewReader(head), "", required...)
	return err == nil
}

// HasHeader reports whether head, the first bytes of an unpacked file, begins with a header that has all of required
// and no other columns than those of optional.
func HasHeader(head []byte, required, optional []string) bool {
	t, err := NewTable(bytes.NewReader(head), "", required...)
	return err == nil && !slices.ContainsFunc(t.columns, func(c string) bool {
		return !slices.Contains(required, c) && !slices.Contains(optional, c)
	})
}

// Columns returns the names in the header, in its order. The caller must not change them.
func (t *Table) Columns() []string { return t.columns }

// Column returns the index of the first column of that name, or -1.
func (t *Table) Column(name string) int { return slices.Index(t.columns, name) }

// At returns Column of each of names.
func (t *Table) At(names ...string) []int {
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = t.Column(name)
	}
	return at
}

// Next reads the next row and returns io.EOF after the last. It skips blank lines. A row with fewer or more fields than
// the header, or with quotes that break RFC 4180, is a *RowError.
func (t *Table) Next() error {
	if err := t.next(); err != nil {
		return err
	}
	if t.aligned {
		for i, f := range t.fields {
			t.fields[i] = trim(f)
		}
	}
	if n := len(t.fields); n != len(t.columns) {
		if n == 1 && t.footer() {
			return t.after()
		}
		return t.FaultIn("", fmt.Sprintf("%d fields", n), fmt.Sprintf("%d, as in the header", len(t.columns)))
	}
	t.rows++
	return nil
}

// Line returns the number of the line in which the row read last ends, counted from 1.
func (t *Table) Line() int { return t.lines.Line() }

// Cell returns the current row's value as written, without the quotes around it; nil for column -1 and before the first
// row. The bytes are valid until the next row.
func (t *Table) Cell(col int) []byte {
	if uint(col) >= uint(len(t.fields)) {
		return nil
	}
	return t.fields[col]
}

// Text returns Cell without the blanks around it.
func (t *Table) Text(col int) []byte { return trim(t.Cell(col)) }

// Given reports whether a cell holds more than blanks; it is false for column -1.
func (t *Table) Given(col int) bool {
	b := t.Cell(col)
	return len(b) > 0 && len(trim(b)) > 0
}

// trim does what bytes.TrimSpace does, at less than half the cost for cells with nothing to trim, which are most.
func trim(b []byte) []byte {
	if n := len(b); n == 0 || b[0]-'!' <= '~'-'!' && b[n-1]-'!' <= '~'-'!' {
		return b
	}
	return bytes.TrimSpace(b)
}

// Decimal reads a number as the function Decimal does. Where fields are separated by semicolons, the decimal point may
// be a comma.
func (t *Table) Decimal(col, places int) (v int64, exact bool, err error) {
	b := t.Text(col)
	if v, ok := digits(b); ok && places < len(powers) { // most numbers
		return v * powers[places], true, nil
	}
	if t.delimiter == ';' {
		b = t.point(b)
	}
	return Decimal(string(b), places)
}

var powers = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// digits reads a number of one to nine digits, which times any of powers fits an int64.
func digits(b []byte) (v int64, ok bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	for _, c := range b {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	return v, true
}

// point replaces the first comma of a number without a point by a point.
func (t *Table) point(b []byte) []byte {
	i := bytes.IndexByte(b, ',')
	if i < 0 || bytes.IndexByte(b, '.') >= 0 {
		return b
	}
	t.pointed = append(t.pointed[:0], b...)
	t.pointed[i] = '.'
	return t.pointed
}

// Number reads a decimal number and returns it times 10^places (see Decimal); the scaled value must be from lo to hi.
// With places 0 the number must be whole, else it is rounded. want is the fault's text for what would be right.
func (t *Table) Number(col, places int, lo, hi int64, want string) (int64, error) {
	v, exact, err := t.Decimal(col, places)
	if err != nil || v < lo || v > hi || places == 0 && !exact {
		return 0, t.Fault(col, want)
	}
	return v, nil
}

// Whole reads a whole number from lo to hi. If hi is math.MaxInt64, a fault does not mention it.
func (t *Table) Whole(col int, lo, hi int64) (int64, error) {
	v, exact, err := t.Decimal(col, 0)
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

// Saying describes a fault of the row read last, or of the header before the first row, in words alone.
func (t *Table) Saying(what string) *RowError {
	return &RowError{File: t.lines.file, Line: t.lines.line, Says: what}
}

// FaultIn describes a fault that is not in a single cell, in the row read last or, before the first row, in the header.
func (t *Table) FaultIn(column, value, want string) *RowError {
	return t.lines.Fault(column, value, want)
}
