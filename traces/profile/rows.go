package profile

import (
	"io"
	"math"
	"strconv"
	"strings"

	"clustergym/traces"
)

// rows reads a CSV file by the names of its columns, because their order differs between files of one kind, and parses
// the kinds of values in tables of measurements.
type rows struct{ *traces.Table }

// newRows reads the header of r, which must have every column of need.
func newRows(r io.Reader, file string, need ...string) (rows, error) {
	t, err := traces.NewTable(r, file, need...)
	return rows{t}, err
}

// cell returns the value in a column.
func (d rows) cell(column string) string { return string(d.Text(d.Column(column))) }

// name reads a cell that must not be empty.
func (d rows) name(column string) (string, error) {
	if s := d.cell(column); s != "" {
		return s, nil
	}
	return "", d.fault(column, "a name")
}

// number reads a finite number, 0 or more.
func (d rows) number(column string) (float64, error) {
	v, ok := measure(d.cell(column))
	if !ok {
		return 0, d.fault(column, wantMeasure)
	}
	return v, nil
}

// rate reads a throughput. It returns 0 if it was not measured, which the cell says by 0, nan or being empty.
func (d rows) rate(column string) (float64, error) {
	if s := d.cell(column); s == "" || strings.EqualFold(s, "nan") {
		return 0, nil
	}
	v, ok := measure(d.cell(column))
	if !ok {
		return 0, d.fault(column, wantMeasure+", or nan where nothing was measured")
	}
	return v, nil
}

// whole reads a whole number from 1 to hi, which may be written as "8.0".
func (d rows) whole(column string, hi int64) (int64, error) {
	return d.Whole(d.Column(column), 1, hi)
}

func (d rows) fault(column, want string) error { return d.Fault(d.Column(column), want) }

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
