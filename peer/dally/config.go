package dally

import (
	"slices"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// GPUs of a machine, and of one of its two slots.
const (
	perMachine = 8
	perSlot    = 4
)

// Auto as both timers means that Dally tunes them itself.
const Auto = -1

// Config names one run.
type Config struct {
	Racks    int    `yaml:"racks"`
	Machines int    `yaml:"machines"` // in a rack, each with two slots of four GPUs
	Policy   string `yaml:"policy"`   // dally, tiresias or gandiva
	Variant  string `yaml:"variant"`  // waiting-only or published; gandiva only has published
	// RackWait and NetworkWait are Dally's timers, in leases: how long a job declines GPUs that are not inside a
	// machine, and GPUs that are not inside a rack. Both Auto = tuned.
	RackWait    float64 `yaml:"rack_wait"`
	NetworkWait float64 `yaml:"network_wait"`
	Lease       float64 `yaml:"lease"`       // seconds
	Granularity float64 `yaml:"granularity"` // iterations of a block for each GPU
	// number of past leases that the tuner looks at, and the upper limit of a timer
	History float64 `yaml:"history"`
	Seed    int64   `yaml:"seed"` // for gandiva's shuffles
}

// DefaultConfig returns Dally with tuned timers on four racks of four machines, with only waiting jobs asked and
// leases of an hour.
func DefaultConfig() Config {
	return Config{
		Racks: 4, Machines: 4, Policy: "dally", Variant: "waiting-only", RackWait: Auto, NetworkWait: Auto,
		Lease: 3600, Granularity: 10000, History: 24,
	}
}

// Policies returns the schedulers of the authors' program that are rebuilt here.
func Policies() []string { return []string{"dally", "tiresias", "gandiva"} }

// Variants returns the ways in which a pass chooses which jobs to ask.
func Variants() []string { return []string{"waiting-only", "published"} }

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Racks >= 1 && c.Racks <= 1<<12, "racks", c.Racks, "a number of racks, 1 to 4096")
	l.Add(c.Machines >= 1 && c.Machines <= 1<<12, "machines", c.Machines, "a number of machines in a rack, 1 to 4096")
	l.Add(slices.Contains(Policies(), c.Policy), "policy", c.Policy, nearest.OneOf(c.Policy, Policies()))
	l.Add(slices.Contains(Variants(), c.Variant), "variant", c.Variant, nearest.OneOf(c.Variant, Variants()))
	timer := func(v float64) bool { return v == Auto || v >= 0 && v <= 1e9 }
	l.Add(timer(c.RackWait), "rack_wait", c.RackWait, "a number of leases, or -1")
	l.Add(timer(c.NetworkWait), "network_wait", c.NetworkWait, "a number of leases, or -1")
	l.Add(c.Lease > 0 && c.Lease <= 1e12, "lease", c.Lease, "seconds above 0")
	l.Add(c.Granularity >= 1 && c.Granularity <= 1e15, "granularity", c.Granularity, "iterations, 1 or more")
	l.Add(c.History >= 0 && c.History <= 1e9, "history", c.History, "a number of leases, 0 or more")
	return l.Err()
}
