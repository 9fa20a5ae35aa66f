package vec

import (
	"fmt"

	"clustergym/internal/fault"
)

// Autoreset says what happens when the episode of a row ends.
type Autoreset uint8

// The modes, as in Gymnasium.
const (
	// NextStep shows the ended episode's last time step as any other; the next Step ignores that row's action
	// and gives the first time step of its next episode (Kind First, Reward 0).
	NextStep Autoreset = iota
	// SameStep begins the next episode within the Step that ended the last: the row holds the new episode's
	// Obs, Mask and Info beside the old one's Kind, Reward and Elapsed, and what the old one ended with stands
	// in the batch's Final columns. Every Step of every row is a transition.
	SameStep
	// Disabled leaves the row ended: Step is env.ErrResetNeeded for it until Reset.
	Disabled
)

var autoresets = [...]string{"next_step", "same_step", "disabled"}

// String is the name used in YAML and over the bridge.
func (a Autoreset) String() string {
	if int(a) < len(autoresets) {
		return autoresets[a]
	}
	return fmt.Sprintf("Autoreset(%d)", uint8(a))
}

// MarshalText writes the name.
func (a Autoreset) MarshalText() ([]byte, error) {
	if int(a) >= len(autoresets) {
		return nil, fmt.Errorf("vec: no autoreset mode %d", uint8(a))
	}
	return []byte(autoresets[a]), nil
}

// UnmarshalText reads a name.
func (a *Autoreset) UnmarshalText(text []byte) error {
	for i, name := range autoresets {
		if string(text) == name {
			*a = Autoreset(i)
			return nil
		}
	}
	return fmt.Errorf("vec: autoreset %q, want next_step, same_step or disabled", text)
}

// Config of a Vec.
type Config struct {
	// Workers is the number of goroutines that share the rows of one call; below 2 the caller's does it all,
	// which is fastest for environments whose step takes less than some microseconds.
	Workers int `yaml:"workers"`
	// Autoreset is the mode; training uses SameStep.
	Autoreset Autoreset `yaml:"autoreset"`
}

// DefaultConfig is one worker and SameStep.
func DefaultConfig() Config { return Config{Workers: 1, Autoreset: SameStep} }

// Validate reports all faults at once.
func (c Config) Validate() error {
	var l fault.List
	l.Add(c.Workers >= 0, "workers", c.Workers, "a number of goroutines, 0 or more")
	l.Add(int(c.Autoreset) < len(autoresets), "autoreset", c.Autoreset, "next_step, same_step or disabled")
	return l.Err()
}
