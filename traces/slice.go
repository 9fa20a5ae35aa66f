package traces

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// SortStable sorts jobs by Submit, in place; jobs with equal Submit keep their order. moved counts the jobs that came
// after a job with a later Submit; it is 0 when jobs were in order.
func SortStable(jobs []Job) (moved int) {
	latest := time.Duration(math.MinInt64)
	for i := range jobs {
		if jobs[i].Submit < latest {
			moved++
		} else {
			latest = jobs[i].Submit
		}
	}
	if moved > 0 {
		reorder(jobs)
	}
	return moved
}

// reorder sorts jobs. It finds the order first and then moves each job once, because jobs are large.
func reorder(jobs []Job) {
	type place struct {
		submit time.Duration
		from   int
	}
	order := make([]place, len(jobs))
	for i := range jobs {
		order[i] = place{jobs[i].Submit, i}
	}
	slices.SortFunc(order, func(a, b place) int {
		if c := cmp.Compare(a.submit, b.submit); c != 0 {
			return c
		}
		return cmp.Compare(a.from, b.from)
	})
	for i := range order {
		if order[i].from == i {
			continue
		}
		first, to := jobs[i], i // a cycle: each of its places gets the job of the next
		for {
			from := order[to].from
			order[to].from = to
			if from == i {
				jobs[to] = first
				break
			}
			jobs[to] = jobs[from]
			to = from
		}
	}
}

// ScaleSubmit appends jobs to dst with the gaps between their submits multiplied by f: a job submitted at s moves to s0
// + (s-s0)·f, rounded to the nanosecond, where s0 is the submit of jobs[0]. Deadlines move with their jobs, and the
// order of submits stays. jobs is not changed; with room in dst nothing is allocated. It is an error if f is not a
// positive number or a time would leave the range of time.Duration.
func ScaleSubmit(dst, jobs []Job, f float64) ([]Job, error) {
	if !(f > 0) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("submit times cannot be multiplied by %v: the factor must be a positive number", f)
	}
	n := len(dst)
	dst = append(dst, jobs...)
	if len(jobs) == 0 || f == 1 {
		return dst, nil
	}
	base := jobs[0].Submit
	for i := n; i < len(dst); i++ {
		j := &dst[i]
		off := math.Round(float64(j.Submit-base) * f)
		if math.Abs(off) > maxTime-float64(max(base, 0)) {
			return dst[:n], fmt.Errorf("submit times multiplied by %v leave the range of times (292 years)", f)
		}
		at := base + time.Duration(off)
		if j.Deadline != 0 {
			j.Deadline = moved(j.Deadline, at-j.Submit)
		}
		j.Submit = at
	}
	return dst, nil
}

// moved returns at + by, at most the last time.Duration.
func moved(at, by time.Duration) time.Duration {
	if by > 0 && at > math.MaxInt64-by {
		return math.MaxInt64
	}
	return at + by
}

// maxTime is slightly below the longest time.Duration, so that sums of floats below it convert safely.
const maxTime = math.MaxInt64 - 4096

// Filter copies the jobs that a scheduler can run: those with at most maxGPUs GPUs (0 = any number) and with work to
// do. large counts the jobs above maxGPUs; workless counts the other jobs left out, which have no run time or ask for
// no GPU. jobs is not changed.
func Filter(jobs []Job, maxGPUs int) (kept []Job, large, workless int) {
	kept = make([]Job, 0, len(jobs))
	for i := range jobs {
		switch j := &jobs[i]; {
		case maxGPUs > 0 && j.GPUs > maxGPUs:
			large++
		case j.Work <= 0 || j.GPUs <= 0 || j.GPUMilli <= 0:
			workless++
		default:
			kept = append(kept, *j)
		}
	}
	return kept, large, workless
}

// LoadFactor returns the factor for ScaleSubmit that makes jobs, in order of Submit, offer the given load to a machine
// of gpus GPUs: sum(n·work) / (gpus·span·factor) = load, where n counts shared GPUs by their share and span is the time
// from the first submit to the last. It returns 1 if there is nothing to scale: no span, no work, or a load or gpus
// that is not positive (load 0 means "as recorded"). It allocates nothing.
func LoadFactor(jobs []Job, gpus int, load float64) float64 {
	if len(jobs) == 0 || gpus <= 0 || !(load > 0) || math.IsInf(load, 0) {
		return 1
	}
	var area sum128
	for i := range jobs {
		area.mul(max(0, jobs[i].Milli()), max(0, jobs[i].Work))
	}
	span := jobs[len(jobs)-1].Submit - jobs[0].Submit
	f := area.float() / 1000 / (float64(gpus) * float64(span) * load)
	if span <= 0 || !(f > 0) || math.IsInf(f, 0) {
		return 1
	}
	return f
}
