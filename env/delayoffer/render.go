package delayoffer

import (
	"fmt"
	"io"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
)

var _ env.Renderer = (*Env)(nil)

// tiers names where the GPUs of an offer are, by heuristic.Tier.
var tiers = [...]string{"one machine", "one rack", "several racks"}

// Render implements env.Renderer. It shows which job holds which GPUs, and the offer.
func (e *Env) Render(w io.Writer, mode string) error {
	return e.shell.Render(w, mode, func(b *strings.Builder) {
		fmt.Fprintf(b, "%s, %d of %d jobs finished\n%s", e.shell.Headline(), e.done, e.session.Len(), sched.Picture(e.view))
		if o := e.offer; o != nil {
			more := fmt.Sprintf("%s: GPUs %v; %d jobs are asked after it", tiers[o.Tier], o.GPUs, o.Behind)
			b.WriteString("offer " + sched.JobLine(e.view, o.Job, e.est.Of(e.view, o.Job), more))
		}
	})
}
