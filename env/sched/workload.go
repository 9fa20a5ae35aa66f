package sched

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Workload is a trace cut into windows. Any number of environments can share it.
type Workload struct {
	Windows *traces.Windows
	Left    LeftOut
	Offered float64 // the GPU time that the jobs ask for, of the cluster's in the time over which they arrive
}

// LeftOut counts the jobs of a workload that an environment does not take. Shares are of the GPU time, run time × GPUs,
// of all jobs of the workload, 0 to 1.
type LeftOut struct {
	Of         int      `json:"of"`             // jobs of the workload
	Large      int      `json:"above_max_gpus"` // ask for more than MaxGPUs
	LargeShare float64  `json:"above_max_gpus_share"`
	MaxGPUs    int      `json:"max_gpus"`
	Never      int      `json:"never_fit"` // can never fit the cluster
	NeverShare float64  `json:"never_fit_share"`
	NeverIDs   []string `json:"never_fit_ids,omitempty"` // the first of them
	NeverWhy   []string `json:"never_fit_why,omitempty"` // for each reason, how many, in words
	Workless   int      `json:"without_work"`            // have no run time or ask for no GPU
	CPUOnly    int      `json:"-"`                       // of those, ask for no GPU
}

// Jobs returns the number of jobs left out.
func (l *LeftOut) Jobs() int { return l.Large + l.Never + l.Workless }

// Taken says which jobs of a workload an environment takes and how they are cut into windows.
type Taken struct {
	MaxGPUs, Window, Warm int
	Estimates             sim.Estimates
	Forecast              Forecast
	Mode                  Mode
	Load                  float64 // Config.Load, at which a generator makes its jobs; Take does not look at it
}

// Remembers reports whether environments over the workload have predictors, which know what ended before an episode.
func (t *Taken) Remembers() bool {
	return t.Forecast.Remembers(t.Estimates)
}

// Take leaves out the jobs that the environment does not take, or that can never run on the cluster, and cuts the rest
// into windows. jobs must be in order of submit and cfg valid. If no job is left because none fits the cluster, the
// error counts and names them.
func Take(cfg Taken, spec cluster.Spec, jobs []traces.Job) (*Workload, error) {
	c, err := cluster.New(spec)
	if err != nil {
		return nil, err
	}
	w := new(Workload)
	var kept []traces.Job
	if kept, w.Left, err = cfg.keep(c, spec, jobs); err != nil {
		return nil, err
	}
	w.Offered = traces.LoadFactor(kept, c.GPUs(), 1)
	if w.Windows, err = traces.NewWindows(kept, cfg.Window, cfg.Warm); err == nil && cfg.Mode == Ongoing {
		w.Windows, err = w.Windows.Followed()
	}
	return w, err
}

// Keep returns the jobs that the environment takes, and counts the others. The errors are those of Take.
func (t *Taken) Keep(spec cluster.Spec, jobs []traces.Job) ([]traces.Job, LeftOut, error) {
	c, err := cluster.New(spec)
	if err != nil {
		return nil, LeftOut{}, err
	}
	return t.keep(c, spec, jobs)
}

func (t *Taken) keep(c *cluster.Cluster, spec cluster.Spec, jobs []traces.Job) (kept []traces.Job, left LeftOut,
	err error) {
	if kept, left = take(c, t.MaxGPUs, jobs); len(kept) == 0 && left.Never > 0 {
		want := "take a larger cluster"
		if len(left.NeverWhy) > 0 {
			want = strings.Join(left.NeverWhy, "; ")
		}
		return nil, left, fmt.Errorf("%d of %d jobs can never fit cluster %s (%d GPUs), and none is left: %s%s; %s",
			left.Never, len(jobs), spec.Name, c.GPUs(), strings.Join(left.NeverIDs,
				", "), more(left.Never-len(left.NeverIDs)), want)
	}
	if t.Estimates.Mode == sim.EstimateTrace {
		n, first := 0, ""
		for i := range kept {
			if kept[i].Estimate <= 0 {
				if n++; n == 1 {
					first = kept[i].ID
				}
			}
		}
		if n > 0 {
			return nil, left,
				fault.Errorf(
					"%d of %d jobs have no estimate in their trace, the first is %s; use estimates none, history, gbdt, exact or "+
						"noisy:SIGMA, or trace.limit (%s), a time that stands for those that are missing", n, len(kept), first,
					fault.Key("limit"))
		}
	}
	return kept, left, nil
}

// namedJobs is the number of jobs that are named at most.
const namedJobs = 10

// take returns the jobs of at most maxGPUs GPUs that have work and fit the empty cluster c, and counts the others.
func take(c *cluster.Cluster, maxGPUs int, jobs []traces.Job) ([]traces.Job, LeftOut) {
	kept, large, workless := traces.Filter(jobs, maxGPUs)
	left := LeftOut{Of: len(jobs), MaxGPUs: maxGPUs, Large: large, Workless: workless}
	all, above, never := 0.0, 0.0, 0.0
	for i := range jobs {
		if jobs[i].GPUs < 1 {
			left.CPUOnly++
		}
		t := jobs[i].GPUHours()
		if all += t; jobs[i].GPUs > maxGPUs {
			above += t
		}
	}
	var why cluster.Unfit
	fitting := kept[:0]
	for i := range kept {
		j := &kept[i]
		if _, ok := c.Request(j); ok {
			fitting = append(fitting, *j)
			continue
		}
		if left.Never++; len(left.NeverIDs) < namedJobs {
			left.NeverIDs = append(left.NeverIDs, j.ID)
		}
		why.Count(c, j)
		never += j.GPUHours()
	}
	left.NeverWhy = why.Reasons(c)
	if all > 0 {
		left.LargeShare, left.NeverShare = above/all, never/all
	}
	return fitting, left
}

// Sizes are the sizes of an environment that can follow from its workload and cluster.
type Sizes struct {
	MaxGPUs int // of the largest gang that is taken
	Largest int // of the largest gang that fits the cluster
	Jobs    int // jobs taken
	Cut     traces.Cut
	Enough  bool // every part has windows
}

// Fit returns the sizes that suit jobs on a cluster: the largest gang of at most mostGPUs GPUs that fits, and the
// windows that the jobs left are enough for (traces.Fit), not longer than cfg's. keep lists the sizes of cfg that are
// not to be changed. If there are too few jobs for any windows, those of cfg are returned, which Take refuses.
func Fit(cfg Taken, spec cluster.Spec, jobs []traces.Job, mostGPUs int, keep Kept) (Sizes, error) {
	c, err := cluster.New(spec)
	if err != nil {
		return Sizes{}, err
	}
	z := Sizes{MaxGPUs: cfg.MaxGPUs, Largest: 1}
	if !keep.MaxGPUs {
		fitting, _ := take(c, math.MaxInt, jobs)
		z.MaxGPUs = 1
		if len(fitting) == 0 {
			z.MaxGPUs = mostGPUs // Take says why none fits
		}
		for i := range fitting {
			n := fitting[i].GPUs
			if z.Largest = max(z.Largest, n); n <= mostGPUs {
				z.MaxGPUs = max(z.MaxGPUs, n)
			}
		}
	}
	taken, _ := take(c, z.MaxGPUs, jobs)
	z.Jobs = len(taken)
	most := traces.Cut{Length: cfg.Window, Warm: cfg.Warm}
	if cfg.Mode == Ongoing {
		most.Next = 1
	}
	z.Cut, z.Enough = traces.Fit(z.Jobs, most, keep.Window, keep.Warm)
	return z, nil
}

// Kept says which sizes Fit does not change.
type Kept struct{ MaxGPUs, Window, Warm bool }

func more(n int) string {
	if n > 0 {
		return fmt.Sprintf(" and %d more", n)
	}
	return ""
}

// Placements returns the names of the placements that an environment can use. They place every job that fits, because
// such a job is legal to choose, and remember nothing from one episode to the next.
func Placements() []string {
	return slices.DeleteFunc(cluster.PlacementNames(), func(name string) bool {
		p, err := cluster.NewPlacement(name)
		return err != nil || name == "fgd" || cluster.Constrained(p)
	})
}

// stretched returns t times f, at most half of the clock's time, so that the other half is left for the jobs to run.
func stretched(t time.Duration, f float64) time.Duration {
	if f == 1 {
		return t
	}
	return time.Duration(min(math.Round(float64(t)*f), traces.MaxTime/2))
}

// NewSimulator returns a simulator for episodes. A run that does not end before the clock does is cut there, and its
// episode is truncated; without a horizon the simulator would report an error.
func NewSimulator(cfg sim.Config, spec cluster.Spec) (*sim.Simulator, error) {
	if cfg.Horizon == 0 {
		cfg.Horizon = traces.MaxTime
	}
	return sim.New(cfg, spec)
}
