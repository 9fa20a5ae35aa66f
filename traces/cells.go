package traces

import (
	"io"
	"time"
)

// Cells reads a table by the columns that a format knows: col is the index in the list of their names. It keeps the
// first fault in a cell, so that a reader asks once for each row, with Err, whether all cells were right; after a fault
// the other methods return what they find, or 0. Reading a row allocates nothing. Not safe for concurrent use.
type Cells struct {
	t    *Table
	at   []int // index of each name's column in the header; -1 = absent
	text Names
	err  error
}

// OpenCells reads the header of r, which must have the first required of names, and may have the others. file is the
// name used in messages.
func OpenCells(r io.Reader, file string, names []string, required int) (*Cells, error) {
	t, err := NewTable(r, file, names[:required]...)
	if err != nil {
		return nil, err
	}
	return NewCells(t, names), nil
}

// NewCells reads the rows of t by names, of which the header may lack some.
func NewCells(t *Table, names []string) *Cells { return &Cells{t: t, at: t.At(names...)} }

// Next reads the next row and returns io.EOF after the last. After a fault it returns that.
func (c *Cells) Next() error {
	if c.err == nil {
		c.err = c.t.Next()
	}
	return c.err
}

// Err returns the first fault; io.EOF after the last row.
func (c *Cells) Err() error { return c.err }

// Line returns the number of the line in which the row read last ends, counted from 1.
func (c *Cells) Line() int { return c.t.Line() }

// Has reports whether the file has the column.
func (c *Cells) Has(col int) bool { return c.at[col] >= 0 }

// Text returns a cell without the blanks around it, nil where the file lacks the column. The bytes are valid until the
// next row.
func (c *Cells) Text(col int) []byte { return c.t.Text(c.at[col]) }

// Name returns Text as a string, the same one for equal cells. Cells that differ in each row, such as ids, are better
// converted by string.
func (c *Cells) Name(col int) string { return c.text.Get(c.Text(col)) }

// Intern returns b as a string, the same one for equal bytes.
func (c *Cells) Intern(b []byte) string { return c.text.Get(b) }

// Given reports whether a cell holds more than blanks; it is false where the file lacks the column.
func (c *Cells) Given(col int) bool { return c.t.Given(c.at[col]) }

// Stated reports whether a cell holds something else than a word for "not there" (see NotGiven).
func (c *Cells) Stated(col int) bool { return !NotGiven(c.Text(col)) }

// Fail records a fault in a cell: want says what would be right.
func (c *Cells) Fail(col int, want string) {
	if c.err == nil {
		c.err = c.t.Fault(c.at[col], want)
	}
}

// Decimal is Table.Decimal; ok is false if the cell holds no number.
func (c *Cells) Decimal(col, places int) (v int64, exact, ok bool) {
	v, exact, err := c.t.Decimal(c.at[col], places)
	return v, exact, err == nil
}

// Number reads a decimal number from lo to hi as Table.Number does.
func (c *Cells) Number(col, places int, lo, hi int64, want string) int64 {
	v, err := c.t.Number(c.at[col], places, lo, hi, want)
	c.keep(err)
	return v
}

// Whole reads a whole number from lo to hi as Table.Whole does.
func (c *Cells) Whole(col int, lo, hi int64) int64 {
	v, err := c.t.Whole(c.at[col], lo, hi)
	c.keep(err)
	return v
}

// GPUs reads a gang of whole GPUs, least of them or more: Job.GPUs and Job.GPUMilli.
func (c *Cells) GPUs(col int, least int64) (gpus, milli int) {
	want := "a whole number of GPUs, 1 or more"
	if least == 0 {
		want = "a whole number of GPUs, 0 or more"
	}
	return int(c.Number(col, 0, least, MaxGPUs, want)), 1000
}

// Seconds reads a time in seconds, 0 or more.
func (c *Cells) Seconds(col int) time.Duration {
	d, err := c.t.Seconds(c.at[col])
	c.keep(err)
	return d
}

func (c *Cells) keep(err error) {
	if c.err == nil {
		c.err = err
	}
}
