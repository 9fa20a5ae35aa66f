package delayoffer

import (
	"fmt"
	"io"

	"clustergym/env"
	"clustergym/env/sched"
)

var _ env.Renderer = (*Env)(nil)

// Render implements env.Renderer: who holds which GPUs, and the offer.
func (e *Env) Render(w io.Writer, mode string) error {
	switch {
	case e.closed:
		return env.ErrClosed
	case mode != "ansi":
		return fmt.Errorf("%s: render mode %q, want ansi", ID, mode)
	case !e.begun:
		return env.ErrResetNeeded
	}
	text := fmt.Sprintf("%s  seed %d, step %d, %d of %d jobs finished\n%s", ID, e.ep.Seed, len(e.actions), e.done, len(e.course.Jobs), sched.Picture(e.view))
	if o := e.offer; o != nil {
		where := [...]string{"one machine", "one rack", "several racks"}[o.Tier]
		text += "offer " + sched.JobLine(e.view, o.Job, e.est.Of(e.view.Trace(o.Job)), fmt.Sprintf("%s: GPUs %v; %d jobs are asked after it", where, o.GPUs, o.Behind))
	}
	_, err := io.WriteString(w, text)
	return err
}
