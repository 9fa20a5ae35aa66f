package dally

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// Config describes the workload to generate.
type Config struct {
	Jobs    int
	PerDay  float64 // jobs a day, arriving by a Poisson process; 0 = all at the start
	Multi   bool    // only jobs of two GPUs or more, with the statistics of that workload
	MaxGPUs int     // larger jobs are drawn again; 0 = none is too large
	Work    float64 // factor on run times; 0 means 1
}

// share is the number of jobs with a gang size.
type share struct{ gpus, jobs int }

// kind is one model in the authors' workloads: how often it occurs, its gang sizes, the possible seconds of an
// iteration on one GPU (equally likely), and the quantiles of GPU-hours.
type kind struct {
	sizes []share
	multi []share // in the workload without single-GPU jobs; its sum is how often the model occurs there
	times []float64
	hours []float64 // at hourP
}

// hourP are the probabilities of kind.hours. Three of the models have 10 GPU-hours or more, the others 2 to 3, because
// the authors chose the model by the length of the job.
var hourP = []float64{0, .05, .10, .25, .50, .75, .90, .95, .99, 1}

// kinds are in the order of Models. Sizes and times were counted; hours are quantiles of the workload of 500 jobs.
var kinds = []kind{
	{ // AlexNet
		sizes: []share{{1, 27}, {4, 9}, {8, 13}, {16, 4}}, multi: []share{{4, 9}, {8, 14}, {16, 5}, {40, 1}},
		times: []float64{.0002886, .00052, .001228, .001468},
		hours: []float64{2, 2.03, 2.09, 2.18, 2.37, 2.80, 2.89, 2.95, 2.98, 3},
	},
	{ // MobileNetV3
		sizes: []share{{1, 17}, {2, 2}, {4, 15}, {8, 52}, {16, 26}, {32, 10}, {40, 1}, {48, 1}, {56, 1}},
		multi: []share{{2, 2}, {4, 15}, {8, 64}, {16, 28}, {32, 13}, {40, 1}, {48, 1}, {56, 1}},
		times: []float64{.0002871, .0003941, .0007666, .001022},
		hours: []float64{10, 10.9, 11.4, 13.3, 21.7, 48.1, 69.8, 106, 179, 324},
	},
	{ // ResNet18
		sizes: []share{{1, 35}, {4, 3}}, multi: []share{{4, 3}},
		times: []float64{.0001755, .0002476, .0005669, .0006064},
		hours: []float64{2, 2.02, 2.13, 2.33, 2.62, 2.80, 2.87, 2.89, 2.94, 3},
	},
	{ // ResNet50
		sizes: []share{{1, 67}, {2, 7}, {4, 16}, {8, 27}, {16, 7}, {32, 1}},
		multi: []share{{2, 13}, {4, 34}, {8, 59}, {16, 12}, {32, 7}},
		times: []float64{.001306, .001411, .001491, .002312},
		hours: []float64{10, 10.7, 11.3, 13.5, 21, 36.8, 52.7, 63, 81.9, 211},
	},
	{ // VGG
		sizes: []share{{1, 30}, {4, 2}, {8, 2}}, multi: []share{{4, 2}, {8, 2}},
		times: []float64{.0001346, .0001427, .0002811, .0003335},
		hours: []float64{2, 2.03, 2.08, 2.22, 2.37, 2.80, 2.85, 2.90, 2.96, 3},
	},
	{ // BERT
		sizes: []share{{1, 94}, {2, 4}, {4, 7}, {8, 15}, {16, 5}},
		multi: []share{{2, 26}, {3, 1}, {4, 33}, {8, 51}, {16, 11}, {32, 3}},
		times: []float64{.00834, .00834, .01178}, hours: []float64{10, 11, 11.2, 13.3, 26.4, 49.9, 60.3, 69.8, 107, 135},
	},
}

// Generate makes a workload with the statistics of the authors' workloads (500 jobs of Helios from March and April
// 2020, and the 411 without single-GPU jobs): models, gang sizes by model, GPU-hours by model. As in theirs, arrivals
// are Poisson without a daily cycle. The same Config and seed give the same jobs. cfg's Jobs must be positive.
func Generate(cfg Config, seed uint64) []traces.Job {
	arrivals, draws := rng.Stream(seed, "dally/arrivals"), rng.Stream(seed, "dally/jobs")
	work := cfg.Work
	if work == 0 {
		work = 1
	}
	jobs := make([]traces.Job, 0, cfg.Jobs)
	at := 0.0
	for len(jobs) < cfg.Jobs {
		k, n := drawKind(cfg, draws)
		v := &kinds[k]
		hours := quantile(v.hours, draws.Float64())
		per := v.times[draws.IntN(len(v.times))]
		if cfg.PerDay > 0 {
			at += arrivals.ExpFloat64() * 86400 / cfg.PerDay
		}
		if cfg.MaxGPUs > 0 && n > cfg.MaxGPUs {
			continue // the arrival rate of the other jobs stays the same
		}
		iterations := math.Max(1, math.Round(hours*work*3600/per))
		jobs = append(jobs, traces.Job{
			ID: strconv.Itoa(len(jobs) + 1), Model: models[k].Name, Profile: models[k], GPUs: n, GPUMilli: 1000,
			Submit: time.Duration(math.Round(at * 1e9)), Iterations: int64(iterations),
			Work: time.Duration(math.Round(iterations * per / float64(n) * 1e9)),
		})
	}
	return jobs
}

// drawKind draws a model and a gang size.
func drawKind(cfg Config, r *rand.Rand) (kind, gpus int) {
	all := 0
	for i := range kinds {
		all += kinds[i].count(cfg.Multi)
	}
	u := r.IntN(all)
	for i := range kinds {
		if c := kinds[i].count(cfg.Multi); u >= c {
			u -= c
			continue
		}
		sizes := kinds[i].sizes
		if cfg.Multi {
			sizes = kinds[i].multi
		}
		for _, s := range sizes {
			if u < s.jobs {
				return i, s.gpus
			}
			u -= s.jobs
		}
	}
	panic("dally: a draw beyond all shares")
}

// count returns how many jobs of the workload have this model.
func (k *kind) count(multi bool) int {
	sizes, n := k.sizes, 0
	if multi {
		sizes = k.multi
	}
	for _, s := range sizes {
		n += s.jobs
	}
	return n
}

// quantile returns the value at probability u, interpolated between the logarithms of the tabulated values.
func quantile(values []float64, u float64) float64 {
	for i := 1; i < len(hourP); i++ {
		if u < hourP[i] {
			f := (u - hourP[i-1]) / (hourP[i] - hourP[i-1])
			return values[i-1] * math.Pow(values[i]/values[i-1], f)
		}
	}
	return values[len(values)-1]
}
