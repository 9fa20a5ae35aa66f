package queuerank

import (
	"image"

	"clustergym/env"
	"clustergym/env/paint"
	"clustergym/env/sched"
)

var _ env.Painter = (*Env)(nil)

// FrameRate implements env.Painter.
func (e *Env) FrameRate() int { return sched.FrameRate }

// Paint implements env.Painter. It shows which job holds which GPUs, and the queue with the jobs that can be chosen first, in the
// order of the actions.
func (e *Env) Paint(dst *image.RGBA) error {
	return e.shell.Paint(dst, func(c *paint.Canvas) {
		e.shell.Draw(c, &sched.Scene{
			View: e.view, Second: sched.Counts(e.view, e.session.Len()), Slots: e.queue.slots, Estimate: e.Estimate,
		})
	})
}
