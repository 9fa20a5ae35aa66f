package workerplace

import (
	"fmt"
	"io"
	"strings"

	"clustergym/internal/plain"
)

// Render implements env.Renderer: what stands on each server and what waits.
func (e *Env) Render(w io.Writer, mode string) error {
	return e.shell.Render(w, mode, e.draw)
}

// draw writes the rendering.
func (e *Env) draw(b *strings.Builder) {
	names := e.names()
	fmt.Fprintf(b, "interval %d: %s\n", e.time, e.counts())
	for m := range e.cfg.Servers {
		if m >= e.active {
			fmt.Fprintf(b, "server %d is not in use\n", m)
			continue
		}
		fmt.Fprintf(b, "server %d, %d GPUs free:", m, e.free[m].gpus)
		for _, id := range e.running {
			if j := &e.jobs[id]; j.on[m] > 0 {
				fmt.Fprintf(b, " %d×%s(%.0f %%)", j.on[m], names[j.kind], 100*j.done/j.work)
			}
		}
		b.WriteByte('\n')
	}
	for _, id := range e.visible() {
		j := &e.jobs[id]
		fmt.Fprintf(b, "waits: %s, %d workers, %d placed, %.1f intervals alone, since interval %d\n", names[j.kind],
			j.workers, j.placed, j.work, j.arrives)
	}
}

// names returns the names of the types of jobs.
func (e *Env) names() []string {
	if e.work != nil {
		return e.work.names
	}
	var names []string
	for _, m := range e.truth.models {
		names = append(names, m.Name)
	}
	return names
}

// counts says how many jobs wait, run and are to come.
func (e *Env) counts() string {
	return fmt.Sprintf("%s, %s, %d to come", plain.Count(len(e.waiting), "job waits", "jobs wait"),
		plain.Count(len(e.running), "runs", "run"), len(e.jobs)-e.next)
}
