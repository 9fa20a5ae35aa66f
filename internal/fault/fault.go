// Package fault describes mistakes in a user's input: a configuration key or a cell of a file, the value found there
// and what would be right. Validate methods return all faults at once, joined (errors.Join); package configs finds the
// line of each key.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is one mistake in a configuration.
type Fault struct {
	Key   string // dotted path, such as "agent.gamma" or "racks[2].nodes[0].gpus"
	Value string // as the user wrote it, or as it was understood
	Want  string // what would be right, such as "a number in (0, 1]"
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s: got %s, want %s", f.Key, f.Value, f.Want)
}

// New makes a fault; value is printed with %v, strings quoted.
func New(key string, value any, want string) *Fault {
	v := fmt.Sprintf("%v", value)
	if s, ok := value.(string); ok {
		v = fmt.Sprintf("%q", s)
	}
	return &Fault{Key: key, Value: v, Want: want}
}

// List collects faults and returns them as one error.
type List struct{ errs []error }

// Add records a fault when ok is false.
func (l *List) Add(ok bool, key string, value any, want string) {
	if !ok {
		l.errs = append(l.errs, New(key, value, want))
	}
}

// Join records the faults of a nested configuration under prefix.
func (l *List) Join(prefix string, err error) {
	if err == nil {
		return
	}
	for _, f := range All(err) {
		g := *f
		if prefix != "" {
			g.Key = prefix + "." + f.Key
			if strings.HasPrefix(f.Key, "[") {
				g.Key = prefix + f.Key
			}
		}
		l.errs = append(l.errs, &g)
	}
	if len(All(err)) == 0 {
		l.errs = append(l.errs, err)
	}
}

// Err returns the faults joined, or nil if none was recorded.
func (l *List) Err() error { return errors.Join(l.errs...) }

// All returns the faults in err, in order, including those in joined and wrapped errors.
func All(err error) []*Fault {
	switch e := err.(type) {
	case nil:
		return nil
	case *Fault:
		return []*Fault{e}
	case interface{ Unwrap() []error }:
		var all []*Fault
		for _, e := range e.Unwrap() {
			all = append(all, All(e)...)
		}
		return all
	case interface{ Unwrap() error }:
		return All(e.Unwrap())
	}
	return nil
}
