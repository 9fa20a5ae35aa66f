package workload

import (
	"context"

	"clustergym/traces"
)

type playingKey struct{}

// Playing returns a context whose traces are played by schedulers. Then a note (WithNotes) says where jobs differ in priority,
// which no order looks at.
func Playing(ctx context.Context) context.Context {
	return context.WithValue(ctx, playingKey{}, true)
}

// urgency looks for jobs that differ in priority.
type urgency struct {
	on     bool // see Playing
	any    bool // there was a job
	first  int  // its priority
	differ bool
}

func urgencyOf(ctx context.Context) urgency {
	on, _ := ctx.Value(playingKey{}).(bool)
	return urgency{on: on}
}

func (u *urgency) see(j *traces.Job) {
	switch {
	case !u.any:
		u.any, u.first = true, j.Priority
	case j.Priority != u.first:
		u.differ = true
	}
}

// note returns the sentence for people, "" if there is nothing to say.
func (u *urgency) note() string {
	if !u.on || !u.differ {
		return ""
	}
	return "jobs differ in priority, and no order looks at that: only gavel-las and gavel-ftf weigh jobs by it"
}
