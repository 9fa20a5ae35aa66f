package arena

import (
	"clustergym/agents/imitate"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/traces"
)

// NewLessons returns the imitation that cfg asks for, in environments like those that it trains in. Errors name the
// key.
func NewLessons(cfg *config.Config, a Arena, spec env.Spec, workers int) (*imitate.Phase, error) {
	teacher, err := cfg.Teacher()
	if err != nil {
		return nil, fault.New("train.imitate", cfg.Train.Imitate, err.Error())
	}
	source := imitate.Source{Teacher: teacher.Policy, Env: func() (env.Env, error) {
		if w, ok := a.(*Scenario); ok {
			return w.NewEnv(traces.Training, cfg.Gamma())
		}
		return a.(*Problem).Open()
	}}
	steps, epochs, rounds := cfg.Train.Imitation()
	return imitate.New(imitate.Config{
		Steps: steps, Epochs: epochs, Rounds: rounds, LR: cfg.Train.ImitateLR, Gamma: cfg.Gamma(),
		Rows: cfg.Train.Envs, Workers: workers,
		Seed: cfg.Seed,
	}, spec, source)
}
