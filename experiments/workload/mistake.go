package workload

import (
	"errors"
	"fmt"
	"io/fs"

	"clustergym/internal/plain"
)

// InputError marks an error as the user's mistake: a name, a value or a file that the user chose and can correct. The
// command line then exits with code 2.
type InputError struct{ Err error }

// Error returns the text of Err.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *InputError) Unwrap() error { return e.Err }

// Mistake returns an *InputError with the text that format and args make, as fmt.Errorf does.
func Mistake(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// Reason returns err without the operation and path of a file error, for messages that name the path already.
func Reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Plural returns "1 " and one for n = 1, otherwise n and many: "1 job", "2 jobs".
func Plural(n int, one, many string) string {
	return plain.Count(n, one, many)
}
