package metascheduler

import (
	"clustergym/agents/mbmpo"
	"clustergym/env/workerplace"
	"clustergym/internal/rng"
)

// worlds returns the two real environments: the usual one, and the one after the change, which has a quarter more jobs in an
// interval, most of them of three types, five of six servers, and a quarter more interference.
func (s *settings) worlds() map[string]mbmpo.Real {
	c := workerplace.DefaultConfig()
	c.Obs, c.Slots, c.Jobs, c.Noise = "pairs", s.Slots, s.Jobs, s.Noise
	open := func() (*workerplace.Env, error) { return workerplace.New(c) }
	return map[string]mbmpo.Real{
		"stationary": {Open: open},
		"changed":    {Open: open, Values: []float64{1.25, 1, 5.0 / 6, 1.25, 0, 0.1, 1, 0.1, 1, 0.1, 0.1, 0.1, 1}},
	}
}

// windows returns the seeds of the workloads on which everything is judged.
func (s *settings) windows() []uint64 {
	out := make([]uint64, s.Windows)
	for i := range out {
		out[i] = rng.At(rng.Hash("meta-scheduler/"+s.Stream), uint64(i))
	}
	return out
}

// policy returns a function that makes policies. They score every pair of a waiting job and a server with the same small
// network.
func (s *settings) policy(r mbmpo.Real, seed uint64) (func() (mbmpo.Model, error), error) {
	e, err := r.Open()
	if err != nil {
		return nil, err
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		return nil, err
	}
	return func() (mbmpo.Model, error) { return mbmpo.NewScorer(spec, s.Width, seed) }, nil
}
