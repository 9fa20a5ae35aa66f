package profile

import (
	"io"
	"math"
	"strconv"
	"strings"

	"clustergym/traces"
)

// rows reads a CSV file by the names of its columns, because their order differs between files of one kind, and parses
// the kinds of values in tables of measurements. It keeps the first fault, which ends the rows; after it, cells are ""
// or 0.
type rows struct {
	*traces.Table
	err error
}

// newRows reads the header of r, which must have every column of need.
func newRows(r io.Reader, file string, need ...string) (*rows, error) {
	t, err := traces.NewTable(r, file, need...)
	return &rows{Table: t}, err
}

// next reads the next row; false = there is none, or end has a fault.
func (d *rows) next() bool {
	if d.err == nil {
		d.err = d.Next()
	}
	return d.err == nil
}

// end returns the fault that ended the rows, nil at the end of the file.
func (d *rows) end() error {
	if d.err == io.EOF {
		return nil
	}
	return d.err
}

// fail keeps a fault in a cell.
func (d *rows) fail(column, want string) {
	if d.err == nil {
		d.err = d.Fault(d.Column(column), want)
	}
}

// cell returns the value in a column.
func (d *rows) cell(column string) string { return string(d.Text(d.Column(column))) }

// name reads a cell that must not be empty.
func (d *rows) name(column string) string {
	s := d.cell(column)
	if s == "" {
		d.fail(column, "a name")
	}
	return s
}

// number reads a finite number, 0 or more.
func (d *rows) number(column string) float64 {
	v, ok := measure(d.cell(column))
	if !ok {
		d.fail(column, wantMeasure)
	}
	return v
}

// rate reads a throughput. It returns 0 if it was not measured, which the cell says by 0, nan or being empty.
func (d *rows) rate(column string) float64 {
	s := d.cell(column)
	if s == "" || strings.EqualFold(s, "nan") {
		return 0
	}
	v, ok := measure(s)
	if !ok {
		d.fail(column, wantMeasure+", or nan where nothing was measured")
	}
	return v
}

// whole reads a whole number from 1 to hi, which may be written as "8.0".
func (d *rows) whole(column string, hi int64) int64 {
	v, err := d.Whole(d.Column(column), 1, hi)
	if d.err == nil {
		d.err = err
	}
	return v
}

const wantMeasure = "0 or a number from 1e-15 to 1e15"

// measure reads a measurement: a finite decimal number, 0 or more. The bound keeps sums and ratios of measurements
// finite.
func measure(s string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 1e15) || v != 0 && v < 1e-15 || strings.ContainsAny(s, "xX_") {
		return 0, false
	}
	return math.Abs(v), true // no -0
}

// The largest numbers of GPUs and of examples in a batch in a table.
const (
	maxGPUs  = 1 << 20
	maxBatch = 1 << 40
)
