package schedulers

import (
	"clustergym/simulator/schedulers/attained"
	"clustergym/simulator/sim"
)

// las is least attained service in discretised queues (Tiresias: Gu et al., NSDI 2019; "dlas" in its simulator). A
// job begins in queue 0 and falls to the next queue when its run time reaches the queue's limit; it never returns.
// Lower queues go first. Within a queue, running jobs go first, in the order in which they started, then waiting
// jobs. A job that is stopped goes to the front of the waiting ones. A job that falls goes to the back of its new
// queue, even if it is stopped in the same pass. Several that fall at once fall in the order of the trace.
//
// With Config.Promote, Tiresias' knob against starvation, a job that waits below queue 0 rises to the back of queue 0
// when it has waited this many times as long as it has run. Both are counted since it last rose, and waiting only
// from when it has run again. Its run time then counts from 0 again. Promotion counts time even if GPU-time decides
// the queue.
var las = rule{name: "las", preemptive: true, key: lasKey,
	state: lasState(false, false)}

// las2D is las with GPU-time in place of time ("dlas-gpu" in Tiresias' simulator, every number of which it
// reproduces). A fall is noticed at the next pass, and the passes made for it are late: like that simulator it
// schedules them ⌊(limit − run time)/GPUs⌋ whole seconds after the last one, where (limit − run time × GPUs)/GPUs
// would be right.
var las2D = rule{name: "las-2d", preemptive: true, key: lasKey,
	state: lasState(true, true)}

// las2DPrompt is las2D with falls at the moment when the GPU-time reaches the limit, as in the paper.
var las2DPrompt = rule{name: "las-2d-prompt", preemptive: true, key: lasKey,
	state: lasState(true, false)}

func lasKey(in *inputs, _ *sim.View, j sim.Job) float64 { return in.state.(*attained.Queues).Key(j) }

// lasState makes the queues of a run. It reuses those of the previous one.
func lasState(byGPU, late bool) func(in *inputs) stateful {
	return func(in *inputs) stateful {
		q, ok := in.state.(*attained.Queues)
		if !ok {
			q = attained.NewQueues(in.cfg.Limits, in.cfg.Promote, byGPU, late)
		}
		q.Reset()
		return q
	}
}

// gittins2D serves the job with the greatest Gittins index in GPU-time first and preempts for it ("2D-Gittins",
// Tiresias: Gu et al., NSDI 2019, section 4.3). With a the GPU-time that a job has held, counted in whole quanta D
// (Config.Quantum), and S the GPU-time of a job drawn from Config.Service, the index is
//
//	G(a) = P(S − a ≤ D | S > a) / E[min(S − a, D) | S > a],
//
// or 0 if no S exceeds a: such jobs go last. A rank changes when a running job completes a quantum.
//
// If Config.Service is empty, the distribution is that of the jobs that have finished so far; before the first, all
// ranks are equal. Tiresias' simulator combines the index with the queues of las-2d, rounds P and E to five digits
// and looks a up among the values of S; this implementation evaluates the formula.
var gittins2D = rule{name: "gittins-2d", preemptive: true, dynamic: true, key: gittinsKey, state: gittinsState}

func gittinsKey(in *inputs, v *sim.View, j sim.Job) float64 {
	return in.state.(*attained.Gittins).Key(v, j)
}

// gittinsState makes the state of a run. It reuses that of the previous one.
func gittinsState(in *inputs) stateful {
	g, ok := in.state.(*attained.Gittins)
	if !ok {
		g = attained.NewGittins(in.cfg.Quantum, in.cfg.Service)
	}
	g.Reset()
	return g
}
