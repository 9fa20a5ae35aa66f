package rltune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"clustergym/experiments/study"
	"clustergym/experiments/study/cell"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/lab/workload"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// widest is the largest gang that RLTune's Philly-like cluster runs: all nodes of 8 GPUs.
const widest = 160

// seed is the generators'.
const seed = 7

// generators make the generated workloads.
var generators = map[string]func(jobs int) ([]traces.Job, error){"philly-like": phillyLike, "helios-like": heliosLike,
	"pai-like": paiLike}

func generated() []string {
	return []string{"philly-like", "helios-like", "pai-like"}
}

// phillyLike is the jobs of the generator philly-users that ask for 2 to 160 GPUs, until there are n: of those of one
// GPU, which are nine in ten, 192 GPUs never have a queue within a window.
func phillyLike(n int) ([]traces.Job, error) {
	c := synth.DefaultConfig()
	c.Profile, c.Jobs, c.MaxGPUs = "philly-users", 20*n, widest
	all, err := synth.Generate(c, seed)
	if err != nil {
		return nil, err
	}
	return firstOf(several(all), n)
}

// several returns the jobs of 2 to 160 whole GPUs that run for a second or longer.
func several(jobs []traces.Job) []traces.Job {
	return slices.DeleteFunc(jobs, func(j traces.Job) bool {
		return j.GPUs < 2 || j.GPUs > widest || j.GPUMilli != 1000 || j.Work < time.Second
	})
}

func firstOf(jobs []traces.Job, n int) ([]traces.Job, error) {
	if len(jobs) < n {
		return nil, fmt.Errorf("the generator makes %d jobs of 2 to %d GPUs, want %d", len(jobs), widest, n)
	}
	return jobs[:n], nil
}

// heliosLike is the jobs of the generator helios, with users. Each is in one of the five virtual clusters of 6, 4, 3, 2
// and 2 nodes, drawn in proportion to their nodes among those that can run the job.
func heliosLike(n int) ([]traces.Job, error) {
	c := synth.DefaultConfig()
	c.Profile, c.Jobs, c.MaxGPUs = "helios", n, 48
	jobs, err := synth.Generate(c, seed)
	if err != nil {
		return nil, err
	}
	nodes := []int{6, 4, 3, 2, 2}
	r := rng.Stream(seed, "rltune/helios-like")
	for i := range jobs {
		jobs[i].VC = fmt.Sprintf("vc%d", 1+draw(r, nodes, func(k int) bool { return 8*nodes[k] >= jobs[i].GPUs }))
	}
	habits(jobs, r)
	return jobs, nil
}

// draw returns an index with a probability in proportion to its weight, among those that ok allows, of which there must
// be one.
func draw(r *rand.Rand, weights []int, ok func(k int) bool) int {
	sum := 0
	for k, w := range weights {
		if ok(k) {
			sum += w
		}
	}
	u := r.IntN(sum)
	for k, w := range weights {
		if ok(k) {
			if u -= w; u < 0 {
				return k
			}
		}
	}
	panic("rltune: draw")
}

// paiLike is jobs for the five pools of GPU types, drawn in proportion to their GPUs, most of one or two GPUs. Run
// times are log-normal, with a median of a quarter of an hour, 90 s to 2.5 h in the middle four fifths. Nothing but the
// pools is PAI's.
func paiLike(n int) ([]traces.Job, error) {
	types := []string{"T4", "MISC", "P100", "V100", "V100M32"}
	gpus := []int{16, 64, 30, 80, 64}
	sizes, shares := []int{1, 2, 4, 8, 16, 32}, []int{40, 20, 14, 14, 8, 4}
	r := rng.Stream(seed, "rltune/pai-like")
	jobs := make([]traces.Job, n)
	at := 0.0
	for i := range jobs {
		at += 60 * r.ExpFloat64()
		size := sizes[draw(r, shares, func(int) bool { return true })]
		pool := draw(r, gpus, func(k int) bool { return gpus[k] >= size })
		run := min(7*86400, math.Ceil(900*math.Exp(1.8*r.NormFloat64())))
		jobs[i] = traces.Job{
			ID: strconv.Itoa(i + 1), Submit: time.Duration(at) * time.Second, Work: time.Duration(run) * time.Second,
			GPUs: size, GPUMilli: 1000, GPUTypes: []string{types[pool]},
		}
	}
	habits(jobs, r)
	return jobs, nil
}

// habits gives jobs users, and the users run times of their own: seven tenths of the variance of the scores that order
// the run times are the user's. The run times of jobs below 8 GPUs, and of those from 8 on, stay the same; only their
// order changes.
func habits(jobs []traces.Job, r *rand.Rand) {
	const users, own = 40, 0.7
	levels := make([][2]float64, users)
	weights := make([]int, users)
	for u := range levels {
		levels[u] = [2]float64{r.NormFloat64(), r.NormFloat64()}
		weights[u] = 1000 / (u + 1)
	}
	type scored struct {
		at    int
		score float64
	}
	var classes [2][]scored
	for i := range jobs {
		u := draw(r, weights, func(int) bool { return true })
		jobs[i].User = fmt.Sprintf("u%d", u)
		k := 0
		if jobs[i].GPUs >= 8 {
			k = 1
		}
		classes[k] = append(classes[k], scored{i, math.Sqrt(own)*levels[u][k] + math.Sqrt(1-own)*r.NormFloat64()})
	}
	for _, class := range classes {
		var runs []time.Duration
		for _, c := range class {
			runs = append(runs, jobs[c.at].Work)
		}
		slices.Sort(runs)
		slices.SortStableFunc(class, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
		for i, c := range class {
			jobs[c.at].Work = runs[i]
		}
	}
}

// jobs generates or reads the jobs of w.
func (w *workloadSpec) jobs(ctx context.Context) ([]traces.Job, error) {
	if w.File == "" {
		return generators[w.Name](w.Jobs)
	}
	c := workload.DefaultTraceConfig()
	c.File = w.File
	all, _, err := workload.LoadTraceContext(ctx, c)
	if err != nil {
		return nil, err
	}
	jobs := several(all)
	if least := 20 * w.Window; len(jobs) < least {
		return nil, fault.Mistakef("%s: %d of its jobs ask for 2 to %d GPUs, want %d or more", w.File, len(jobs), widest,
			least)
	}
	return jobs, nil
}

// write writes the jobs of w to path.
func (w *workloadSpec) write(ctx context.Context, path string) ([]traces.Job, error) {
	jobs, err := w.jobs(ctx)
	if err != nil {
		return nil, err
	}
	return jobs, cell.WriteJobs(path, jobs)
}

// given returns the workloads that p's folder has, or that are generated, and the names of the others.
func (s *settings) given(p study.Plan) (specs []workloadSpec, absent []string, err error) {
	return workload.Given(p.Data, s.Workloads, func(w *workloadSpec) (string, *string) { return w.Name, &w.File })
}
