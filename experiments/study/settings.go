package study

import (
	"fmt"

	"clustergym/configs"
)

// Settings returns the settings of p's form from an experiment.yaml, whose sections "quick" and "full" hold the settings of a
// study's two forms. T is a plain struct whose pointer implements configs.Validator. Keys that a section leaves out have the
// values of defaults.
func Settings[T any, P interface {
	*T
	configs.Validator
}](name string, file []byte, p Plan, defaults T) (T, error) {
	both := sections[T, P]{Quick: defaults, Full: defaults}
	if err := configs.DecodeBytes(name+"/experiment.yaml", file, &both); err != nil {
		return defaults, fmt.Errorf("study %s: %w", name, err)
	}
	if p.Quick {
		return both.Quick, nil
	}
	return both.Full, nil
}

// sections holds the settings of the two forms of a study.
type sections[T any, P interface {
	*T
	configs.Validator
}] struct {
	Quick T `yaml:"quick"`
	Full  T `yaml:"full"`
}

// Validate implements configs.Validator.
func (s *sections[T, P]) Validate() error {
	if err := P(&s.Quick).Validate(); err != nil {
		return fmt.Errorf("quick: %w", err)
	}
	if err := P(&s.Full).Validate(); err != nil {
		return fmt.Errorf("full: %w", err)
	}
	return nil
}
