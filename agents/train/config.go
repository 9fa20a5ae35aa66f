package train

import (
	"cmp"
	"fmt"

	"clustergym/internal/fault"
)

// Config says how long to train and how often to record, evaluate and save. All numbers are environment steps,
// counted over all rows. An interval of 0 means never, except for the record and the checkpoint at the end.
type Config struct {
	Steps int64 `yaml:"steps"` // in all
	Envs  int   `yaml:"envs"`  // rows: environments stepped together; changes results
	// a record of progress, after a whole update at least; there is one at the end as well
	LogEvery        int64 `yaml:"log_every"`
	EvalEvery       int64 `yaml:"eval_every"`       // an evaluation of the agent; there is one at the end as well unless 0
	CheckpointEvery int64 `yaml:"checkpoint_every"` // a checkpoint; there is one at the end as well
	Keep            int   `yaml:"keep"`             // checkpoints kept beside the best one; 0 = all
	// Group is how many rows play the same episodes: rows 0 to Group−1 the same, the next Group others, and so on. 0 =
	// every row its own.
	Group int `yaml:"group,omitempty"`

	// Imitate names the policy whose play the agent learns from before its own first step; empty = none.
	Imitate string `yaml:"imitate,omitempty"`
	// ImitateSteps is how many steps of play are recorded; 0 = 50,000.
	ImitateSteps int64 `yaml:"imitate_steps,omitempty"`
	// ImitateEpochs is how often the agent goes through the recording in each round; 0 = 4.
	ImitateEpochs int `yaml:"imitate_epochs,omitempty"`
	// ImitateRounds is the number of rounds; 0 = 1. In all but the first the agent plays and the policy says what it would
	// have done.
	ImitateRounds int `yaml:"imitate_rounds,omitempty"`
	// ImitateLR is the agent's learning rate at the beginning of the imitation, from where it falls linearly to 0; 0 = as
	// in training, and constant.
	ImitateLR float64 `yaml:"imitate_lr,omitempty"`
	// ImitateFrom is another run whose recording of the policy's play is used; what it lacks is recorded.
	ImitateFrom string `yaml:"imitate_from,omitempty"`
}

// Imitation returns the numbers of the imitation with their defaults filled in.
func (c *Config) Imitation() (steps int64, epochs, rounds int) {
	return cmp.Or(c.ImitateSteps, 50_000), cmp.Or(c.ImitateEpochs, 4), cmp.Or(c.ImitateRounds, 1)
}

// DefaultConfig trains for a million steps in 16 environments.
func DefaultConfig() Config {
	return Config{Steps: 1_000_000, Envs: 16, LogEvery: 10_000, EvalEvery: 50_000, CheckpointEvery: 50_000, Keep: 3}
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Steps >= 1, "steps", c.Steps, "1 or more environment steps")
	l.Add(c.Envs >= 1 && c.Envs <= 65536, "envs", c.Envs, "1 to 65536")
	l.Add(c.LogEvery >= 0, "log_every", c.LogEvery, "a number of steps, 0 = only at the end")
	l.Add(c.EvalEvery >= 0, "eval_every", c.EvalEvery, "a number of steps, 0 = never")
	l.Add(c.CheckpointEvery >= 0, "checkpoint_every", c.CheckpointEvery, "a number of steps, 0 = only at the end")
	l.Add(c.Keep >= 0, "keep", c.Keep, "a number of checkpoints, 0 = all")
	l.Add(c.Group == 0 || c.Group >= 2 && c.Envs%c.Group == 0, "group", c.Group,
		fmt.Sprintf("a number from 2 that divides the %d envs, or 0", c.Envs))
	for _, v := range []struct {
		key         string
		value, most int64
		usual       string
	}{
		{"imitate_steps", c.ImitateSteps, 1 << 40, "50,000 steps"}, {"imitate_epochs", int64(c.ImitateEpochs), 1 << 20, "4"},
		{"imitate_rounds", int64(c.ImitateRounds), 1 << 10, "1"},
	} {
		l.Add(v.value >= 0 && v.value <= v.most, v.key, v.value, fmt.Sprintf("1 to %d, or 0 = %s", v.most, v.usual))
		l.Add(v.value == 0 || c.Imitate != "", v.key, v.value, "nothing without imitate, the policy to imitate")
	}
	l.Add(c.ImitateLR >= 0 && c.ImitateLR <= 1, "imitate_lr", c.ImitateLR, "a rate up to 1, or 0 = as in training")
	l.Add(c.ImitateLR == 0 || c.Imitate != "", "imitate_lr", c.ImitateLR, "nothing without imitate, the policy to imitate")
	l.Add(c.ImitateFrom == "" || c.Imitate != "", "imitate_from", c.ImitateFrom,
		"nothing without imitate, the policy to imitate")
	return l.Err()
}
