package synth

import "clustergym/traces"

// New returns the workload of Generate as a stream. It makes jobs of the profiles hpc and lublin one by one, in
// constant memory, and all jobs of the others at once.
func New(cfg Config, seed uint64) (traces.Stream, error) {
	if isHPC(cfg.Profile) {
		return NewHPC(cfg, seed)
	}
	jobs, err := Generate(cfg, seed)
	if err != nil {
		return nil, err
	}
	return &traces.Slice{Jobs: jobs}, nil
}
