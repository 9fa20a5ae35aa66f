package workload

import (
	"errors"
	"fmt"
	"io/fs"

	"clustergym/internal/ordinary"
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
	if o, ok := errors.AsType[*ordinary.Error](err); ok {
		return &reason{o}
	}
	return err
}

// reason is an error of a file without the file's name.
type reason struct{ of *ordinary.Error }

func (r *reason) Error() string {
	if errors.Is(r.of, fs.ErrNotExist) {
		return "no such file or directory" // in the words of the system, as for folders
	}
	return r.of.Why
}

// Unwrap returns the error with the name.
func (r *reason) Unwrap() error { return r.of }

// Plural returns "1 " and one for n = 1, otherwise n and many: "1 job", "2 jobs".
func Plural(n int, one, many string) string {
	return plain.Count(n, one, many)
}
