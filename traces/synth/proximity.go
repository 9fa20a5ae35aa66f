package synth

import (
	"math"
	"strconv"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// The job generator of TopDRL's precursor (Deng et al., "GPU Job Scheduler with Deep Reinforcement Learning", Canadian
// AI 2024; code: github.com/djjbxxz/Proximity-DRL), with the settings of its version that picks jobs: at most 8 GPUs
// and 30 steps, a new job in six of ten steps. Lengths and sizes are drawn independently, each from one of four bands
// with probabilities 0.5, 0.1, 0.2 and 0.2, and uniformly within a band. In the original, the shares of the bands are
// exact in every episode and the order is shuffled; here each job draws, so that workloads of any length have the same
// statistics.
const (
	proximityStep    = 241509 * time.Millisecond // 10,000 iterations of vgg19 with batch 256 on a P100, a twentieth
	proximityArrives = 0.6                       // probability of a new job in a step
)

// band is a range of whole numbers and the probability of all bands up to it.
type band struct {
	upTo      float64
	low, high int
}

var (
	proximityLengths = []band{{.5, 1, 9}, {.6, 9, 11}, {.8, 12, 23}, {1, 24, 30}}
	proximitySizes   = []band{{.5, 1, 1}, {.6, 2, 2}, {.8, 2, 4}, {1, 5, 8}}
)

// drawBand returns a number from the band that contains u, chosen by v; both are in [0, 1).
func drawBand(bands []band, u, v float64) int {
	for _, b := range bands {
		if u < b.upTo {
			return b.low + int(v*float64(b.high-b.low+1))
		}
	}
	return bands[len(bands)-1].high
}

// proximity makes the jobs. Submits are multiples of a step divided by cfg.Rate.
func proximity(cfg Config, seed uint64) []traces.Job {
	lengths, sizes, gaps := rng.Stream(seed,
		"synth/proximity/lengths"), rng.Stream(seed, "synth/proximity/sizes"), rng.Stream(seed, "synth/proximity/gaps")
	jobs := make([]traces.Job, 0, cfg.Jobs)
	step := 0
	for len(jobs) < cfg.Jobs {
		for gaps.Float64() >= proximityArrives {
			step++
		}
		n := drawBand(proximitySizes, sizes.Float64(), sizes.Float64())
		length := drawBand(proximityLengths, lengths.Float64(), lengths.Float64())
		step++
		if cfg.MaxGPUs > 0 && n > cfg.MaxGPUs {
			continue
		}
		jobs = append(jobs, traces.Job{
			ID:     strconv.Itoa(len(jobs) + 1),
			Submit: time.Duration(math.Round(float64(step-1) * float64(proximityStep) / cfg.Rate)),
			Work:   time.Duration(math.Round(float64(length) * float64(proximityStep) * cfg.Work)),
			GPUs:   n, GPUMilli: 1000,
		})
	}
	return jobs
}
