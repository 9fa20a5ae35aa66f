package delayoffer

import (
	"image"
	"time"

	"clustergym/env"
	"clustergym/env/paint"
	"clustergym/env/sched"
	"clustergym/env/sim"
)

var _ env.Painter = (*Env)(nil)

// FrameRate implements env.Painter.
func (e *Env) FrameRate() int { return sched.FrameRate }

// Paint implements env.Painter. It shows which job holds which GPUs, the job that is asked, and the GPUs offered to it, framed.
func (e *Env) Paint(dst *image.RGBA) error {
	return e.shell.Paint(dst, func(c *paint.Canvas) {
		x := sched.Scene{
			View: e.view, Second: sched.Counts(e.view, e.session.Len()),
			Estimate: func(j sim.Job) time.Duration { return e.est.Of(e.view, j) },
		}
		if o := e.offer; o != nil {
			x.Asked, x.Marked, x.Note = []sim.Job{o.Job}, o.GPUs, "asked"
			x.Second += ". Offer: " + tiers[o.Tier]
		}
		e.shell.Draw(c, &x)
	})
}
