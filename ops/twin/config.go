package twin

import (
	"fmt"
	"strings"
	"time"

	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Config says how forecasts are made.
type Config struct {
	Scheduler Model // of the cluster's own scheduler
	Draws     int
	Seed      uint64
	Workers   int
	Horizon   time.Duration // a draw ends after it, whatever waits then
	Interval  int           // percent of the intervals that are shown, up to 90, as Levels have them
	// Alike is the share of the variance of run times, in ranks, that jobs of one user and name have in common, from 0 to
	// below 1.
	Alike float64
	// Arrives says that jobs arrive meanwhile, as in History; else none do.
	Arrives bool
	Able    bool // but only if the history is long enough
	History []traces.Job
	// Predictor forecasts the run times of jobs that arrive; the zero value = time limits.
	Predictor sim.Estimates
	Limit     time.Duration // of jobs that have none
	Stretch   Stretch       // of all intervals, as check has found it
}

// DefaultConfig returns 200 draws, with intervals of 80 %.
func DefaultConfig() Config {
	m, _ := ParseModel("fifo+strict+easy", byLimits)
	return Config{Scheduler: m, Draws: 200, Seed: 1, Horizon: 7 * day, Interval: 80, Alike: 0.5, Limit: day,
		Stretch: Stretch{1, 1}}
}

// Validate reports the first fault.
func (c *Config) Validate() error {
	switch {
	case c.Draws < 2 || c.Draws > 100_000:
		return fault.Mistakef("%s: got %d, want 2 to 100000", fault.Key("draws"), c.Draws)
	case c.Horizon < time.Minute || c.Horizon > 366*day:
		return fault.Mistakef("%s: got %v, want 1m to 8784h", fault.Key("horizon"), c.Horizon)
	case c.Interval < 1 || c.Interval > 90:
		return fault.Mistakef("%s: got %d, want a percentage from 1 to 90", fault.Key("interval"), c.Interval)
	case !(c.Alike >= 0 && c.Alike <= 0.99):
		return fault.Mistakef("%s: got %v, want 0 to 0.99", fault.Key("alike"), c.Alike)
	case c.Limit < time.Second:
		return fault.Mistakef("%s: got %v, want 1s or more", fault.Key("limit"), c.Limit)
	case !c.Stretch.valid():
		return fault.Mistakef("%s: got %v, want two factors from 0.1 to 10, as 1.2,1.5", fault.Key("recalibrate"), c.Stretch)
	}
	return nil
}

// byLimits are the estimates of a scheduler that looks at time limits alone.
var byLimits = sim.Estimates{Mode: sim.EstimateTrace}

// Model is a scheduler that decides in the draws.
type Model struct {
	Name string
	cfg  schedulers.Config
}

// ParseModel reads the name of a heuristic, with what it knows of run times (sim.Estimates). fifo is the cluster's own
// order of its queue; jobs that arrive later stand behind.
func ParseModel(name string, known sim.Estimates) (Model, error) {
	if strings.HasSuffix(name, "+timely") {
		return Model{},
			fault.Mistakef(
				"%s is a model that replays of gymctl steer report alone have; want the one that the report names for the twin, "+
					"such as fifo+strict+easy", name)
	}
	c, err := schedulers.Parse(name)
	if err != nil {
		return Model{}, &fault.Mistake{Err: err}
	}
	c.Estimates, c.Placement = known, "consolidate-best"
	if err := c.Validate(); err != nil {
		return Model{}, &fault.Mistake{Err: fmt.Errorf("policy %s: %w", name, err)}
	}
	if schedulers.Preemptive(c.Order) {
		return Model{},
			fault.Mistakef(
				"%s stops running jobs, and the twin plays on from the middle of their lives; want an order that stops none, as %s",
				name, strings.Join(schedulers.Bases(), ", "))
	}
	if err := rollout.CheckBase(&c); err != nil {
		return Model{},
			fault.Mistakef("%s remembers what it decided before, and the twin plays on from any state; want one of %s", name,
				strings.Join(schedulers.Bases(), ", "))
	}
	return Model{Name: c.Name(), cfg: c}, nil
}

// Place returns the model with another placement (cluster.PlacementNames). consolidate-best keeps a gang on one node,
// or on whole nodes if it is larger, and lets it wait where that is impossible.
func (m Model) Place(placement string) (Model, error) {
	m.cfg.Placement = placement
	if err := m.cfg.Validate(); err != nil {
		return m, fault.Mistakef("%s: %w", fault.Key("placement"), err)
	}
	if err := rollout.CheckBase(&m.cfg); err != nil {
		return m,
			fault.Mistakef(
				"%s: %s remembers what it has placed, and the twin plays on from any state; want another, such as "+
					"consolidate-best or first-fit", fault.Key("placement"), placement)
	}
	return m, nil
}

// causal reports whether the model looks at forecasts.
func (m *Model) causal() bool {
	return m.cfg.Estimates.Causal() && m.cfg.Estimating()
}

// Default returns the model of the scheduler of a kind of cluster, and why.
func Default(kind string) (m Model, why string) {
	if kind == "kubernetes" {
		m, _ = ParseModel("fifo+skip", byLimits)
		return m, "Kueue's BestEffortFIFO and kube-scheduler step over what does not fit"
	}
	m, _ = ParseModel("fifo+strict+easy", byLimits)
	return m,
		"Slurm's sched/backfill goes by priority, and lets later jobs pass that end by their time limits before they would delay the first"
}
