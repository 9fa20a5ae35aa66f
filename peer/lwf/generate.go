package lwf

import (
	"strconv"

	"clustergym/internal/rng"
)

// Models returns the four models of the authors' workloads, as jobs of one worker and one iteration.
func Models() []Job {
	return []Job{
		{Name: "vgg16", Model: "vgg16", Workers: 1, Iterations: 1, Size: 526.4, Forward: 36, Backward: 54, Memory: 4527},
		{Name: "resnet50", Model: "resnet50", Workers: 1, Iterations: 1, Size: 99.2, Forward: 25, Backward: 37, Memory: 3213},
		{Name: "inception-v3", Model: "inception-v3", Workers: 1, Iterations: 1, Size: 103, Forward: 35, Backward: 52,
			Memory: 3291},
		{Name: "lstm", Model: "lstm", Workers: 1, Iterations: 1, Size: 251.8, Forward: 32, Backward: 47, Memory: 2751},
	}
}

// sizes are the workers of the jobs of half a workload, and how many have them: Philly's jobs, as the authors condensed
// them.
var sizes = [][2]int{{1, 40}, {2, 7}, {4, 13}, {8, 15}, {16, 4}, {32, 1}}

// Scale is how long jobs are and how fast they arrive.
type Scale struct {
	Span        int64 // in which they arrive, ms
	Least, Most int64 // iterations
}

// Program is the scale of the authors' program, and Paper that of their paper, a hundred times as long.
var (
	Program = Scale{12_000, 10, 60}
	Paper   = Scale{1_200_000, 1000, 6000}
)

// Generate returns a workload like the authors': 160 jobs, twice the sizes of half a workload, with models, iterations
// and arrivals uniform. Their random numbers are not reproduced.
func Generate(s Scale, seed uint64) []Job {
	r := rng.Stream(seed, "peer/lwf/jobs")
	models := Models()
	var jobs []Job
	for _, n := range sizes {
		for range 2 * n[1] {
			j := models[r.IntN(len(models))]
			j.Name, j.Workers = strconv.Itoa(len(jobs)), n[0]
			j.Arrival, j.Iterations = r.Int64N(s.Span), s.Least+r.Int64N(s.Most-s.Least+1)
			jobs = append(jobs, j)
		}
	}
	return jobs
}
