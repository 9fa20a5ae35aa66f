package heuristic

import (
	"math"

	"clustergym/env/sim"
)

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
	return rule{name: name, estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
		submit := v.Trace(j).Submit.Seconds()
		if submit <= 0 {
			submit = 0.1
		}
		return score(s.requested(v, j), processors(v, j), submit)
	}}
}
