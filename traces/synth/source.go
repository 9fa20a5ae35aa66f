package synth

import (
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// Source generates a new workload for every window, without end. Each begins at its own hour of the week. Safe for
// concurrent use.
type Source struct{ cfg Config }

var _ traces.Source = (*Source)(nil)

// NewSource checks cfg; its Jobs is the length of a window.
func NewSource(cfg Config) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Source{cfg}, nil
}

// Windows implements traces.Source. It returns 0, because windows are endless.
func (s *Source) Windows() int { return 0 }

// Open implements traces.Source. Window -1 is the workload of seed; windows 0, 1, … are other workloads that also
// depend on seed alone.
func (s *Source) Open(seed uint64, window int) (traces.Stream, error) {
	own := rng.At(seed, rng.Hash("traces/synth/window"), uint64(int64(window)))
	cfg := s.cfg
	cfg.Start = time.Duration(rng.At(own, rng.Hash("start"))%(7*24)) * time.Hour
	return New(cfg, own)
}

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
