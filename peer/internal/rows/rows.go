// Package rows reads the tables of the programs that are rebuilt in package peer.
package rows

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"clustergym/traces"
)

// Reader reads rows of a CSV by the places of the columns that it was opened with, and keeps the first error, which
// names line, column and value.
type Reader struct {
	t   *traces.Table
	at  []int
	err error
}

// Open reads a header, which must have the columns. Others are ignored. name stands for the file in messages.
func Open(r io.Reader, name string, columns ...string) (*Reader, error) {
	t, err := traces.OpenTable(r, name, traces.TableOptions{Text: true}, columns...)
	if err != nil {
		return nil, err
	}
	return &Reader{t: t, at: t.At(columns...)}, nil
}

// Next reads the next row and reports whether there is one.
func (r *Reader) Next() bool {
	if r.err != nil {
		return false
	}
	if err := r.t.Next(); err != nil {
		if !errors.Is(err, io.EOF) {
			r.err = err
		}
		return false
	}
	return true
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Fail records what is wrong with a column of the row.
func (r *Reader) Fail(column int, want string) {
	if r.err == nil {
		r.err = r.t.Fault(r.at[column], want)
	}
}

// Text returns a name.
func (r *Reader) Text(column int) string {
	s := string(r.t.Text(r.at[column]))
	if s == "" {
		r.Fail(column, "a name")
	}
	return s
}

// Whole returns a whole number.
func (r *Reader) Whole(column int, least, most int64) int64 {
	v, err := strconv.ParseInt(string(r.t.Text(r.at[column])), 10, 64)
	if err != nil || v < least || v > most {
		r.Fail(column, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return v
}

// Number returns a finite number; want says in words what is right.
func (r *Reader) Number(column int, least, most float64, want string) float64 {
	v, err := strconv.ParseFloat(string(r.t.Text(r.at[column])), 64)
	if err != nil || !(v >= least && v <= most) || math.IsInf(v, 0) {
		r.Fail(column, want)
	}
	return v
}
