package run

import (
	"clustergym/agents"
	"clustergym/agents/ddqn"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/experiments/config"
	"clustergym/nets"
	"fmt"
)

// Learner is an agent whose weights can be read.
type Learner interface {
	agents.Agent
	Params() *nets.Params
}

// NewAgent returns the agent that cfg names.
func NewAgent(cfg *config.Config, spec env.Spec, workers int) (Learner, error) {
	switch cfg.Agent {
	case "ppo":
		if cfg.PPO.Replicas > 1 {
			return ppo.NewReplicas(cfg.PPO, spec, cfg.Train.Envs, workers, cfg.Seed)
		}
		return ppo.New(cfg.PPO, spec, cfg.Train.Envs, workers, cfg.Seed)
	case "ddqn":
		return ddqn.New(cfg.DDQN, spec, cfg.Train.Envs, workers, cfg.Seed)
	}
	return nil, fmt.Errorf("agent %q is unknown", cfg.Agent)
}
