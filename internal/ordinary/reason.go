package ordinary

import (
	"errors"
	"io/fs"
)

// Reason returns err without the operation and path of a file error, for messages that name the path already.
func Reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if o, ok := errors.AsType[*Error](err); ok {
		return &reason{o}
	}
	return err
}

// reason is an error of a file without the file's name.
type reason struct{ of *Error }

func (r *reason) Error() string {
	if errors.Is(r.of, fs.ErrNotExist) {
		return "no such file or directory" // in the words of the system, as for folders
	}
	return r.of.Why
}

// Unwrap returns the error with the name.
func (r *reason) Unwrap() error { return r.of }
