package arena

import (
	"fmt"
	"io"

	"clustergym/agents"
	"clustergym/agents/ddqn"
	"clustergym/agents/improper"
	"clustergym/agents/maml"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/lab/config"
	"clustergym/nets"
)

// Trainee is the object of a training: an agent or a meta-learner.
type Trainee interface {
	Parts() []agents.Part
	Params() *nets.Params
}

// Learner is an agent whose weights can be read.
type Learner interface {
	agents.Agent
	Params() *nets.Params
}

// NewAgent returns the agent that cfg names.
func NewAgent(cfg *config.Config, spec env.Spec, workers int) (Learner, error) {
	switch cfg.Agent {
	case "ppo":
		c := cfg.PPO
		c.Group = cfg.Train.Group
		if c.Replicas > 1 {
			return ppo.NewReplicas(c, spec, cfg.Train.Envs, workers, cfg.Seed)
		}
		return ppo.New(c, spec, cfg.Train.Envs, workers, cfg.Seed)
	case "ddqn":
		return ddqn.New(cfg.DDQN, spec, cfg.Train.Envs, workers, cfg.Seed)
	case "improper":
		return improper.New(cfg.Improper, spec, cfg.Train.Envs, workers, cfg.Seed)
	}
	return nil, fmt.Errorf("agent %q is unknown", cfg.Agent)
}

// NewRank returns replica rank of the agent that cfg names, as one of several processes.
func NewRank(cfg *config.Config, spec env.Spec, workers, rank int, peers ppo.Peers) (*ppo.Rank, error) {
	c := cfg.PPO
	c.Group = cfg.Train.Group
	return ppo.NewRank(c, spec, cfg.Train.Envs, workers, cfg.Seed, rank, peers)
}

// NewPolicy returns the policy of a trained agent from its weights, as it is judged: by the rule eval.greedy of cfg.
func NewPolicy(cfg *config.Config, spec env.Spec, weights io.Reader) (agents.Policy, error) {
	p, err := newPolicy(cfg, spec, weights)
	if err != nil {
		return nil, err
	}
	if c, ok := p.(agents.Chooser); ok {
		c.By(cfg.Eval.Greedy)
	}
	return p, nil
}

func newPolicy(cfg *config.Config, spec env.Spec, weights io.Reader) (agents.Policy, error) {
	switch cfg.Agent {
	case "ppo":
		return ppo.NewPolicy(cfg.PPO, spec, weights)
	case "ddqn":
		return ddqn.NewPolicy(cfg.DDQN, spec, weights)
	case "improper":
		return improper.NewPolicy(cfg.Improper, spec, weights)
	case config.MetaAgent: // as it is before it adapts
		m := cfg.MAML.ModelConfig
		return ppo.NewPolicy(ppo.Config{Network: m.Network, LogStd: m.LogStd, ScaleActions: m.ScaleActions}, spec, weights)
	}
	return nil, fmt.Errorf("agent %q is unknown", cfg.Agent)
}

// NewLearner returns the meta-learner of cfg in the environments that open opens.
func NewLearner(cfg *config.Config, open func() (env.Env, error), workers int) (*maml.Learner, error) {
	f, err := maml.NewFamily(open)
	if err != nil {
		return nil, err
	}
	e, err := open()
	if err != nil {
		return nil, err
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		return nil, err
	}
	return maml.New(cfg.MAML.Config, f,
		func() (maml.Model, error) {
			m, err := ppo.NewModel(cfg.MAML.ModelConfig, spec, cfg.Seed)
			if err != nil {
				return nil, err
			}
			m.By(cfg.Eval.Greedy)
			return m, nil
		}, workers, cfg.Seed)
}
