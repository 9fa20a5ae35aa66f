package arena

import (
	"clustergym/agents"
	"clustergym/agents/imitate"
	"clustergym/env"
	"clustergym/experiments/config"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// NewLessons returns the imitation that cfg asks for, in environments like those that it trains in. Errors name the key.
func NewLessons(cfg *config.Config, a Arena, spec env.Spec, workers int) (*imitate.Phase, error) {
	teacher, err := cfg.Teacher()
	if err != nil {
		return nil, fault.New("train.imitate", cfg.Train.Imitate, err.Error())
	}
	open := func() (env.Env, agents.Policy, error) {
		var e env.Env
		var err error
		switch a := a.(type) {
		case *World:
			e, err = a.NewEnv(traces.Training, cfg.Gamma())
		case *Problem:
			e, err = a.Open()
		}
		if err != nil {
			return nil, nil, err
		}
		p, err := teacher.Policy(e)
		return e, p, err
	}
	steps, epochs, rounds := cfg.Train.Imitation()
	return imitate.New(imitate.Config{
		Steps: steps, Epochs: epochs, Rounds: rounds, Gamma: cfg.Gamma(), Rows: cfg.Train.Envs, Workers: workers, Seed: cfg.Seed,
	}, spec, open)
}
