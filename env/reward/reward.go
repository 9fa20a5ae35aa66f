package reward

import (
	"fmt"
	"slices"

	"clustergym/env/sched"
	"clustergym/internal/nearest"
	"clustergym/simulator/sim"
)

// Names returns the rewards that New knows.
func Names() []string {
	return []string{"jct", "wait", "slowdown", "bsld", "makespan", "utilisation", "throughput"}
}

// New returns the reward called name. waitCost is the c of throughput.
func New(name string, waitCost float64) (sched.Reward, error) {
	switch name {
	case "jct":
		return &present{enter: []sim.EventKind{sim.Submit}, leave: sim.Finish}, nil
	case "wait":
		return &present{enter: []sim.EventKind{sim.Submit, sim.Preempt, sim.Fail}, leave: sim.Start}, nil
	case "slowdown":
		return &slowdown{}, nil
	case "bsld":
		return &slowdown{least: 10}, nil
	case "makespan", "utilisation":
		return &makespan{}, nil
	case "throughput":
		return &throughput{c: waitCost}, nil
	}
	return nil, fmt.Errorf("reward %q is unknown, want %s", name, nearest.OneOf(name, Names()))
}

// Known reports whether New knows name.
func Known(name string) bool { return slices.Contains(Names(), name) }

// counted reports whether j is the agent's: all jobs in the system are, but for the warm-up's of a drained episode.
func counted(w *sched.Window, v *sim.View, j sim.Job) bool {
	return j >= 0 && (w.Mode != sched.Drained || v.Pos(j) >= w.First)
}

// total is a sum over a number of jobs.
type total struct {
	n   int
	sum float64
}

func (t *total) enter(x float64) {
	t.n++
	t.sum += x
}

func (t *total) leave(x float64) {
	if t.n--; t.n == 0 {
		t.sum = 0 // rounding errors must not accumulate
	} else {
		t.sum -= x
	}
}

// present pays −N/(W·tau) per second. For jct, N is the counted jobs that are submitted and unfinished, and the return
// −mean JCT / tau; for wait, those that wait, and −mean wait / tau.
type present struct {
	enter []sim.EventKind
	leave sim.EventKind

	w *sched.Window
	n int
}

func (r *present) Reset(w *sched.Window) { r.w, r.n = w, 0 }

func (r *present) Event(v *sim.View, e *sim.Event) float64 {
	if counted(r.w, v, e.Job) {
		if e.Kind == r.leave {
			r.n--
		} else if slices.Contains(r.enter, e.Kind) {
			r.n++
		}
	}
	return 0
}

func (r *present) Rate() float64 { return -float64(r.n) / (float64(r.w.Jobs) * r.w.Tau.Seconds()) }

// makespan pays −1/tau per second until the last counted finish. Return = −makespan / tau. On a drained window the
// mean utilisation is Σ n·run / (G·makespan), so this reward also serves "utilisation".
type makespan struct {
	w    *sched.Window
	left int
	on   bool
}

func (r *makespan) Reset(w *sched.Window) { r.w, r.left, r.on = w, w.Jobs, false }

func (r *makespan) Event(v *sim.View, e *sim.Event) float64 {
	if counted(r.w, v, e.Job) {
		switch e.Kind {
		case sim.Submit:
			r.on = true
		case sim.Finish:
			r.left--
		}
	}
	return 0
}

func (r *makespan) Rate() float64 {
	if !r.on || r.left == 0 {
		return 0
	}
	return -1 / r.w.Tau.Seconds()
}

// slowdown pays −Σ 1/work / W per second over the counted jobs that are submitted and unfinished. Return = −mean
// slowdown. With least, that of bsld in seconds, it is 1/max(work, least), and at each finish it pays the difference to
// the exact term max(1, JCT/max(work, least)). Return = −mean bounded slowdown.
type slowdown struct {
	least float64
	w     *sched.Window
	all   total // of 1/work, 1/s
}

func (r *slowdown) Reset(w *sched.Window) { r.w, r.all = w, total{} }

func (r *slowdown) Event(v *sim.View, e *sim.Event) float64 {
	if !counted(r.w, v, e.Job) {
		return 0
	}
	t := v.Trace(e.Job)
	per := 1 / max(t.Work.Seconds(), r.least)
	switch e.Kind {
	case sim.Submit:
		r.all.enter(per)
	case sim.Finish:
		if r.all.leave(per); r.least > 0 {
			jct := (e.At - t.Submit).Seconds()
			return -max(0, 1-jct*per) / float64(r.w.Jobs)
		}
	}
	return 0
}

func (r *slowdown) Rate() float64 { return -r.all.sum / float64(r.w.Jobs) }

// throughput pays (Σ_running n·rate − c·Σ_waiting n)/(G·tau) per second (TopDRL's form, c = 2). Return = (Σ n·work −
// c·Σ n·wait)/(G·tau). The work term is the same for every policy that drains the window, so there it teaches only
// GPU-weighted waiting. n is the number of GPUs asked for, since rates are relative to that. Each rate is the one at
// the job's last event: changes caused by neighbours (comm contention, interference) are not noticed.
type throughput struct {
	w       *sched.Window
	c       float64
	running total     // of n·rate
	waiting total     // of n
	rate    []float64 // n·rate by job
}

func (r *throughput) Reset(w *sched.Window) {
	r.w, r.running, r.waiting = w, total{}, total{}
}

func (r *throughput) Event(v *sim.View, e *sim.Event) float64 {
	if !counted(r.w, v, e.Job) {
		return 0
	}
	q := v.Request(e.Job)
	n := float64(v.Asked(e.Job)*q.Milli) / 1000
	for int(e.Job) >= len(r.rate) {
		r.rate = append(r.rate, 0)
	}
	begin := func() {
		r.rate[e.Job] = n * v.Factor(e.Job, e.GPUs)
		r.running.enter(r.rate[e.Job])
	}
	switch e.Kind {
	case sim.Submit:
		r.waiting.enter(n)
	case sim.Start:
		r.waiting.leave(n)
		begin()
	case sim.Migrate, sim.Resize:
		r.running.leave(r.rate[e.Job])
		begin()
	case sim.Preempt, sim.Fail:
		r.running.leave(r.rate[e.Job])
		r.waiting.enter(n)
	case sim.Finish:
		r.running.leave(r.rate[e.Job])
	}
	return 0
}

func (r *throughput) Rate() float64 {
	return (r.running.sum - r.c*r.waiting.sum) / (float64(r.w.GPUs) * r.w.Tau.Seconds())
}
