package conformance

import (
	"fmt"

	"clustergym/bridge/wire"
)

// failure ends a claim. The functions of this package panic with it where a test would call Fatal, so that a claim
// reads
// as the exchange of messages that it is; attempt recovers it.
type failure struct{ err error }

// skip is the reason why a claim does not apply. It ends the claim as an error does.
type skip string

func (s skip) Error() string { return string(s) }

func failf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func skipf(format string, args ...any) { panic(failure{skip(fmt.Sprintf(format, args...))}) }

// must ends the claim if err is not nil.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// need returns v, or ends the claim if err is not nil.
func need[T any](v T, err error) T {
	must(err)
	return v
}

// field is need for the fields of a message.
func field[T any](v T, e *wire.Error) T {
	if e != nil {
		panic(failure{e})
	}
	return v
}

// attempt returns what ended the claim in f. Replies are cut up on the assumption that they have the shapes of the
// protocol; where a server breaks one that the claim does not look at, the claim fails in place of the program.
func attempt(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			err = fmt.Errorf("a reply is malformed where the claim does not expect it: %v", r)
		}
	}()
	f()
	return nil
}
