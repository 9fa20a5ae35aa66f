package workload

import (
	"clustergym/traces"
)

// urgency looks for jobs that differ in priority.
type urgency struct {
	on     bool // see Playing
	any    bool // there was a job
	first  int  // its priority
	differ bool
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
