package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Mistake marks an error as the user's: a name, a value or a file that the user chose and can correct. The command line
// exits with code 2, and no worker tries a task again that ends with one.
type Mistake struct{ Err error }

// Mistakef returns a *Mistake with the text that format and args make, as Errorf does.
func Mistakef(format string, args ...any) error { return &Mistake{Errorf(format, args...)} }

// Error returns the text of Err.
func (m *Mistake) Error() string { return m.Err.Error() }

// Unwrap returns Err.
func (m *Mistake) Unwrap() error { return m.Err }

// IsMistake reports whether err is, or wraps, a *Mistake.
func IsMistake(err error) bool {
	_, is := errors.AsType[*Mistake](err)
	return is
}

// ErrInterrupted is wrapped by the error of work whose context was cancelled and whose finished part is saved. The text
// says how to continue.
var ErrInterrupted = errors.New("interrupted")

// Key is a setting that a message names, such as "listen". Packages do not know how a user set it: the command line
// shows it as a flag (Text), other callers by its name.
type Key string

// keyed is an error whose text names keys.
type keyed struct {
	error  // with the keys by their names
	format string
	args   []any
}

// Unwrap leads to what the text wraps.
func (k *keyed) Unwrap() error { return k.error }

// Errorf is fmt.Errorf for messages that name keys: Text can show the Keys among args in another form.
func Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	for _, a := range args {
		switch a.(type) {
		case Key, error:
			return &keyed{err, format, args}
		}
	}
	return err
}

// Text returns the text of err with each Key as show returns it.
func Text(err error, show func(Key) string) string {
	switch e := err.(type) {
	case *Mistake:
		return Text(e.Err, show)
	case *keyed:
		args := make([]any, len(e.args))
		for i, a := range e.args {
			switch a := a.(type) {
			case Key:
				args[i] = show(a)
			case error:
				args[i] = Text(a, show)
			default:
				args[i] = a
			}
		}
		return fmt.Sprintf(strings.ReplaceAll(e.format, "%w", "%v"), args...)
	case interface{ Unwrap() []error }:
		text := err.Error()
		for _, inner := range e.Unwrap() {
			text = strings.Replace(text, inner.Error(), Text(inner, show), 1)
		}
		return text
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return strings.Replace(err.Error(), inner.Error(), Text(inner, show), 1)
		}
	}
	return err.Error()
}
