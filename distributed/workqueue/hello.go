package workqueue

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"clustergym/internal/plain"
)

// hello decides whether a worker may take part.
func (c *Coordinator) hello(m *nats.Msg) {
	var h hello
	if m.Reply == "" || json.Unmarshal(m.Data, &h) != nil || !workerName.MatchString(h.Worker) {
		return
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return // a worker that stays asks the next coordinator
	}
	w := welcome{Job: string(c.job), Own: c.host != nil, Kernels: c.opt.Kernels, AckWait: c.opt.AckWait,
		SaveEvery: c.opt.SaveEvery}
	switch {
	case h.Job != "" && h.Job != string(c.job):
		if w.Other = true; w.Own {
			c.refuse.tell("job "+h.Worker, "worker %s asks for job %s; this one is %s", h.Worker, plain.Clip(h.Job, 80), c.job)
		}
	default:
		w.Refusal = c.judge(&h)
		if w.Refusal != "" {
			c.refuse.tell("hello "+h.Worker, "%s", w.Refusal)
			break
		}
		c.mu.Lock()
		known := c.workers[h.Worker]
		if known == nil {
			known = &worker{}
			c.workers[h.Worker] = known
			c.opt.Say("worker %s takes part, with %s", h.Worker, plain.Count(h.Slots, "slot", "slots"))
		}
		known.hello, known.seen, known.lost, c.changed = h, time.Now(), 0, true
		c.mu.Unlock()
	}
	_ = m.Respond(encode(w)) // it asks again if it hears nothing
}

// judge returns why a worker may not take part, "" if it may.
func (c *Coordinator) judge(h *hello) string {
	name := h.Worker
	switch {
	case h.Protocol != protocol || h.Build != c.opt.Build:
		return fmt.Sprintf(
			"worker %s is another build (%s) than the coordinator (%s), so that its results could differ; start both from one "+
				"executable", name, plain.Clip(h.Build, 80), c.opt.Build)
	case h.Arch != runtime.GOARCH:
		return fmt.Sprintf(
			"worker %s runs on %s and the coordinator on %s, whose float64 results differ in the last bits; use machines of "+
				"one architecture", name, plain.Clip(h.Arch, 20), runtime.GOARCH)
	case c.opt.Kernels != "" && !slices.Contains(h.Kernels, c.opt.Kernels):
		help := "portable"
		if len(h.Kernels) > 0 {
			help = h.Kernels[0]
		}
		return fmt.Sprintf("worker %s has the kernels %s and not %s, in which this work is computed; "+
			"start the coordinator with the kernels %s to let it help",
			name, plain.Clip(listed(h.Kernels), 100), c.opt.Kernels, plain.Clip(help, 20))
	case h.Slots < 1 || h.Slots > 1<<16:
		return fmt.Sprintf("worker %s has %d slots, want 1 or more", name, h.Slots)
	}
	return ""
}

func listed(names []string) string {
	if len(names) == 0 {
		return "of no set"
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
