package ppo

import (
	"fmt"

	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/nets/model"
	"clustergym/nets/op"
)

// checkSpec returns why this algorithm cannot act in an environment, or nil if it can.
func checkSpec(s env.Spec) error {
	if len(s.Action.Sizes)+len(s.Action.Low) == 0 {
		return fmt.Errorf("ppo: %s has no actions", s.ID)
	}
	if len(s.Action.Low) != len(s.Action.High) {
		return fmt.Errorf("ppo: %s has %d lower and %d upper bounds of actions", s.ID, len(s.Action.Low), len(s.Action.High))
	}
	for i, k := range s.Action.Sizes {
		if k < 1 {
			return fmt.Errorf("ppo: %s has %d actions in factor %d, want at least 1", s.ID, k, i)
		}
	}
	if s.ObsLen() == 0 {
		return fmt.Errorf("ppo: %s has no observation", s.ID)
	}
	return nil
}

// distribution returns the form of a policy for an environment.
func distribution(s env.Spec) op.Distribution {
	return op.Distribution{Sizes: s.Action.Sizes, Dims: len(s.Action.Low)}
}

// Input describes the observations of s to a network.
func Input(s env.Spec) model.Input {
	in := make(model.Input, len(s.Obs))
	for i, f := range s.Obs {
		in[i] = model.Field{Name: f.Name, Shape: f.Shape, Group: f.Group, Filled: f.Filled, Critic: f.Critic}
	}
	return in
}

// newNet builds the network; its initial weights follow from seed alone. Errors name every key of cfg that does not
// fit, or say why the policy cannot act in the environment.
func newNet(cfg Config, s env.Spec, seed uint64) (*model.ActorCritic, error) {
	if err := checkSpec(s); err != nil {
		return nil, err
	}
	r := rng.Stream(seed, "ppo/init")
	net, err := model.NewActorCriticOf(cfg.Network, Input(s), distribution(s), cfg.LogStd, r)
	if err != nil {
		var l fault.List
		l.Join("network", err)
		return nil, l.Err()
	}
	return net, nil
}
