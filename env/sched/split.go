package sched

import (
	"fmt"
	"slices"

	"clustergym/env"
	"clustergym/traces"
)

// SplitPart returns the part of a workload that an episode's Split names, part where it names none, and the Split that
// names it. id is the environment's, for the error, which is env.ErrEpisode.
func SplitPart(id, split string, part traces.Part) (traces.Part, string, error) {
	if split == "" {
		return part, splits[part], nil
	}
	p := slices.Index(splits[:], split)
	if p < 0 {
		return 0, "", fmt.Errorf("%w: %s: split %q, want train, validation, test or nothing", env.ErrEpisode, id, split)
	}
	return traces.Part(p), split, nil
}
