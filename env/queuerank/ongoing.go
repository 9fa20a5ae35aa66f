package queuerank

import (
	"slices"

	"clustergym/env/reward"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Ongoing holds the settings of version 2. A change of a default that changes returns gets a new version.
type Ongoing struct {
	sched.Config `yaml:",inline"`

	MaxGPUs   int     `yaml:"max_gpus"`  // larger jobs are left out of the workload
	Visible   int     `yaml:"visible"`   // jobs that the agent sees and can choose
	Placement string  `yaml:"placement"` // which GPUs a job gets
	Backfill  string  `yaml:"backfill"`  // none or easy: what may start while the chosen job waits
	Reward    string  `yaml:"reward"`    // see package reward
	WaitCost  float64 `yaml:"wait_cost"` // c of reward throughput
}

// OngoingConfig returns the default settings of version 2. Jobs of the workload have requested times, which are known
// when they arrive. The load is one with which every rule of the environment keeps up.
func OngoingConfig() Ongoing {
	c := Ongoing{Config: sched.OngoingConfig(ID), MaxGPUs: 1 << 20, Visible: 128, Placement: "first-fit",
		Backfill: "easy", Reward: "bsld", WaitCost: 2}
	c.Load, c.Estimates = 0.6, sim.Estimates{Mode: sim.EstimateTrace}
	return c
}

// Validate reports every fault.
func (c *Ongoing) Validate() error {
	var l fault.List
	l.Join("", c.Config.Validate())
	among := func(key, v string, all []string) { l.Add(slices.Contains(all, v), key, v, nearest.OneOf(v, all)) }
	l.Add(c.Estimates.Known(), "estimates", c.Estimates.String(),
		"estimates, not none: trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA from 0 to 10")
	l.Add(c.MaxGPUs >= 1 && c.MaxGPUs <= 1<<20, "max_gpus", c.MaxGPUs, "1 to 1048576")
	l.Add(c.Visible >= 1 && c.Visible <= 4096, "visible", c.Visible, "1 to 4096")
	among("placement", c.Placement, sched.Placements())
	l.Add(c.Backfill == "none" || c.Backfill == "easy", "backfill", c.Backfill, "none or easy")
	l.Add(reward.Known(c.Reward), "reward", c.Reward, nearest.OneOf(c.Reward, reward.Names()))
	l.Add(c.Mode != sched.Ongoing || c.Reward != "makespan" && c.Reward != "utilisation", "reward", c.Reward,
		"bsld, jct, wait, slowdown or throughput: a machine in operation has no makespan")
	l.Add(c.WaitCost >= 0 && c.WaitCost <= 1e6, "wait_cost", c.WaitCost, "0 to 1000000")
	return l.Err()
}

// NewOngoing returns an environment of version 2 over the windows w. Episodes without a Split are of part. training
// holds the jobs of the training part; features are scaled by their maxima.
func NewOngoing(cfg Ongoing, spec cluster.Spec, w sched.Windows, training []traces.Job,
	part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	older := DefaultConfig()
	older.Gamma, older.Window, older.Load, older.MaxGPUs, older.Visible = cfg.Gamma, cfg.Window, cfg.Load, cfg.MaxGPUs,
		cfg.Visible
	older.Placement, older.Backfill, older.Estimates, older.Forecast = cfg.Placement, cfg.Backfill, cfg.Estimates,
		cfg.Forecast
	l, parts, err := assembly(older, Program{ID: ID}, spec, training)
	if err != nil {
		return nil, err
	}
	// The warm-up and baselines hold jobs as agents do, so that the queue is one that an agent could have left.
	parts.Windows, parts.Part, parts.Admission, parts.Backfill = w, part, "commit", cfg.Backfill
	if parts.Reward, err = reward.New(cfg.Reward, cfg.WaitCost); err != nil {
		return nil, err
	}
	if parts.Baseline, err = reward.New(cfg.Reward, cfg.WaitCost); err != nil {
		return nil, err
	}
	return l.open(cfg.Config, parts, nil)
}
