package synth

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// The GPU jobs of SenseTime's Helios clusters (Hu et al., "Characterization and prediction of deep learning workloads
// in large-scale GPU datacenters", SC 2021) according to their published summary over all four clusters: mean run time
// 6,652 s, median 206 s, 3.72 GPUs on average and 1 in the median, 49,300 GPU-seconds a job, so larger jobs run longer.
// The workload is only Helios-like: nothing but these figures is theirs. The shares of sizes were chosen here, as
// powers of two with that mean. Run times are log-normal, cut at 30 days, with one median for gangs of fewer than 8
// GPUs and another for larger ones, solved for the four figures. Arrivals are Poisson, 200 a day, which is a load of
// about 1 for a cluster of 128 GPUs. There are no users, daily cycles or campaigns.
const (
	heliosPerDay = 200
	heliosSpread = 2.575 // standard deviation of log run time
	heliosSmall  = 146.  // median, seconds
	heliosLarge  = 808.
	heliosLarger = 8 // GPUs from which jobs are large
	heliosCut    = 30 * 86400
)

var heliosSizes = []share{{1, .62}, {2, .08}, {4, .10}, {8, .15}, {16, .03}, {32, .015}, {64, .005}}

func helios(cfg Config, seed uint64) []traces.Job {
	arrivals, draws := rng.Stream(seed, "synth/helios/arrivals"), rng.Stream(seed, "synth/helios/jobs")
	jobs := make([]traces.Job, 0, cfg.Jobs)
	at := 0.0
	for len(jobs) < cfg.Jobs {
		at += arrivals.ExpFloat64() * 86400 / heliosPerDay / cfg.Rate
		n := drawShare(draws, heliosSizes)
		median := heliosSmall
		if n >= heliosLarger {
			median = heliosLarge
		}
		run := max(1, min(heliosCut, median*math.Exp(heliosSpread*draws.NormFloat64())))
		if cfg.MaxGPUs > 0 && n > cfg.MaxGPUs {
			continue // the arrival rate of the other jobs stays the same
		}
		jobs = append(jobs, traces.Job{
			ID: strconv.Itoa(len(jobs) + 1), Submit: time.Duration(math.Round(at)) * time.Second,
			Work: time.Duration(max(1, math.Round(run*cfg.Work))) * time.Second, GPUs: n, GPUMilli: 1000,
		})
	}
	return jobs
}

// drawShare draws a size; the shares must sum to 1.
func drawShare(r *rand.Rand, sizes []share) int {
	u := r.Float64()
	for _, s := range sizes {
		if u -= s.of; u < 0 {
			return s.gpus
		}
	}
	return sizes[len(sizes)-1].gpus
}
