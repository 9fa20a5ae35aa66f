package rlscheduler

import (
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// ID is the environment's name and version.
const ID = "RLScheduler-v1"

// Config holds the settings. A change of a default that changes returns gets a new version.
type Config struct {
	queuerank.Common `yaml:",inline"`

	Filter   bool           `yaml:"filter"`             // as queuerank.Config has it
	Forecast sched.Forecast `yaml:"forecast,omitempty"` // whether observations show forecasts of single jobs
}

// DefaultConfig returns QueueRank-v1's.
func DefaultConfig() Config { return FromOlder(queuerank.DefaultConfig()) }

// FromOlder returns the settings of QueueRank-v1 with peer: true.
func FromOlder(c queuerank.Config) Config { return Config{c.Common, c.Filter, c.Forecast} }

// Older returns the settings as QueueRank-v1 has them.
func (c Config) Older() queuerank.Config {
	return queuerank.Config{Common: c.Common, Filter: c.Filter, Peer: true, Forecast: c.Forecast}
}

// Validate reports every fault.
func (c *Config) Validate() error {
	older := c.Older()
	return older.Validate()
}

// New returns an environment over the windows w, as queuerank.New does. id is its name: ID, or queuerank.V1 for runs
// that have the older keys.
func New(
	id string, cfg Config, spec cluster.Spec, w sched.Windows, training []traces.Job, part traces.Part,
) (*queuerank.Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	own := queuerank.Program{ID: id, Eager: true, Seconds: true, Queue: new(peerQueue)}
	return queuerank.Assemble(cfg.Older(), own, spec, w, training, part)
}
