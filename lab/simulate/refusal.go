package simulate

import (
	"errors"
	"fmt"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// WithoutEstimate returns the number of jobs without an estimate and the ID of the first.
func WithoutEstimate(jobs []traces.Job) (n int, first string) {
	for i := range jobs {
		if jobs[i].Estimate > 0 {
			continue
		}
		if n++; n == 1 {
			first = jobs[i].ID
		}
	}
	return n, first
}

// namedJobs is the number of jobs that a message names at most.
const namedJobs = 10

// listIDs joins ids, the first of a number of jobs, and says how many more there are.
func listIDs(ids []string, of int) string {
	s := strings.Join(ids, ", ")
	if more := of - len(ids); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// Refusal describes the jobs that can never fit a cluster.
type Refusal struct {
	count   int
	ids     []string // of the first jobs
	largest int      // largest gang
	noGPU   int      // jobs that ask for no GPU
	hours   float64  // GPU-hours of them, and of all jobs
	all     float64
	why     cluster.Unfit
	jobs    []refusedJob // all of them, if they are to be kept
}

// share returns the refused jobs' share of the workload's GPU time, 0 to 1.
func (r *Refusal) share() float64 {
	if r.all <= 0 {
		return 0
	}
	return r.hours / r.all
}

// Fitting returns the jobs that c can hold when it is empty, and describes the others. If all fit, it returns jobs
// itself.
func Fitting(c *cluster.Cluster, jobs []traces.Job) ([]traces.Job, Refusal) {
	return fitting(c, jobs, false, nil)
}

// fitting is Fitting, and keeps the others as well if keep is true. Those that takes does not take are among the
// others; nil = it takes all.
func fitting(c *cluster.Cluster, jobs []traces.Job, keep bool, takes func(j *traces.Job) bool) ([]traces.Job, Refusal) {
	var never Refusal
	kept := jobs
	for i := range jobs {
		never.all += jobs[i].GPUHours()
		_, fits := c.Request(&jobs[i])
		if fits && (takes == nil || takes(&jobs[i])) {
			if never.count > 0 {
				kept = append(kept, jobs[i])
			}
			continue
		}
		if keep {
			never.jobs = append(never.jobs, refusedJob{jobs[i], i - never.count})
		}
		if never.count == 0 {
			kept = append(make([]traces.Job, 0, len(jobs)), jobs[:i]...)
		}
		if never.count++; len(never.ids) < namedJobs {
			never.ids = append(never.ids, jobs[i].ID)
		}
		if !fits {
			never.why.Count(c, &jobs[i])
		}
		never.hours += jobs[i].GPUHours()
		never.largest = max(never.largest, jobs[i].GPUs)
		if jobs[i].GPUs < 1 {
			never.noGPU++
		}
	}
	return kept, never
}

// Mistake returns a *fault.Mistake that says why r's jobs, of the given number, can never fit cluster c, whose name is
// name, and what to change. asked is true if the user wanted refused jobs to be a mistake.
func (r *Refusal) Mistake(of int, name string, c *cluster.Cluster, asked bool) error {
	var why []string
	if r.largest > c.GPUs() {
		why = append(why, fmt.Sprintf("the largest asks for %s", plain.Count(r.largest, "GPU", "GPUs")))
	} else if r.noGPU < r.count {
		why = append(why, "there is never enough of the GPU types, cores or memory they ask for")
		why = append(why, r.why.Reasons(c)...)
	}
	if r.noGPU > 0 {
		why = append(why, fmt.Sprintf("%s for no GPU", plain.Count(r.noGPU, "asks", "ask")))
	}
	want := errors.New("want a cluster that holds one of them at least")
	if asked {
		want = fault.Errorf("want a cluster that holds them, or no %s, to run without them", fault.Key("fail-refused"))
	}
	return fault.Mistakef("%d of %s can never fit cluster %s (%s): %s; %s; %w",
		r.count, plain.Count(of, "job",
			"jobs"), name, plain.Count(c.GPUs(), "GPU", "GPUs"), listIDs(r.ids, r.count), strings.Join(why, ", "), want)
}
