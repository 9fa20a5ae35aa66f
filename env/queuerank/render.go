package queuerank

import (
	"fmt"
	"io"
	"strings"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
)

var _ env.Renderer = (*Env)(nil)

// Render implements env.Renderer: who holds which GPUs, and the jobs that can be chosen, in the order of the actions.
func (e *Env) Render(w io.Writer, mode string) error {
	switch {
	case e.closed:
		return env.ErrClosed
	case mode != "ansi":
		return fmt.Errorf("%s: render mode %q, want ansi", ID, mode)
	case !e.begun:
		return env.ErrResetNeeded
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  seed %d, step %d, %d of %d jobs started\n%s", ID, e.ep.Seed, len(e.actions), e.started, len(e.course.Jobs), sched.Picture(e.view))
	const most = 32
	for i, j := range e.queue.slots {
		if i == most {
			fmt.Fprintf(&b, "      and %d more\n", len(e.queue.slots)-i)
			break
		}
		fits := "does not fit"
		if e.view.Fits(j) {
			fits = "fits"
		}
		fmt.Fprintf(&b, "%4d  %s", i, sched.JobLine(e.view, j, time.Duration(e.known[j].e), fits))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
