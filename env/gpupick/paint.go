package gpupick

import (
	"fmt"
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

// Paint implements env.Painter. It shows which job holds which GPUs, the job whose GPUs are being picked, and those picked so
// far, framed.
func (e *Env) Paint(dst *image.RGBA) error {
	return e.shell.Paint(dst, func(c *paint.Canvas) {
		x := sched.Scene{
			View: e.view, Second: sched.Counts(e.view, e.session.Len()), Marked: e.picks.picked,
			Estimate: func(j sim.Job) time.Duration { return e.est.Of(e.view, j) },
		}
		if e.head < len(e.queue) {
			x.Asked = e.queue[e.head : e.head+1]
			x.Note = fmt.Sprintf("pick %d", e.view.Request(x.Asked[0]).GPUs-len(e.picks.picked))
		}
		e.shell.Draw(c, &x)
	})
}
