package dagplace

import (
	"fmt"
	"io"
	"math"
	"strings"

	"clustergym/env"
)

var _ env.Renderer = (*Env)(nil)

// Render implements env.Renderer: how far the plan is, what each GPU has, and when the next task would end there.
func (e *Env) Render(w io.Writer, mode string) error {
	return e.shell.Render(w, mode, e.draw)
}

// draw writes the rendering.
func (e *Env) draw(b *strings.Builder) {
	p := e.ep
	fmt.Fprintf(b,
		"%s  seed %d: %d of %d tasks placed on %d GPUs, makespan %.4g s; HEFT's %.4g, of the plan that is to be improved "+
			"%.4g\n",
		ID, e.shell.Episode().Seed, p.b.Done(), p.b.q.Tasks(), p.b.q.Procs(), p.b.Makespan(), p.leader, p.current)
	next := p.b.Task()
	if next >= 0 {
		fmt.Fprintf(b, "next  task %s\n", p.b.q.Graph.Task(next).ID)
	}
	const most = 32
	for g, load := range p.b.Load() {
		if g == most {
			fmt.Fprintf(b, "      and %d more\n", p.b.q.Procs()-g)
			break
		}
		fmt.Fprintf(b, "%4d  %-12s busy for %.4g s", g, p.b.q.Platform.Processor(g).ID, load)
		if next >= 0 {
			if f := p.b.Finish()[g]; math.IsInf(f, 1) {
				b.WriteString(", cannot run it")
			} else {
				fmt.Fprintf(b, ", would end it at %.4g s", f)
			}
		}
		b.WriteByte('\n')
	}
}
