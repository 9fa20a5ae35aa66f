package sched

import (
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/traces"
)

// Course gives environments that are not put together from Parts their episodes' jobs: a window of the workload, from
// an empty machine, its submits counted from the first one's and stretched to a load.
type Course struct {
	ID      string // of the environment, for errors
	Windows Windows
	Part    traces.Part // where an episode's Split does not say
	Load    float64     // 0 = as recorded
	GPUs    int         // of the cluster

	Jobs  []traces.Job // of the episode
	First int          // place of the first of them in the workload
}

// Begin prepares episode ep: Jobs and First. It returns ep with its part named.
func (c *Course) Begin(ep env.Episode) (env.Episode, error) {
	if ep.Task != nil {
		return ep, fmt.Errorf("%w: %s: this environment has no tasks, got one of %d numbers", env.ErrEpisode, c.ID, len(ep.Task))
	}
	part := c.Part
	if ep.Split != "" {
		p := slices.Index(splits[:], ep.Split)
		if p < 0 {
			return ep, fmt.Errorf("%w: %s: split %q, want train, validation, test or nothing", env.ErrEpisode, c.ID, ep.Split)
		}
		part = traces.Part(p)
	}
	_, counted, at, err := c.Windows.At(part, ep.Seed, ep.Window)
	if err != nil {
		return ep, fmt.Errorf("%w: %s: %w", env.ErrEpisode, c.ID, err)
	}
	f := 1.0
	if c.Load > 0 {
		f = traces.LoadFactor(counted, c.GPUs, c.Load)
	}
	c.Jobs, c.First = append(c.Jobs[:0], counted...), at
	first := counted[0].Submit
	for i := range c.Jobs {
		j := &c.Jobs[i]
		j.Submit -= first
		if f != 1 {
			j.Submit = time.Duration(math.Round(float64(j.Submit) * f))
		}
	}
	return env.Episode{Seed: ep.Seed, Window: ep.Window, Split: splits[part]}, nil
}
