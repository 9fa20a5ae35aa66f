package sched

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/env/cluster"
	"clustergym/traces"
)

// Workload is a trace cut into windows. Any number of environments can share it.
type Workload struct {
	Windows         *traces.Windows
	Large, Workless int // numbers of jobs left out: above MaxGPUs, without work
}

// Taken says which jobs of a workload an environment takes and how they are cut into windows.
type Taken struct {
	MaxGPUs, Window, Warm int
	Estimates             string
}

// Take leaves out the jobs that the environment does not take and cuts the rest into windows. jobs must be in order of
// submit and cfg valid. If jobs could never run on the cluster, the error counts and names them.
func Take(cfg Taken, spec cluster.Spec, jobs []traces.Job) (*Workload, error) {
	c, err := cluster.New(spec)
	if err != nil {
		return nil, err
	}
	w := new(Workload)
	kept, large, workless := traces.Filter(jobs, cfg.MaxGPUs)
	w.Large, w.Workless = large, workless
	var never []string
	count := 0
	for i := range kept {
		if _, ok := c.Request(&kept[i]); !ok {
			if count++; len(never) < 10 {
				never = append(never, kept[i].ID)
			}
		}
		if cfg.Estimates == "trace" && kept[i].Estimate <= 0 {
			return nil, fmt.Errorf("job %s has no estimate in its trace; use estimates exact, none or noisy:SIGMA", kept[i].ID)
		}
	}
	if count > 0 {
		return nil, fmt.Errorf("%d of %d jobs can never fit cluster %s (%d GPUs): %s%s; lower max_gpus or take a larger cluster",
			count, len(kept), spec.Name, c.GPUs(), strings.Join(never, ", "), more(count-len(never)))
	}
	w.Windows, err = traces.NewWindows(kept, cfg.Window, cfg.Warm)
	return w, err
}

func more(n int) string {
	if n > 0 {
		return fmt.Sprintf(" and %d more", n)
	}
	return ""
}

// Placements returns the names of the placements that an environment can use. They place every job that fits, because such
// a job is legal to choose, and remember nothing from one episode to the next.
func Placements() []string {
	return slices.DeleteFunc(cluster.PlacementNames(), func(name string) bool {
		p, err := cluster.NewPlacement(name)
		return err != nil || name == "fgd" || cluster.Constrained(p)
	})
}
