package queuerank

import (
	"slices"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// The versions of the environment. Episodes of version 1 are windows that begin on an empty machine and end with the
// last start; those of version 2 are stretches of a machine in operation (sched.Ongoing).
const (
	ID = "QueueRank-v2"
	V1 = "QueueRank-v1"
)

// Is reports whether id is a version of the environment.
func Is(id string) bool { return id == ID || id == V1 }

// Metrics returns the values of Config.Metric, from which the return is computed. All but utilisation are means over
// the jobs of the window, and lower is better.
func Metrics() []string { return []string{"bsld", "wait", "jct", "slowdown", "utilisation"} }

// Common holds the settings of every environment in which the agent chooses the next job: QueueRank-v1, RLScheduler-v1
// and RLTune-v1.
type Common struct {
	Gamma     float64 `yaml:"gamma"`     // discount of a step, reported as info.discount
	Window    int     `yaml:"window"`    // W, jobs of an episode
	Load      float64 `yaml:"load"`      // offered load to which submit times are stretched; 0 = as recorded
	MaxGPUs   int     `yaml:"max_gpus"`  // larger jobs are left out of the workload
	Visible   int     `yaml:"visible"`   // jobs that the agent sees and can choose
	Placement string  `yaml:"placement"` // which GPUs a job gets
	Backfill  string  `yaml:"backfill"`  // none or easy: what may start while the chosen job waits
	// what is known of run times: trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA
	Estimates sim.Estimates `yaml:"estimates"`
	Metric    string        `yaml:"metric"` // S: bsld, wait, jct, slowdown or utilisation
	// Reward is relative: (S_base − S)/max(S_base, S, 1) at the end; minus: −S at the end; or dense: each job's share of
	// −S when it starts.
	Reward string `yaml:"reward"`
	Base   string `yaml:"base"` // the order that relative compares with

	Mode sched.Mode `yaml:"-"` // how episodes begin and end
}

// Config holds the settings of version 1. A change of a default that changes returns gets a new version.
type Config struct {
	Common `yaml:",inline"`
	// Filter redraws training windows whose S under SJF is not between 10 and 150, as RLScheduler filters trajectories.
	Filter bool `yaml:"filter"`

	// Peer is the older form of the environment RLScheduler-v1.
	Peer bool `yaml:"peer,omitempty"`

	// RLTune is the older form of the environment RLTune-v1; the value is its placement. "" = off.
	RLTune string `yaml:"rltune,omitempty"`

	Forecast sched.Forecast `yaml:"forecast,omitempty"` // whether observations show forecasts of single jobs
}

// DefaultCommon returns the settings that published results use.
func DefaultCommon() Common {
	return Common{
		Gamma: 1, Window: 256, MaxGPUs: 1 << 20, Visible: 128, Placement: "first-fit", Backfill: "none",
		Estimates: sim.Estimates{Mode: sim.EstimateTrace}, Metric: "bsld", Reward: "relative", Base: "sjf",
	}
}

// DefaultConfig returns the settings that published results use.
func DefaultConfig() Config { return Config{Common: DefaultCommon(), Forecast: sched.ForecastAuto} }

// bases returns the orders that Base can name: those whose ranks do not change over time.
func bases() []string { return []string{"fifo", "sjf", "f1", "smallest", "area"} }

// Check adds every fault to l. The placement and the base are among those given.
func (c *Common) Check(l *fault.List, placements, bases []string) {
	among := func(key, v string, all []string) { l.Add(slices.Contains(all, v), key, v, nearest.OneOf(v, all)) }
	l.Add(c.Gamma > 0 && c.Gamma <= 1, "gamma", c.Gamma, "a number above 0 and up to 1")
	l.Add(c.Window >= 1 && c.Window <= 1<<20, "window", c.Window, "1 to 1048576 jobs")
	l.Add(c.Load == 0 || c.Load >= 0.01 && c.Load <= 100, "load", c.Load,
		"0 (as recorded), or 0.01 to 100 times the cluster")
	l.Add(c.MaxGPUs >= 1 && c.MaxGPUs <= 1<<20, "max_gpus", c.MaxGPUs, "1 to 1048576")
	l.Add(c.Visible >= 1 && c.Visible <= 4096, "visible", c.Visible, "1 to 4096")
	among("placement", c.Placement, placements)
	l.Add(c.Backfill == "none" || c.Backfill == "easy", "backfill", c.Backfill, "none or easy")
	l.Add(c.Estimates.Known(), "estimates", c.Estimates.String(),
		"estimates, not none: trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA from 0 to 10")
	among("metric", c.Metric, Metrics())
	l.Add(slices.Contains([]string{"relative", "minus", "dense"}, c.Reward), "reward", c.Reward,
		"relative, minus or dense")
	l.Add(c.Reward != "dense" || c.Metric != "utilisation", "reward", c.Reward,
		"relative or minus with metric utilisation, which is no mean over jobs")
	among("base", c.Base, bases)
}

// Older returns c: RLScheduler-v1 and RLTune-v1 have their settings in this older form too.
func (c Config) Older() Config { return c }

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	orders := bases()
	if c.RLTune != "" {
		orders = schedulers.Ranking()
	}
	c.Check(&l, sched.Placements(), orders)
	if c.RLTune != "" {
		l.Add(c.RLTune == "first" || c.RLTune == "programme", "rltune", c.RLTune, "first, programme, or nothing")
		l.Add(!c.Peer, "peer", c.Peer, "false with rltune, which is another program")
		l.Add(!c.Filter, "filter", c.Filter, "false with rltune")
		l.Add(c.Placement == DefaultConfig().Placement, "placement", c.Placement,
			DefaultConfig().Placement+" with rltune, which itself says where jobs start")
		l.Add(c.Forecast != sched.ForecastOn, "forecast", c.Forecast, "auto or off with rltune, whose rows have 7 numbers")
	}
	l.Add(c.Forecast.Valid(), "forecast", c.Forecast, sched.ForecastWanted)
	return l.Err()
}
