package sched

import (
	"fmt"
	"slices"

	"clustergym/env"
	"clustergym/traces"
)

// splits are the values of env.Episode.Split by part.
var splits = [...]string{
	traces.Training: env.SplitTrain, traces.Validation: env.SplitValidation, traces.Test: env.SplitTest,
}

// SplitPart returns the part of a workload that an episode's Split names, and that Split. An empty split stands for
// part, whose Split is returned. id is the environment's; the error is env.ErrEpisode.
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
