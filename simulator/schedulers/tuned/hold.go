package tuned

import (
	"math"

	"clustergym/internal/fault"
	"clustergym/simulator/sim"
)

// Hold are the weights of hold, an order that can hold jobs back although they fit. It never stops a running job. What
// is known of run times, and what is free, decides; nothing is remembered, so it can play on from any state.
//
// Let r be the estimated run time of a job in hours, at least one second, g its GPUs, w the hours for which it has
// waited, G the GPUs of the cluster and q those for which all waiting jobs ask. Jobs are served in order of
//
//	log r + Width·log g + Spread·s
//
// least first, where s is the logarithm of the forecast's mean over its median, 0 for estimates that are no forecasts.
// Those that do not fit are passed over. While any job runs, one that fits is held back if
//
//	Base + Time·log r + Wide·log g + Unsure·s + Full·u + Blocked·b + Both·b·log r + Age·log(1 + w/r) + Queue·log(1 + q/G) + Delay·d + Later·log(1 + l) > 0
//
// u is the share of G that is taken once the job has started, and b the share that is blocked for as long as it runs:
// its own GPUs, and those of each running job, times the part of r for which that job goes on. Let f be the first job
// in line that does not fit. If it is before this one, and this one would take GPUs that f could have before r is over,
// then d is 1 and l the time for which f would wait for them, over the run time of f; otherwise both are 0.
//
// A running job goes on for its estimate less the time that it has run. With forecasts, that is the median of jobs that
// have run for so long.
type Hold struct {
	Width  float64 `yaml:"width"`
	Spread float64 `yaml:"spread"`

	Base    float64 `yaml:"base"`
	Time    float64 `yaml:"time"`
	Wide    float64 `yaml:"wide"`
	Unsure  float64 `yaml:"unsure"`
	Full    float64 `yaml:"full"`
	Blocked float64 `yaml:"blocked"`
	Both    float64 `yaml:"both"`
	Age     float64 `yaml:"age"`
	Queue   float64 `yaml:"queue"`
	Delay   float64 `yaml:"delay"`
	Later   float64 `yaml:"later"`
}

// HoldNames returns the names of the weights, in the order of Hold.Weights.
func HoldNames() []string {
	return []string{"width", "spread", "base", "time", "wide", "unsure", "full", "blocked", "both", "age", "queue",
		"delay", "later"}
}

// Weights returns where the weights are, in the order of HoldNames.
func (h *Hold) Weights() []*float64 {
	return []*float64{&h.Width, &h.Spread, &h.Base, &h.Time, &h.Wide, &h.Unsure, &h.Full, &h.Blocked, &h.Both, &h.Age,
		&h.Queue, &h.Delay, &h.Later}
}

// IsZero reports whether no weights are given.
func (h Hold) IsZero() bool { return h == Hold{} }

// Validate reports every fault.
func (h *Hold) Validate() error {
	var l fault.List
	for i, w := range h.Weights() {
		l.Add(math.Abs(*w) <= HeaviestHold || w == &h.Base && *w == unheld, HoldNames()[i], *w, "a number from -1e6 to 1e6")
	}
	return l.Err()
}

// DefaultHold returns the weights that hold has with these estimates if none are given. gymctl tune has found them for
// the workloads of quickstart-exact and, if estimates are forecasts, quickstart; docs/reference/schedulers.md says how
// well they carry over to others.
func DefaultHold(e sim.Estimates) Hold {
	if e.Causal() {
		return Hold{
			Width: 0.68, Spread: 0.08,
			Base: -2.33, Time: -0.07, Wide: 0.41, Unsure: -0.04, Full: 1.63, Blocked: 0.61, Both: 0.41, Age: -0.8, Queue: -1.08,
			Delay: 0.17, Later: 0.1,
		}
	}
	return Hold{
		Width: 0.85,
		Base:  -3.04, Time: 0.11, Wide: 0.31, Full: 2.47, Blocked: 0.12, Both: 0.16, Age: -0.61, Queue: -0.12, Delay: 0.34,
		Later: 0.35,
	}
}

// SteadyHold returns the weights that hold has in environments of version 2, clusters in operation, if none are given.
// With forecasts, gymctl tune has found them on draws of the quick start's workload: on 256 other draws of 2,000 jobs
// they are ahead of the weights that were found on jobs stretched to a load of 0.7 by 4.5 % [1.6, 7.2]
// (docs/guides/tune.md). With other estimates they are DefaultHold.
func SteadyHold(e sim.Estimates) Hold {
	if e.Causal() {
		return Hold{
			Width: 1.29, Spread: -0.01,
			Base: -2.93, Time: 0.05, Wide: 0.71, Unsure: -0.08, Full: 2.18, Blocked: 1.28, Both: 0.16, Age: -0.54, Queue: -0.78,
			Delay: -0.18, Later: 0.14,
		}
	}
	return DefaultHold(e)
}

// HeaviestHold is the bound of a weight's size.
const HeaviestHold = 1e6

// unheld is a Base that holds nothing back, whatever the other weights.
const unheld = -1e300

// Unheld returns the weights of the same order, which holds nothing back.
func (h Hold) Unheld() Hold { return Hold{Width: h.Width, Spread: h.Spread, Base: unheld} }
