package envs

import (
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/env/workerplace"
	"clustergym/simulator/sim"
)

// The memory of environments is estimated, since it is reserved before they are made. The estimates are upper bounds on
// what the heap holds after whole episodes, metrics for remote players and a snapshot included; a test measures every
// environment over a grid of settings.

// Extent is what the size of an environment follows from besides its settings.
type Extent struct {
	GPUs, Nodes  int // of the cluster
	Tasks, Procs int // of the largest recorded task graph and its platform, 0 = graphs are generated
	Jobs         int // of the longest stream, 0 = windows are played
}

// Extent returns the sizes of w.
func (w *Workload) Extent() Extent {
	var x Extent
	c := &w.Source.Cluster
	x.GPUs, x.Nodes = sizeOf(c)
	x.GPUs -= max(0, c.Pool-1024) // beyond some, processors of a pool are only counted
	if w.Source.Graphs != nil {
		x.Tasks, x.Procs = w.Source.Graphs.Largest()
	}
	return x
}

// little is the memory of an environment without settings.
const little = 2 << 10

// Memory returns an upper bound on the bytes that one environment takes, without the time steps that a caller keeps.
func (d *Descriptor) Memory(s Settings, x Extent) float64 {
	if d.memory == nil {
		return little
	}
	return d.memory(s, x) + little
}

// ownSteps returns the bytes of the time step that an environment keeps for itself.
func (d *Descriptor) ownSteps(spec env.Spec) float64 {
	bytes := 2 * float64(spec.MaskLen()) // its own, and that of the rules which remote players ask
	if !d.Simulated() {
		bytes += 4 * float64(spec.ObsLen())
	}
	return bytes
}

// StepBytes returns the bytes of the time steps of one environment in a vector: the batches before and after a step,
// final observations, and the environment's own.
func StepBytes(spec env.Spec) float64 {
	return 6 * (4*float64(spec.ObsLen()) + float64(spec.MaskLen()))
}

// clusterBytes returns the bytes of one simulated cluster.
func clusterBytes(x Extent) float64 { return 130*float64(x.GPUs) + 350*float64(x.Nodes) }

// queueBytes returns the bytes of an environment over a queue of the given number of jobs. A base policy that plays the
// same jobs has a simulator of its own.
func queueBytes(jobs int, base bool, x Extent) float64 {
	bytes := 128<<10 + 650*float64(jobs) + clusterBytes(x)
	if base {
		bytes += 250*float64(jobs) + clusterBytes(x)
	}
	return bytes
}

// forecastBytes returns the bytes of what is forecast of the given number of jobs: of the predictors, one for each
// simulator, and of the forecasts in observations.
func forecastBytes(est sim.Estimates, f sched.Forecast, jobs, simulators int) float64 {
	bytes := 0.0
	if !est.Causal() {
		simulators = 1 // the other has no predictor
	}
	if f.Remembers(est) {
		bytes += float64(simulators) * (32<<10 + 900*float64(jobs)) // most of them of other users, VCs and sizes
	}
	if f.Shown(est) {
		bytes += 16<<10 + 120*float64(jobs)
	}
	return bytes
}

// simulators returns how many an environment has: its own, and that of a base policy.
func simulators(base bool) int {
	if base {
		return 2
	}
	return 1
}

// windowBytes returns the bytes of an environment over windows whose settings begin with those of c.
func windowBytes(c *sched.Config, x Extent) float64 {
	jobs, base := max(c.Window+c.Warm, x.Jobs), c.Relative != "" || c.Contested
	return queueBytes(jobs, base, x) + forecastBytes(c.Estimates, c.Forecast, jobs, simulators(base))
}

// dagPlaceBytes counts a run time for each task on each processor, the plans, the edges, and the bandwidths of links
// that are drawn one by one.
func dagPlaceBytes(c *dagplace.Config, x Extent) float64 {
	n, m, degree := float64(max(c.Tasks, x.Tasks)), float64(max(c.GPUs, x.Procs)), c.Degree
	if c.Vary {
		degree = 2 * max(degree, 1)
	}
	bytes := 1.2*8*n*m + 450*m + n*(350+50*min(degree, n))
	if c.Vary || c.Links == "random" || x.Procs > 0 {
		bytes += 8.2 * m * m
	}
	return bytes
}

// delayOfferBytes counts an environment over so many jobs of an episode.
func delayOfferBytes(c *delayoffer.Config, jobs int, x Extent) float64 {
	bytes := 32<<10 + 1100*float64(jobs) + clusterBytes(x)
	if c.Relative {
		bytes *= 2 // the timers play the same jobs
	}
	return bytes + forecastBytes(c.Estimates, c.Forecast, jobs, 1)
}

// gpuPickBytes counts an environment over so many jobs of an episode.
func gpuPickBytes(c *gpupick.Config, jobs int, x Extent) float64 {
	return 24<<10 + 1000*float64(jobs) + 0.3*clusterBytes(x) + forecastBytes(c.Estimates, c.Forecast, jobs, 1)
}

func workerPlaceBytes(c *workerplace.Config, _ Extent) float64 {
	return float64(c.Jobs)*(220+5*float64(c.Servers)) + 150*float64(c.Servers) + 8<<10
}

func rankedBytes[C interface{ Older() queuerank.Config }](own *C, x Extent) float64 {
	c := (*own).Older()
	jobs, nodes := max(c.Window, x.Jobs), 0.0
	if c.RLTune != "" { // a simulator more for the base
		nodes = 2*clusterBytes(x) + 1250*float64(jobs)
	}
	plays := simulators(c.Reward == "relative" || c.Filter)
	return 64<<10 + nodes + 1250*float64(jobs) + 24*float64(c.Visible) + 0.35*clusterBytes(x) +
		forecastBytes(c.Estimates, c.Forecast, jobs, plays)
}
