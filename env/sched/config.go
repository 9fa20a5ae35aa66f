package sched

import (
	"fmt"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Config holds the settings that JobSelect-v1 and PolicyMix-v1 share.
type Config struct {
	Gamma  float64       `yaml:"gamma"`  // discount per tau
	Tau    time.Duration `yaml:"tau"`    // of simulated time
	Window int           `yaml:"window"` // W, counted jobs of an episode
	Warm   int           `yaml:"warm"`   // jobs before the window that fill the cluster; 0 = empty cluster
	// offered load to which submit times are stretched; 0 = as recorded
	Load float64 `yaml:"load"`
	// one of relatives: subtract what that baseline (skip) earns at the same time
	Relative string `yaml:"relative"`
	// training: draw windows again where FIFO skip and SJF skip differ by < 1 %
	Contested bool          `yaml:"contested"`
	Horizon   time.Duration `yaml:"horizon"`   // truncate this long after the window's first submit; 0 = never
	MaxSteps  int           `yaml:"max_steps"` // truncate after this many steps; 0 = never
	// what is known of run times: none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA
	Estimates sim.Estimates `yaml:"estimates"`
	// whether observations show forecasts of single jobs: auto, on or off
	Forecast Forecast `yaml:"forecast,omitempty"`
	// Ahead is the rule of the warm-up of ongoing episodes, over the whole queue with admission skip: fifo, sjf, smallest,
	// or auto, which is sjf, and smallest without estimates. "" = fifo.
	Ahead string `yaml:"ahead,omitempty"`

	// ID is the environment's version, "" = version 1, and Mode how its episodes begin and end. Both follow from the
	// environment that is asked for, not from a key.
	ID   string `yaml:"-"`
	Mode Mode   `yaml:"-"`
}

// Mode is how episodes begin and end.
type Mode uint8

const (
	// Drained episodes, those of version 1, begin with the jobs that run after a warm-up; the jobs that wait then leave.
	// No job arrives after the counted ones, and the episode lasts until they have ended. Every window is stretched to the
	// load by a factor of its own.
	Drained Mode = iota
	// Ongoing episodes, those of version 2, are stretches of time of a cluster in operation: they begin with the queue
	// that the warm-up has left and are truncated when the first job after the counted ones arrives. All jobs in the
	// system are the agent's. The whole workload has one factor.
	Ongoing
	// Streamed episodes are those of evaluations: the policy plays all jobs of the window, those before and after the
	// counted ones too, on a cluster that is empty at first, until the counted ones have ended. The whole workload has one
	// factor.
	Streamed
)

// Continues reports whether arrivals go on after the counted jobs, as in version 2.
func (c Config) Continues() bool { return c.Mode != Drained }

// DefaultConfig returns the settings under which results are compared.
func DefaultConfig() Config {
	return Config{Gamma: 1, Tau: time.Hour, Window: 256, Warm: 256, Load: 1.1,
		Estimates: sim.Estimates{Mode: sim.EstimateExact}, Forecast: ForecastAuto}
}

// OngoingConfig returns the default settings of an environment of version 2, called id. A policy knows what a cluster
// knows: forecasts from the jobs that have ended.
func OngoingConfig(id string) Config {
	c := DefaultConfig()
	c.ID, c.Mode, c.Ahead = id, Ongoing, "auto"
	c.Warm, c.Load, c.Estimates = 512, 0.6, sim.Estimates{Mode: sim.EstimateHistory}
	return c
}

// Validate reports every fault. Which estimates an environment takes, it checks itself.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Gamma > 0 && c.Gamma <= 1, "gamma", c.Gamma, "a number above 0 and up to 1")
	l.Add(c.Tau > 0, "tau", c.Tau, "a time above 0s")
	l.Add(c.Window >= 1 && c.Window <= 1<<20, "window", c.Window, "1 to 1048576 jobs")
	l.Add(c.Warm >= 0 && c.Warm <= 1<<20, "warm", c.Warm, "0 to 1048576 jobs")
	l.Add(c.Load == 0 || c.Load >= 0.01 && c.Load <= 100, "load", c.Load,
		"0 (as recorded), or 0.01 to 100 times the cluster")
	l.Add(slices.Contains(relatives(), c.Relative), "relative", c.Relative, `"", fifo, sjf, smallest or auto`)
	l.Add(c.Horizon >= 0 && c.Horizon <= traces.MaxTime, "horizon", c.Horizon,
		"a time of at most 146 years, or 0s for none")
	l.Add(c.MaxSteps >= 0, "max_steps", c.MaxSteps, "a number of steps, or 0 for none")
	l.Add(c.Forecast.Valid(), "forecast", c.Forecast, ForecastWanted)
	l.Add(slices.Contains(aheads(), c.Ahead), "ahead", c.Ahead, "auto, fifo, sjf or smallest")
	l.Add(c.Ahead == "" || c.Mode != Drained, "ahead", c.Ahead, `"": episodes of version 1 warm up by fifo`)
	l.Add(!c.Contested || c.Mode != Ongoing, "contested", fmt.Sprint(c.Contested),
		"false: what FIFO and SJF differ by is not known before the episode has ended")
	if c.Contested && !c.Estimates.Known() {
		l.Add(false, "contested", fmt.Sprint(c.Contested), "false where there are no estimates")
	}
	return l.Err()
}

// relatives are the values of Config.Relative.
func relatives() []string { return []string{"", "fifo", "sjf", "smallest", "auto"} }

// aheads are the values of Config.Ahead.
func aheads() []string { return []string{"", "auto", "fifo", "sjf", "smallest"} }

// baseline returns the order that Relative names.
func (c *Config) baseline() string { return c.order(c.Relative) }

// order returns the order called name. auto is sjf, or smallest without estimates: there, an SJF that knows the run
// times would be clairvoyant compared with the agent.
func (c *Config) order(name string) string {
	if name != "auto" {
		return name
	}
	if !c.Estimates.Known() {
		return "smallest"
	}
	return "sjf"
}
