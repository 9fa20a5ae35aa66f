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
}

// DefaultConfig returns the settings under which results are compared.
func DefaultConfig() Config {
	return Config{Gamma: 1, Tau: time.Hour, Window: 256, Warm: 256, Load: 1.1,
		Estimates: sim.Estimates{Mode: sim.EstimateExact}, Forecast: ForecastAuto}
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
	if c.Contested && !c.Estimates.Known() {
		l.Add(false, "contested", fmt.Sprint(c.Contested), "false where there are no estimates")
	}
	return l.Err()
}

// relatives are the values of Config.Relative.
func relatives() []string { return []string{"", "fifo", "sjf", "smallest", "auto"} }

// baseline returns the order that Relative names. auto is sjf, or smallest without estimates: there, an SJF that knows
// the run times would be clairvoyant compared with the agent.
func (c *Config) baseline() string {
	if c.Relative != "auto" {
		return c.Relative
	}
	if !c.Estimates.Known() {
		return "smallest"
	}
	return "sjf"
}
