package gpupick

import (
	"fmt"
	"io"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
)

var _ env.Renderer = (*Env)(nil)

// Render implements env.Renderer. It shows which job holds which GPUs, and the job whose GPUs are being picked.
func (e *Env) Render(w io.Writer, mode string) error {
	return e.shell.Render(w, mode, func(b *strings.Builder) {
		fmt.Fprintf(b, "%s, %d of %d jobs placed\n%s", e.shell.Headline(), e.placed, e.session.Len(), sched.Picture(e.view))
		if e.head < len(e.queue) {
			j := e.queue[e.head]
			b.WriteString("next  " + sched.JobLine(e.view, j, e.est.Of(e.view, j), fmt.Sprintf("picked %v", e.picks.picked)))
		}
	})
}
