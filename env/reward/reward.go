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
		return &jct{}, nil
	case "wait":
		return &wait{}, nil
	case "slowdown":
		return &slowdown{}, nil
	case "bsld":
		return &bsld{}, nil
	case "makespan", "utilisation":
		return &makespan{}, nil
	case "throughput":
		return &throughput{c: waitCost}, nil
	}
	return nil, fmt.Errorf("reward %q is unknown, want %s", name, nearest.OneOf(name, Names()))
}

// Known reports whether New knows name.
func Known(name string) bool { return slices.Contains(Names(), name) }

// counted reports whether j belongs to the window.
func counted(w *sched.Window, v *sim.View, j sim.Job) bool { return j >= 0 && v.Pos(j) >= w.First }

// jct pays −N/(W·tau) per second, N being the counted jobs that are submitted and unfinished. Return = −mean JCT /
// tau.
type jct struct {
	w *sched.Window
	n int
}

func (r *jct) Reset(w *sched.Window) { r.w, r.n = w, 0 }

func (r *jct) Event(v *sim.View, e *sim.Event) float64 {
	if counted(r.w, v, e.Job) {
		switch e.Kind {
		case sim.Submit:
			r.n++
		case sim.Finish:
			r.n--
		}
	}
	return 0
}

func (r *jct) Rate() float64 { return -float64(r.n) / (float64(r.w.Jobs) * r.w.Tau.Seconds()) }

// wait pays −N_w/(W·tau) per second, N_w being the counted jobs that wait. Return = −mean wait / tau.
type wait struct {
	w *sched.Window
	n int
}

func (r *wait) Reset(w *sched.Window) { r.w, r.n = w, 0 }

func (r *wait) Event(v *sim.View, e *sim.Event) float64 {
	if counted(r.w, v, e.Job) {
		switch e.Kind {
		case sim.Submit, sim.Preempt, sim.Fail:
			r.n++
		case sim.Start:
			r.n--
		}
	}
	return 0
}

func (r *wait) Rate() float64 { return -float64(r.n) / (float64(r.w.Jobs) * r.w.Tau.Seconds()) }

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
// slowdown.
type slowdown struct {
	w   *sched.Window
	n   int
	sum float64 // Σ 1/work, 1/s
}

func (r *slowdown) Reset(w *sched.Window) { r.w, r.n, r.sum = w, 0, 0 }

func (r *slowdown) Event(v *sim.View, e *sim.Event) float64 {
	if counted(r.w, v, e.Job) {
		switch e.Kind {
		case sim.Submit:
			r.n++
			r.sum += 1 / v.Trace(e.Job).Work.Seconds()
		case sim.Finish:
			if r.n--; r.n == 0 {
				r.sum = 0 // rounding errors must not accumulate
			} else {
				r.sum -= 1 / v.Trace(e.Job).Work.Seconds()
			}
		}
	}
	return 0
}

func (r *slowdown) Rate() float64 { return -r.sum / float64(r.w.Jobs) }

// bsld is slowdown with 1/max(work, 10 s); at each finish it pays the difference to the exact term max(1, JCT/max(work,
// 10 s)). Return = −mean bounded slowdown.
type bsld struct {
	w   *sched.Window
	n   int
	sum float64
}

func (r *bsld) Reset(w *sched.Window) { r.w, r.n, r.sum = w, 0, 0 }

func (r *bsld) Event(v *sim.View, e *sim.Event) float64 {
	if !counted(r.w, v, e.Job) {
		return 0
	}
	t := v.Trace(e.Job)
	per := 1 / max(t.Work.Seconds(), 10)
	switch e.Kind {
	case sim.Submit:
		r.n++
		r.sum += per
	case sim.Finish:
		if r.n--; r.n == 0 {
			r.sum = 0
		} else {
			r.sum -= per
		}
		jct := (e.At - t.Submit).Seconds()
		return -max(0, 1-jct*per) / float64(r.w.Jobs)
	}
	return 0
}

func (r *bsld) Rate() float64 { return -r.sum / float64(r.w.Jobs) }

// throughput pays (Σ_running n·rate − c·Σ_waiting n)/(G·tau) per second (TopDRL's form, c = 2). Return = (Σ n·work −
// c·Σ n·wait)/(G·tau). The work term is the same for every policy that drains the window, so there it teaches only
// GPU-weighted waiting. n is the number of GPUs asked for, since rates are relative to that. Each rate is the one at
// the job's last event: changes caused by neighbours (comm contention, interference) are not noticed.
type throughput struct {
	w       *sched.Window
	c       float64
	running int
	waiting int
	work    float64   // Σ n·rate of running jobs
	queued  float64   // Σ n of waiting jobs
	rate    []float64 // n·rate by job
}

func (r *throughput) Reset(w *sched.Window) {
	r.w, r.running, r.waiting, r.work, r.queued = w, 0, 0, 0, 0
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
	enter := func() { r.waiting++; r.queued += n }
	leave := func() {
		if r.waiting--; r.waiting == 0 {
			r.queued = 0
		} else {
			r.queued -= n
		}
	}
	begin := func() {
		r.rate[e.Job] = n * v.Factor(e.Job, e.GPUs)
		r.running++
		r.work += r.rate[e.Job]
	}
	stop := func() {
		if r.running--; r.running == 0 {
			r.work = 0
		} else {
			r.work -= r.rate[e.Job]
		}
	}
	switch e.Kind {
	case sim.Submit:
		enter()
	case sim.Start:
		leave()
		begin()
	case sim.Migrate, sim.Resize:
		stop()
		begin()
	case sim.Preempt, sim.Fail:
		stop()
		enter()
	case sim.Finish:
		stop()
	}
	return 0
}

func (r *throughput) Rate() float64 {
	return (r.work - r.c*r.queued) / (float64(r.w.GPUs) * r.w.Tau.Seconds())
}
