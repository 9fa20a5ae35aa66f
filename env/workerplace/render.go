package workerplace

import (
	"fmt"
	"io"

	"clustergym/traces/profile"
)

// Render implements env.Renderer: what stands on each server and what waits.
func (e *Env) Render(w io.Writer, mode string) error {
	if mode != "ansi" {
		return fmt.Errorf("%s: mode %q, want ansi", ID, mode)
	}
	models := profile.DL2Models()
	b := fmt.Appendf(nil, "interval %d: %d jobs wait, %d run, %d to come\n", e.time, len(e.waiting), len(e.running), len(e.jobs)-e.next)
	for m := range e.cfg.Servers {
		if m >= e.active {
			b = fmt.Appendf(b, "server %d is not in use\n", m)
			continue
		}
		b = fmt.Appendf(b, "server %d, %d GPUs free:", m, e.free[m].gpus)
		for _, id := range e.running {
			if j := &e.jobs[id]; j.on[m] > 0 {
				b = fmt.Appendf(b, " %d×%s(%.0f %%)", j.on[m], models[j.kind].Name, 100*j.done/j.work)
			}
		}
		b = append(b, '\n')
	}
	for _, id := range e.visible() {
		j := &e.jobs[id]
		b = fmt.Appendf(b, "waits: %s, %d workers, %d placed, %.1f intervals alone, since interval %d\n", models[j.kind].Name, j.workers, j.placed, j.work, j.arrives)
	}
	_, err := w.Write(b)
	return err
}
