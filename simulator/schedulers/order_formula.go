package schedulers

import (
	"math"

	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// wfp3 favours jobs that have waited long for their length, large ones more: −(w/r)³·n, lowest first, where w is the
// wait, r the estimated run time and n the processors (Tang et al., "Fault-aware, utility-based job scheduling on
// Blue Gene/P systems", CLUSTER 2009).
var wfp3 = rule{name: "wfp3", estimates: true, dynamic: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return wfp3Score(waited(v, j), in.requested(v, j), processors(v, j))
}}

// wfp3Peer is the "WFP3" behind the numbers in RLScheduler's tables (Zhang et al., SC 2020): its code uses w = −1 −
// submit as the wait, so that early jobs go last.
var wfp3Peer = rule{name: "wfp3-rlscheduler", estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return wfp3Score(peerWait(v, j), in.requested(v, j), processors(v, j))
}}

func wfp3Score(w, r, n float64) float64 { return -math.Pow(w/r, 3) * n }

// unicep is −w/(log₂n·r), lowest first (the same source as wfp3). log₂1 = 0: as in RLScheduler's code, 10⁻¹⁵ is added
// to w and n, which puts jobs of one processor first. The source knows no less than one processor; a job of a share of
// one, or of none, counts as a job of one, because a negative logarithm would put the longest wait last.
var unicep = rule{name: "unicep", estimates: true, dynamic: true,
	key: func(in *inputs, v *sim.View, j sim.Job) float64 {
		return unicepScore(waited(v, j), in.requested(v, j), processors(v, j))
	}}

// unicepPeer is the "UNICEP" of RLScheduler's tables; see wfp3Peer. With its negative waits jobs of one processor or
// less go last.
var unicepPeer = rule{name: "unicep-rlscheduler", estimates: true,
	key: func(in *inputs, v *sim.View, j sim.Job) float64 {
		return unicepScore(peerWait(v, j), in.requested(v, j), processors(v, j))
	}}

func unicepScore(w, r, n float64) float64 { return -(w + 1e-15) / (math.Log2(max(1, n)+1e-15) * r) }

// F1 to F4 are the non-linear policies that Carastan-Santos and de Camargo found by regression over simulated
// schedules ("Obtaining dynamic scheduling policies with simulation and machine learning", SC 2017), lowest first. r
// is the estimated run time, n the processors and s the submit time, both times in seconds of the trace's clock, so
// results depend on the clock's origin. Times up to 0 count as 0.1 s under a logarithm, as in RLScheduler's code.
var (
	f1 = regression("f1", func(r, n, s float64) float64 { return math.Log10(r)*n + 870*math.Log10(s) })
	f2 = regression("f2", func(r, n, s float64) float64 { return math.Sqrt(r)*n + 25600*math.Log10(s) })
	f3 = regression("f3", func(r, n, s float64) float64 { return r*n + 6860000*math.Log10(s) })
	f4 = regression("f4", func(r, n, s float64) float64 { return r*math.Sqrt(n) + 530000*math.Log10(s) })
)

func regression(name string, score func(r, n, s float64) float64) rule {
	return rule{name: name, estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
		submit := v.Trace(j).Submit.Seconds()
		if submit <= 0 {
			submit = 0.1
		}
		return score(in.requested(v, j), processors(v, j), submit)
	}}
}

// waited returns how long j has waited, in seconds.
func waited(v *sim.View, j sim.Job) float64 { return (v.Now() - v.Trace(j).Submit).Seconds() }

func peerWait(v *sim.View, j sim.Job) float64 { return -1 - v.Trace(j).Submit.Seconds() }

// requested returns the estimated run time of j in seconds, above 0.
func (in *inputs) requested(v *sim.View, j sim.Job) float64 {
	return max(1, float64(in.est.Of(v, j))) / 1e9
}

// processors returns the number of GPUs or processors that j asks for.
func processors(v *sim.View, j sim.Job) float64 { return float64(queue.Milli(v, j)) / 1000 }
