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
		{Name: "inception-v3", Model: "inception-v3", Workers: 1, Iterations: 1, Size: 103, Forward: 35, Backward: 52, Memory: 3291},
		{Name: "lstm", Model: "lstm", Workers: 1, Iterations: 1, Size: 251.8, Forward: 32, Backward: 47, Memory: 2751},
	}
}

// sizes are the workers of the jobs of half a workload, and how many have them: Philly's jobs, as the authors condensed them.
var sizes = [][2]int{{1, 40}, {2, 7}, {4, 13}, {8, 15}, {16, 4}, {32, 1}}

// Generate returns a workload like the authors': 160 jobs, twice the sizes of half a workload, models and iterations (10 to 60)
// uniform, arrivals uniform over span milliseconds (theirs is 12,000). Their random numbers are not reproduced.
func Generate(span int64, seed uint64) []Job {
	r := rng.Stream(seed, "peer/lwf/jobs")
	models := Models()
	var jobs []Job
	for _, s := range sizes {
		for range 2 * s[1] {
			j := models[r.IntN(len(models))]
			j.Name, j.Workers = strconv.Itoa(len(jobs)), s[0]
			j.Arrival, j.Iterations = r.Int64N(span), 10+r.Int64N(51)
			jobs = append(jobs, j)
		}
	}
	return jobs
}
