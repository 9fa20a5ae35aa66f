package workload

import (
	"context"
	"fmt"

	"clustergym/traces"
)

type notingKey struct{}

// WithNoting returns a context whose traces call note with a sentence for people where jobs say something that no run looks at.
func WithNoting(ctx context.Context, note func(text string)) context.Context {
	return context.WithValue(ctx, notingKey{}, note)
}

// urgency looks for jobs that differ in priority, which no order looks at.
type urgency struct {
	note  func(text string) // nil = nobody is told
	any   bool              // there was a job
	first int               // its priority
}

func urgencyOf(ctx context.Context) urgency {
	note, _ := ctx.Value(notingKey{}).(func(text string))
	return urgency{note: note}
}

func (u *urgency) see(file string, j *traces.Job) {
	switch {
	case u.note == nil:
	case !u.any:
		u.any, u.first = true, j.Priority
	case j.Priority != u.first:
		u.note(fmt.Sprintf("the jobs of %s differ in priority, and no order looks at that: only gavel-las and gavel-ftf weigh jobs by it", file))
		u.note = nil
	}
}
