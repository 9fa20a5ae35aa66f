package workload

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"clustergym/traces"
)

// QuotingError marks an error from reading a file whose text may quote the file. Its owner may read it; clients of a
// server get Unquoted.
type QuotingError struct{ Err error }

// Error returns the text of Err.
func (e *QuotingError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *QuotingError) Unwrap() error { return e.Err }

// Quoting marks err, unless it says only that a file cannot be opened or that the load was cancelled.
func Quoting(err error) error {
	if _, ok := errors.AsType[*traces.OpenError](err); ok || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &QuotingError{err}
}

// Unquoted returns err, or, in place of an error that may quote the file called name, one that says where in the file
// the fault is and no more.
func Unquoted(err error, name string) error {
	q, ok := errors.AsType[*QuotingError](err)
	if !ok {
		return err
	}
	row, ok := errors.AsType[*traces.RowError](q.Err)
	switch {
	case !ok:
		return fmt.Errorf(
			"%s: this is no file that can be read here, or it has a fault; the server's owner can see which with gymctl", name)
	case documented(row.Column):
		return fmt.Errorf("%s:%d: %s: the value is not one that the format allows", row.File, row.Line, row.Column)
	}
	return fmt.Errorf("%s:%d: the row is not one that the format allows", row.File, row.Line)
}

var words = regexp.MustCompile(`[A-Za-z_0-9]+`)

// documented reports whether the description of a format names column, which otherwise may be a word of the file's own.
func documented(column string) bool {
	for i := range formats {
		for _, text := range []string{formats[i].KnownBy, formats[i].Columns} {
			for _, w := range words.FindAllString(text, -1) {
				if w == column {
					return true
				}
			}
		}
	}
	return false
}
