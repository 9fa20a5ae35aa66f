package heuristic

import (
	"clustergym/env/heuristic/attained"
	"clustergym/env/sim"
)

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

func gittinsKey(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return s.state.(*attained.Gittins).Key(v, j)
}

// gittinsState makes the state of a run. It reuses that of the previous one.
func gittinsState(s *Scheduler) stateful {
	g, ok := s.state.(*attained.Gittins)
	if !ok {
		g = attained.NewGittins(s.cfg.Quantum, s.cfg.Service)
	}
	g.Reset()
	return g
}
