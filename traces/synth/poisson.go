package synth

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// PoissonGap is the mean time between two jobs of the profiles poisson, poisson-constant and poisson-hyper at rate 1,
// and the mean run time of their jobs at work 1: on one GPU, rate × work is the offered load.
const PoissonGap = time.Hour

// HyperShare is the share of the short jobs in poisson-hyper: their run times are exponential with mean
// PoissonGap/(2·HyperShare), those of the others with mean PoissonGap/(2·(1−HyperShare)), so that both kinds make half
// of the work. It is (1 + √(3/5))/2, by which the squared coefficient of variation of all is 4.
const HyperShare = 0.8872983346207417

// poissons are the profiles of queueing theory, whose mean waits are known: jobs of one GPU, a Poisson process of
// arrivals without hours or days, and independent run times in units of their mean.
var poissons = map[string]func(r *rand.Rand) float64{
	"poisson":          (*rand.Rand).ExpFloat64,
	"poisson-constant": func(*rand.Rand) float64 { return 1 },
	"poisson-hyper": func(r *rand.Rand) float64 {
		share := HyperShare
		if r.Float64() >= HyperShare {
			share = 1 - HyperShare
		}
		return r.ExpFloat64() / (2 * share)
	},
}

// poisson makes the jobs of one of poissons. Times are exact to the nanosecond and not whole seconds, because run times
// have to be continuous.
func poisson(cfg Config, seed uint64) []traces.Job {
	gaps, works := rng.Stream(seed, "synth/poisson/gaps"), rng.Stream(seed, "synth/poisson/works")
	work := poissons[cfg.Profile]
	jobs := make([]traces.Job, cfg.Jobs)
	at := 0.0 // in gaps
	for i := range jobs {
		at += gaps.ExpFloat64()
		jobs[i] = traces.Job{
			ID:     strconv.Itoa(i + 1),
			Submit: time.Duration(math.Round(at / cfg.Rate * float64(PoissonGap))),
			Work:   max(1, time.Duration(math.Round(work(works)*cfg.Work*float64(PoissonGap)))),
			GPUs:   1, GPUMilli: 1000,
		}
	}
	return jobs
}
