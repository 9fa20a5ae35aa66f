package metascheduler

import (
	"clustergym/env/workerplace"
	"clustergym/experiments/metascheduler/mbmpo"
	"clustergym/internal/rng"
)

// regime is a pair of worlds: before and after a change of which the learners are not told.
type regime struct {
	name           string
	before, after  string // what the tables call the worlds
	usual, changed []float64
}

// theUsual has, after the change, a quarter more jobs in an interval, most of them of three types, five of six servers,
// and a quarter more interference.
var theUsual = regime{"usual", "stationary", "changed", nil,
	[]float64{1.25, 1, 5.0 / 6, 1.25, 0, 0.1, 1, 0.1, 1, 0.1, 0.1, 0.1, 1}}

// thePoor has jobs of six types, after the change most of the two others, five of six servers, and a quarter more
// interference.
var thePoor = regime{"poor", "poor", "poor, changed", []float64{1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1},
	[]float64{1, 1, 5.0 / 6, 1.25, 0, 0.3, 1, 0.3, 0.3, 1, 0.3, 0.3, 0.3}}

// worlds returns the two real environments of a regime.
func (s *settings) worlds(g *regime) (usual, changed mbmpo.Real) {
	c := s.world()
	open := func() (*workerplace.Env, error) { return workerplace.New(c) }
	return mbmpo.Real{Open: open, Values: g.usual}, mbmpo.Real{Open: open, Values: g.changed}
}

// windows returns the seeds of the workloads on which everything is judged.
func (s *settings) windows() []uint64 {
	out := make([]uint64, s.Windows)
	for i := range out {
		if s.TraceSeed == 0 {
			out[i] = rng.At(rng.Hash("meta-scheduler/development"), uint64(i))
		} else {
			out[i] = rng.At(rng.Hash("meta-scheduler/judged"), s.TraceSeed, uint64(i))
		}
	}
	return out
}

// policy returns a function that makes policies with layers of the given width. They score every pair of a waiting job
// and a server with the same small network.
func (s *settings) policy(r mbmpo.Real, width int, seed uint64) (func() (mbmpo.Model, error), error) {
	e, err := r.Open()
	if err != nil {
		return nil, err
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		return nil, err
	}
	return func() (mbmpo.Model, error) { return mbmpo.NewScorer(spec, width, seed) }, nil
}
