package gpupick

import (
	"fmt"
	"slices"
	"time"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// The versions of the environment. Episodes of version 1 are windows that begin on an empty cluster and end with the
// last start; those of version 2 are stretches of a cluster in operation (sched.Ongoing).
const (
	ID = "GPUPick-v2"
	V1 = "GPUPick-v1"
)

// Config holds the settings of version 1. A change of a default that changes returns gets a new version.
type Config struct {
	Gamma   float64 `yaml:"gamma"`    // discount of a step, reported as info.discount
	Window  int     `yaml:"window"`   // jobs of an episode
	Load    float64 `yaml:"load"`     // offered load to which submit times are stretched; 0 = as recorded
	MaxGPUs int     `yaml:"max_gpus"` // M, the largest gang; larger jobs are left out of the workload
	Comm    string  `yaml:"comm"`     // how its placement slows a gang down: none or tree
	// what is known of run times: none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA
	Estimates sim.Estimates `yaml:"estimates"`
	Idle      bool          `yaml:"idle"`      // the agent may make a job wait, up to MaxSteps
	MaxSteps  int           `yaml:"max_steps"` // with idle: truncate after this many steps; 0 = never
	TimeAxis  string        `yaml:"time_axis"` // log or linear: of busy
	Row       time.Duration `yaml:"row"`       // of a linear axis, on which 50 rows are the value 1

	Forecast sched.Forecast `yaml:"forecast,omitempty"` // whether observations show the forecast of the job
	// Table shows a row of numbers of each GPU, among them how far it is from those picked, instead of the fields busy and
	// picked. A network can then score all GPUs with the same weights.
	Table bool `yaml:"table,omitempty"`

	Mode sched.Mode `yaml:"-"` // how episodes begin and end
}

// DefaultConfig returns the settings that published results use.
func DefaultConfig() Config {
	return Config{
		Gamma: 0.99, Window: 30, Load: 1.1, MaxGPUs: 8, Comm: "tree", Estimates: sim.Estimates{Mode: sim.EstimateExact},
		MaxSteps: 800, TimeAxis: "log",
		Row: 241500 * time.Millisecond, Forecast: sched.ForecastAuto,
	}
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Gamma > 0 && c.Gamma <= 1, "gamma", c.Gamma, "a number above 0 and up to 1")
	l.Add(c.Window >= 1 && c.Window <= 1<<20, "window", c.Window, "1 to 1048576 jobs")
	l.Add(c.Load == 0 || c.Load >= 0.01 && c.Load <= 100, "load", c.Load,
		"0 (as recorded), or 0.01 to 100 times the cluster")
	l.Add(c.MaxGPUs >= 1 && c.MaxGPUs <= 1024, "max_gpus", c.MaxGPUs, "1 to 1024")
	l.Add(c.Comm == "none" || c.Comm == "tree", "comm", c.Comm, "none or tree")
	l.Add(!c.Estimates.IsZero(), "estimates", c.Estimates.String(), sim.EstimatesWanted)
	l.Add(c.MaxSteps >= 0, "max_steps", c.MaxSteps, "a number of steps, or 0 for none")
	l.Add(c.TimeAxis == "log" || c.TimeAxis == "linear", "time_axis", c.TimeAxis, "log or linear")
	l.Add(c.Row > 0, "row", c.Row, "a time above 0s")
	l.Add(c.Forecast.Valid(), "forecast", c.Forecast, sched.ForecastWanted)
	return l.Err()
}

// Ongoing holds the settings of version 2. A change of a default that changes returns gets a new version.
type Ongoing struct {
	Config `yaml:",inline"`

	Warm      int    `yaml:"warm"`      // jobs before the window, which run from an empty cluster on
	Placement string `yaml:"placement"` // which GPUs they get
}

// OngoingConfig returns the default settings of version 2. The load is one with which random picks keep up.
func OngoingConfig() Ongoing {
	c := Ongoing{Config: DefaultConfig(), Warm: 512, Placement: "closest-b"}
	c.Mode, c.Window, c.Load, c.MaxSteps, c.Table = sched.Ongoing, 64, 0.6, 0, true
	c.Estimates = sim.Estimates{Mode: sim.EstimateHistory}
	return c
}

// Validate reports every fault.
func (c *Ongoing) Validate() error {
	var l fault.List
	l.Join("", c.Config.Validate())
	l.Add(c.Warm >= 0 && c.Warm <= 1<<20, "warm", c.Warm, "0 to 1048576 jobs")
	l.Add(slices.Contains(sched.Placements(), c.Placement), "placement", c.Placement,
		nearest.OneOf(c.Placement, sched.Placements()))
	return l.Err()
}

// Continues reports whether arrivals go on after the counted jobs, as in version 2.
func (c Config) Continues() bool { return c.Mode != sched.Drained }

// suits returns an error if the environment cannot run on c.
func suits(c *cluster.Cluster) error {
	if c.Pool() {
		return fmt.Errorf("%s: a counter of %d GPUs has no machines to choose between; want a cluster of nodes", V1, c.GPUs())
	}
	return nil
}
