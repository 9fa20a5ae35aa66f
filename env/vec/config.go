package vec

import (
	"fmt"

	"clustergym/internal/fault"
)

// Autoreset says what happens when a row's episode ends.
type Autoreset uint8

// The modes, as in Gymnasium.
const (
	// NextStep shows the ended episode's last time step like any other; the next Step ignores that row's action and
	// writes the first time step of its next episode (Kind First, Reward 0).
	NextStep Autoreset = iota
	// SameStep begins the next episode within the Step that ended the last one. The row holds the new episode's Obs,
	// Mask and Info beside the old one's Kind, Reward and Elapsed, and the batch's Final columns hold the old
	// episode's last time step. Every Step of every row is a transition.
	SameStep
	// Disabled leaves the row ended: Step fails with env.ErrResetNeeded for it until Reset.
	Disabled
)

var autoresets = [...]string{"next_step", "same_step", "disabled"}

// String returns the name used in YAML and over the bridge.
func (a Autoreset) String() string {
	if int(a) < len(autoresets) {
		return autoresets[a]
	}
	return fmt.Sprintf("Autoreset(%d)", uint8(a))
}

// MarshalText returns the name.
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

// Config configures a Vec.
type Config struct {
	// Workers is the number of goroutines that share the rows of one call. Below 2 the calling goroutine does all the
	// work, which is fastest if a step takes less than a few microseconds.
	Workers int `yaml:"workers"`
	// Autoreset is the mode; training uses SameStep.
	Autoreset Autoreset `yaml:"autoreset"`
}

// DefaultConfig returns one worker and SameStep.
func DefaultConfig() Config { return Config{Workers: 1, Autoreset: SameStep} }

// Validate reports all faults at once.
func (c Config) Validate() error {
	var l fault.List
	l.Add(c.Workers >= 0, "workers", c.Workers, "a number of goroutines, 0 or more")
	l.Add(int(c.Autoreset) < len(autoresets), "autoreset", c.Autoreset, "next_step, same_step or disabled")
	return l.Err()
}
