package profile

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"clustergym/traces"
)

// rows reads a CSV file by the names of its columns, whose order differs between files of one kind.
type rows struct {
	lines  *traces.Lines
	header []string
	fields []string
}

// newRows reads the header of r and wants every column of need in it.
func newRows(r io.Reader, file string, need ...string) (*rows, error) {
	d := &rows{lines: traces.NewLines(r, file)}
	if err := d.read(); err == io.EOF {
		return nil, &traces.RowError{File: file, Line: 1, Want: "a header with " + strings.Join(need, ",")}
	} else if err != nil {
		return nil, err
	}
	d.header = slices.Clone(d.fields)
	for i, name := range d.header {
		if name != "" && slices.Index(d.header, name) < i {
			return nil, d.lines.Fault(name, name, "each column once in the header")
		}
	}
	var missing []string
	for _, name := range need {
		if !slices.Contains(d.header, name) {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, d.lines.Fault("", strings.Join(d.header, ","), "a header with also "+strings.Join(missing, ", "))
	}
	return d, nil
}

// next reads one row, io.EOF after the last.
func (d *rows) next() error {
	if err := d.read(); err != nil {
		return err
	}
	if len(d.fields) != len(d.header) {
		return d.lines.Fault("", fmt.Sprintf("%d fields", len(d.fields)), fmt.Sprintf("%d, as in the header", len(d.header)))
	}
	return nil
}

// read cuts the next line that is not blank. A quoted field ends in its own line: names of models have no line
// ends in them.
func (d *rows) read() error {
	var line []byte
	for len(line) == 0 {
		var err error
		if line, err = d.lines.Next(); err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
	}
	d.fields = d.fields[:0]
	if bytes.IndexByte(line, '"') < 0 {
		for more := true; more; {
			var f []byte
			f, line, more = bytes.Cut(line, []byte{','})
			d.fields = append(d.fields, string(bytes.TrimSpace(f)))
		}
		return nil
	}
	row, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		return d.lines.Fault("", string(line), "quotes around whole fields, closed in the same line, those inside written twice")
	}
	for _, f := range row {
		d.fields = append(d.fields, strings.TrimSpace(f))
	}
	return nil
}

// cell is the value in a column of the header.
func (d *rows) cell(column string) string { return d.fields[slices.Index(d.header, column)] }

// name reads a cell that must not be empty.
func (d *rows) name(column string) (string, error) {
	if s := d.cell(column); s != "" {
		return s, nil
	}
	return "", d.fault(column, "a name")
}

// number reads a finite number, 0 or more.
func (d *rows) number(column string) (float64, error) {
	v, ok := measure(d.cell(column))
	if !ok {
		return 0, d.fault(column, wantMeasure)
	}
	return v, nil
}

// rate reads a throughput: 0, nan and an empty cell stand for what was not measured, which is 0.
func (d *rows) rate(column string) (float64, error) {
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
func (d *rows) whole(column string, hi int64) (int64, error) {
	v, exact, err := traces.Decimal(d.cell(column), 0)
	if err != nil || !exact || v < 1 || v > hi {
		return 0, d.fault(column, fmt.Sprintf("a whole number from 1 to %d", hi))
	}
	return v, nil
}

func (d *rows) fault(column, want string) error { return d.lines.Fault(column, d.cell(column), want) }

const wantMeasure = "0 or a number from 1e-15 to 1e15"

// measure reads what somebody measured: a finite decimal number, 0 or more. The bound keeps sums and ratios of
// measurements finite.
func measure(s string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 1e15) || v != 0 && v < 1e-15 || strings.ContainsAny(s, "xX_") {
		return 0, false
	}
	return math.Abs(v), true // no -0
}

// The largest numbers of GPUs and examples in a batch that a table may speak of.
const (
	maxGPUs  = 1 << 20
	maxBatch = 1 << 40
)
