package stream

import "clustergym/internal/fault"

// The defaults of Config.
const (
	DefaultDraws = 16
	DefaultJobs  = 2000
	DefaultWarm  = 2000
)

// Config says how long streams are. Zero stands for the default of each key.
type Config struct {
	Draws int `yaml:"draws,omitempty"` // of a generated workload, each independent of the others; 0 = 16
	Jobs  int `yaml:"jobs,omitempty"`  // that count in a draw; 0 = 2000
	// Warm is how many jobs of a draw come before those that count, at the least: more do where the queue takes longer to
	// settle (Settle). 0 = 2000.
	Warm int `yaml:"warm,omitempty"`
}

// Filled returns c with its defaults.
func (c Config) Filled() Config {
	for _, k := range []struct {
		to    *int
		value int
	}{{&c.Draws, DefaultDraws}, {&c.Jobs, DefaultJobs}, {&c.Warm, DefaultWarm}} {
		if *k.to == 0 {
			*k.to = k.value
		}
	}
	return c
}

// mostJobs bounds the jobs of a draw, so that a mistyped number is a fault and does not exhaust the memory.
const mostJobs = 10_000_000

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Draws >= 0 && c.Draws <= 10_000, "draws", c.Draws, "1 to 10000 draws of the generator, 0 = 16")
	l.Add(c.Jobs == 0 || c.Jobs >= 10 && c.Jobs <= mostJobs, "jobs", c.Jobs, "10 to 10000000 jobs that count, 0 = 2000")
	l.Add(c.Warm >= 0 && c.Warm <= mostJobs, "warm", c.Warm, "1 to 10000000 jobs before those that count, 0 = 2000")
	return l.Err()
}
