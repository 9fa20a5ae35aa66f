package fault

import (
	"errors"
	"fmt"
)

// Mistake marks an error as the user's: a name, a value or a file that the user chose and can correct. The command line exits
// with code 2, and no worker tries a task again that ends with one.
type Mistake struct{ Err error }

// Mistakef returns a *Mistake with the text that format and args make, as fmt.Errorf does.
func Mistakef(format string, args ...any) error { return &Mistake{fmt.Errorf(format, args...)} }

// Error returns the text of Err.
func (m *Mistake) Error() string { return m.Err.Error() }

// Unwrap returns Err.
func (m *Mistake) Unwrap() error { return m.Err }

// IsMistake reports whether err is, or wraps, a *Mistake.
func IsMistake(err error) bool {
	_, is := errors.AsType[*Mistake](err)
	return is
}

// ErrInterrupted is wrapped by the error of work whose context was cancelled and whose finished part is saved. The text says how
// to continue.
var ErrInterrupted = errors.New("interrupted")
