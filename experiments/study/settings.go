package study

import (
	"fmt"

	"clustergym/configs"
)

// Settings reads an experiment.yaml, in which the sections "quick" and "full" hold the settings of a study's two
// forms, and gives those of the plan. T is a plain struct whose pointer is a configs.Validator; what a section does
// not name is as in defaults.
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

// sections are the two forms of a study.
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
