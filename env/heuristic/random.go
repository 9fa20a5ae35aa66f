package heuristic

import (
	"clustergym/env/sim"
	"clustergym/internal/rng"
)

// random ranks jobs by a number drawn once for each job from the seed and its position. Any order should beat this
// baseline.
var random = rule{name: "random", key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return rng.Uniform(rng.At(s.cfg.Seed, rng.Hash("random order"), uint64(v.Pos(j))))
}}
