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

// Render implements env.Renderer. It shows which job holds which GPUs, and the jobs that can be chosen, in the order of the
// actions.
func (e *Env) Render(w io.Writer, mode string) error {
	return e.shell.Render(w, mode, func(b *strings.Builder) {
		fmt.Fprintf(b, "%s, %d of %d jobs started\n%s", e.shell.Headline(), e.started, e.session.Len(), sched.Picture(e.view))
		const most = 32
		for i, j := range e.queue.slots {
			if i == most {
				fmt.Fprintf(b, "      and %d more\n", len(e.queue.slots)-i)
				break
			}
			fits := "does not fit"
			if e.view.Fits(j) {
				fits = "fits"
			}
			fmt.Fprintf(b, "%4d  %s", i, sched.JobLine(e.view, j, time.Duration(e.known[j].e), fits))
		}
	})
}
