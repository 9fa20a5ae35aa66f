package gpupick

import (
	"fmt"
	"io"

	"clustergym/env"
	"clustergym/env/sched"
)

var _ env.Renderer = (*Env)(nil)

// Render implements env.Renderer: who holds which GPUs, and the job whose GPUs are picked.
func (e *Env) Render(w io.Writer, mode string) error {
	switch {
	case e.closed:
		return env.ErrClosed
	case mode != "ansi":
		return fmt.Errorf("%s: render mode %q, want ansi", ID, mode)
	case !e.begun:
		return env.ErrResetNeeded
	}
	text := fmt.Sprintf("%s  seed %d, step %d, %d of %d jobs placed\n%s", ID, e.ep.Seed, len(e.actions), e.placed, len(e.course.Jobs), sched.Picture(e.view))
	if e.head < len(e.queue) {
		j := e.queue[e.head]
		text += "next  " + sched.JobLine(e.view, j, e.est.Of(e.view.Trace(j)), fmt.Sprintf("picked %v", e.picked))
	}
	_, err := io.WriteString(w, text)
	return err
}
