package workerplace

import (
	"fmt"
	"math"

	"clustergym/internal/fault"
)

// ID names version 1, whose table of interference is the same in all episodes, and V2 version 2, in which every episode
// draws its own.
const (
	ID = "WorkerPlace-v1"
	V2 = "WorkerPlace-v2"
)

// Config says how large the cluster is and what comes.
type Config struct {
	Servers int `yaml:"servers"` // M
	GPUs    int `yaml:"gpus"`    // of each
	CPUs    int `yaml:"cpus"`    // of each
	Memory  int `yaml:"memory"`  // of each, GB
	Slots   int `yaml:"slots"`   // waiting jobs that are seen, the oldest
	Jobs    int `yaml:"jobs"`    // of an episode

	Interval float64 `yaml:"interval"` // seconds between two decisions
	Arrivals float64 `yaml:"arrivals"` // jobs an interval in the mean, Poisson, at most 10
	Length   float64 `yaml:"length"`   // intervals that a job takes alone, in the mean over types

	Comm string `yaml:"comm"` // allreduce or ps: how workers exchange gradients
	// exponent of what jobs keep beside each other: 0 = none, 1 = as drawn
	Interference float64 `yaml:"interference"`
	// exponent of what a job loses beside every two others on one server, on top of the pairs; times Interference
	Crowding float64 `yaml:"crowding,omitempty"`
	// seed of the table of interference; in version 2, 0 = each episode draws its own from its seed
	Table uint64 `yaml:"table"`
	// deviation of the logarithm of a measured speed; the true one is not changed
	Noise float64 `yaml:"noise"`
	// probability that a server fails in an interval, which is lost to its jobs
	Failures float64 `yaml:"failures"`

	Reward string `yaml:"reward"` // jct or progress
	Obs    string `yaml:"obs"`    // flat, or pairs: one row of features for every action
	Limit  int    `yaml:"limit"`  // intervals after which an episode is cut off

	Drawn bool `yaml:"-"` // version 2
}

// ID returns the environment's.
func (c *Config) ID() string {
	if c.Drawn {
		return V2
	}
	return ID
}

// redraws reports whether every episode has a table of its own.
func (c *Config) redraws() bool { return c.Drawn && c.Table == 0 }

// DrawnConfig returns the default settings of version 2.
func DrawnConfig() Config {
	c := DefaultConfig()
	c.Drawn, c.Table = true, 0
	return c
}

// DefaultConfig is version 1: 6 servers of 8 GPUs and 60 jobs that keep about four fifths of them busy.
func DefaultConfig() Config {
	return Config{
		Servers: 6, GPUs: 8, CPUs: 32, Memory: 128, Slots: 20, Jobs: 60,
		Interval: 1200, Arrivals: 3, Length: 3, Comm: "allreduce", Interference: 1, Table: 1,
		Reward: "jct", Obs: "flat", Limit: 500,
	}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var l fault.List
	count := func(key string, v, most int) {
		l.Add(v >= 1 && v <= most, key, v, fmt.Sprintf("a whole number from 1 to %d", most))
	}
	number := func(key string, v, low, high float64) {
		l.Add(v >= low && v <= high && !math.IsNaN(v), key, v, fmt.Sprintf("a number from %v to %v", low, high))
	}
	count("servers", c.Servers, 1024)
	count("gpus", c.GPUs, 64)
	count("cpus", c.CPUs, 1024)
	count("memory", c.Memory, 1<<16)
	count("slots", c.Slots, 1024)
	count("jobs", c.Jobs, 100_000)
	l.Add(c.CPUs >= largest*workerCPUs && c.Memory >= workerMemory, "cpus", c.CPUs,
		"room for a job of 8 workers of 2 on one server: 16 or more")
	l.Add(c.Servers*c.GPUs >= largest, "gpus", c.GPUs, "at least 8 in all servers together, for the largest job")
	number("interval", c.Interval, 1, 1e6)
	number("arrivals", c.Arrivals, 0.01, maxArrivals)
	number("length", c.Length, 0.01, 1000)
	l.Add(c.Comm == "allreduce" || c.Comm == "ps", "comm", c.Comm, "allreduce or ps")
	number("interference", c.Interference, 0, 4)
	number("crowding", c.Crowding, 0, 4)
	number("noise", c.Noise, 0, 1)
	number("failures", c.Failures, 0, 0.5)
	l.Add(c.Reward == "jct" || c.Reward == "progress", "reward", c.Reward, "jct or progress")
	l.Add(c.Obs == "flat" || c.Obs == "pairs", "obs", c.Obs, "flat or pairs")
	count("limit", c.Limit, 1_000_000)
	return l.Err()
}
