package rltune

import (
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// ID is the environment's name and version.
const ID = "RLTune-v1"

// Placements returns the values of Config.Placement: first, the first placement that RLTune's program finds, and
// programme, that of the paper's integer programme.
func Placements() []string { return []string{"first", "programme"} }

// Config holds the settings. Placement is one of Placements, and Base every order that ranks jobs. A change of a
// default that changes returns gets a new version.
type Config struct {
	queuerank.Common `yaml:",inline"`
}

// DefaultConfig returns QueueRank-v1's, with the placement of the paper, whose policies know run times.
func DefaultConfig() Config {
	c := Config{queuerank.DefaultCommon()}
	c.Placement, c.Estimates = "programme", sim.Estimates{Mode: sim.EstimateExact}
	return c
}

// FromOlder returns the settings of QueueRank-v1 with the key rltune.
func FromOlder(c queuerank.Config) Config {
	own := Config{c.Common}
	own.Placement = c.RLTune
	return own
}

// Older returns the settings as QueueRank-v1 has them.
func (c Config) Older() queuerank.Config {
	older := queuerank.Config{Common: c.Common, RLTune: c.Placement, Forecast: sched.ForecastAuto}
	older.Placement = queuerank.DefaultCommon().Placement
	return older
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	c.Check(&l, Placements(), schedulers.Ranking())
	return l.Err()
}
