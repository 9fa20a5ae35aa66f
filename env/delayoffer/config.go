package delayoffer

import (
	"slices"
	"time"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// The versions of the environment. Episodes of version 1 are windows that begin on an empty cluster and end empty;
// those of version 2 are stretches of a cluster in operation (sched.Ongoing).
const (
	ID = "DelayOffer-v2"
	V1 = "DelayOffer-v1"
)

// Config holds the settings of version 1. A change of a default that changes returns gets a new version.
type Config struct {
	Gamma   float64       `yaml:"gamma"`    // discount per tau
	Tau     time.Duration `yaml:"tau"`      // of simulated time
	Window  int           `yaml:"window"`   // W, jobs of an episode
	Load    float64       `yaml:"load"`     // offered load to which submit times are stretched; 0 = as recorded
	MaxGPUs int           `yaml:"max_gpus"` // larger jobs are left out of the workload
	Comm    string        `yaml:"comm"`     // how a placement slows a gang down: one of sim.CommNames
	Ideal   bool          `yaml:"ideal"`    // run times are compute times (sim.Ring)
	PerGPU  bool          `yaml:"per_gpu"`  // every GPU has its own links (sim.Ring)
	// what is known of run times: none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA
	Estimates sim.Estimates `yaml:"estimates"`
	Relative  bool          `yaml:"relative"`  // subtract what the timers earn on the same jobs at the same time
	MaxSteps  int           `yaml:"max_steps"` // truncate after this many steps; 0 = never
	// Settings of the policy dally: leases, and the timers, which the agent sees and which decide when it is asked.
	Lease       time.Duration `yaml:"lease"`
	History     int           `yaml:"history"`
	Auto        bool          `yaml:"auto"`
	RackWait    float64       `yaml:"rack_wait"`
	NetworkWait float64       `yaml:"nw_wait"`
	Ask         string        `yaml:"ask,omitempty"` // the order in which jobs get offers: one of delay.Asks; "" = nw

	Forecast sched.Forecast `yaml:"forecast,omitempty"` // whether observations show the forecast of the job

	Mode sched.Mode `yaml:"-"` // how episodes begin and end
}

// DefaultConfig returns the settings that published results use.
func DefaultConfig() Config {
	h := schedulers.DefaultConfig()
	return Config{
		Gamma: 1, Tau: time.Hour, Window: 256, MaxGPUs: 128, Comm: "ring", Ideal: true, PerGPU: true,
		Estimates: sim.Estimates{Mode: sim.EstimateExact}, MaxSteps: 20000,
		Lease: h.Lease, History: h.History, Auto: h.Auto, RackWait: h.RackWait, NetworkWait: h.NetworkWait,
		Forecast: sched.ForecastAuto,
	}
}

// Ongoing holds the settings of version 2. A change of a default that changes returns gets a new version.
type Ongoing struct {
	Config `yaml:",inline"`

	Warm   int    `yaml:"warm"`   // jobs before the window, which run under the timers from an empty cluster on
	Reward string `yaml:"reward"` // see package reward
}

// OngoingConfig returns the default settings of version 2. Jobs that run on slow places ask for more GPU time than load
// says: it is one with which the timers keep up.
func OngoingConfig() Ongoing {
	c := Ongoing{Config: DefaultConfig(), Warm: 512, Reward: "jct"}
	c.Mode, c.Load, c.MaxSteps, c.Estimates = sched.Ongoing, 0.25, 0, sim.Estimates{Mode: sim.EstimateHistory}
	return c
}

// Validate reports every fault.
func (c *Ongoing) Validate() error {
	var l fault.List
	l.Join("", c.Config.Validate())
	l.Add(c.Warm >= 0 && c.Warm <= 1<<20, "warm", c.Warm, "0 to 1048576 jobs")
	l.Add(slices.Contains(rewards(), c.Reward), "reward", c.Reward, nearest.OneOf(c.Reward, rewards()))
	return l.Err()
}

// rewards are the values of Ongoing.Reward. The rates of throughput change with leases, at no event of their own.
func rewards() []string { return []string{"jct", "wait", "slowdown", "bsld"} }

// Continues reports whether arrivals go on after the counted jobs, as in version 2.
func (c Config) Continues() bool { return c.Mode != sched.Drained }

// Heuristic returns the configuration of the policy dally with c's leases and timers.
func (c *Config) Heuristic() schedulers.Config {
	h := schedulers.DefaultConfig()
	h.Order, h.Lease, h.History, h.Auto, h.RackWait, h.NetworkWait, h.Ask = "dally", c.Lease, c.History, c.Auto,
		c.RackWait, c.NetworkWait, c.Ask
	return h
}

// Simulator returns the simulator's configuration.
func (c *Config) Simulator() sim.Config {
	s := sim.DefaultConfig()
	s.Comm, s.Ring.Ideal, s.Ring.PerGPU = c.Comm, c.Ideal, c.PerGPU
	return s
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Gamma > 0 && c.Gamma <= 1, "gamma", c.Gamma, "a number above 0 and up to 1")
	l.Add(c.Tau > 0, "tau", c.Tau, "a time above 0s")
	l.Add(c.Window >= 1 && c.Window <= 1<<20, "window", c.Window, "1 to 1048576 jobs")
	l.Add(c.Load == 0 || c.Load >= 0.01 && c.Load <= 100, "load", c.Load,
		"0 (as recorded), or 0.01 to 100 times the cluster")
	l.Add(c.MaxGPUs >= 1 && c.MaxGPUs <= 1<<20, "max_gpus", c.MaxGPUs, "1 to 1048576")
	l.Add(!c.Estimates.IsZero(), "estimates", c.Estimates.String(), sim.EstimatesWanted)
	l.Add(c.MaxSteps >= 0, "max_steps", c.MaxSteps, "a number of steps, or 0 for none")
	l.Add(c.Forecast.Valid(), "forecast", c.Forecast, sched.ForecastWanted)
	s := c.Simulator()
	l.Join("", s.Validate())
	h := c.Heuristic()
	l.Join("", h.Validate())
	return l.Err()
}
