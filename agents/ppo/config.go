package ppo

import (
	"clustergym/internal/fault"
	"clustergym/nets/model"
)

// Config holds the hyper-parameters.
type Config struct {
	// Steps is the rollout's length: steps per row between updates.
	Steps int `yaml:"steps"`
	// Epochs is the number of passes over a rollout.
	Epochs int `yaml:"epochs"`
	// Minibatches is the number of pieces, equal up to one step, into which a pass cuts the rollout.
	Minibatches int `yaml:"minibatches"`
	// Shards is the number of pieces of a minibatch whose gradients are computed apart and summed in order. It
	// bounds how many workers are of use, and changes results in their last bits; workers do not.
	Shards int `yaml:"shards"`

	LR       float64 `yaml:"lr"`        // learning rate of Adam
	AnnealLR bool    `yaml:"anneal_lr"` // linearly to 0 over the training
	AdamEps  float64 `yaml:"adam_eps"`

	Gamma  float64 `yaml:"gamma"`  // discount factor per env.Spec.Tau, or per step where that is 0
	Lambda float64 `yaml:"lambda"` // of generalised advantage estimation, per decision

	Clip       float64 `yaml:"clip"`        // range of the probability ratio
	AnnealClip bool    `yaml:"anneal_clip"` // linearly to 0 over the training
	ClipValue  float64 `yaml:"clip_value"`  // range of the value's change, in units of scaled rewards; 0 = not clipped

	EntCoef       float64 `yaml:"ent_coef"`
	VFCoef        float64 `yaml:"vf_coef"`
	MaxGradNorm   float64 `yaml:"max_grad_norm"` // 0 = not clipped
	NormAdvantage bool    `yaml:"norm_advantage"`
	TargetKL      float64 `yaml:"target_kl"` // 0 = never end an update early

	// RewardScale divides rewards by the running deviation of the discounted return.
	RewardScale bool `yaml:"reward_scale"`

	Network model.Config `yaml:"network"`
}

// DefaultConfig is CleanRL's setting for classic control, without value clipping.
func DefaultConfig() Config {
	return Config{
		Steps: 128, Epochs: 4, Minibatches: 4, Shards: 4,
		LR: 2.5e-4, AnnealLR: true, AdamEps: 1e-5,
		Gamma: 0.99, Lambda: 0.95,
		Clip: 0.2, EntCoef: 0.01, VFCoef: 0.5, MaxGradNorm: 0.5, NormAdvantage: true,
		Network: model.DefaultConfig(),
	}
}

// Validate reports all faults of c at once.
func (c Config) Validate() error {
	var l fault.List
	count := func(key string, v int) { l.Add(v >= 1 && v <= 1<<20, key, v, "a whole number from 1 to 2^20") }
	count("steps", c.Steps)
	count("epochs", c.Epochs)
	count("minibatches", c.Minibatches)
	l.Add(c.Shards >= 1 && c.Shards <= 1024, "shards", c.Shards, "a whole number from 1 to 1024")
	l.Add(c.LR > 0 && c.LR <= 1, "lr", c.LR, "a number in (0, 1]")
	l.Add(c.AdamEps > 0 && c.AdamEps <= 1, "adam_eps", c.AdamEps, "a number in (0, 1]")
	l.Add(c.Gamma >= 0 && c.Gamma <= 1, "gamma", c.Gamma, "a number in [0, 1]")
	l.Add(c.Lambda >= 0 && c.Lambda <= 1, "lambda", c.Lambda, "a number in [0, 1]")
	l.Add(c.Clip > 0 && c.Clip < 1, "clip", c.Clip, "a number in (0, 1)")
	for _, v := range []struct {
		key   string
		value float64
	}{
		{"clip_value", c.ClipValue}, {"ent_coef", c.EntCoef}, {"vf_coef", c.VFCoef},
		{"max_grad_norm", c.MaxGradNorm}, {"target_kl", c.TargetKL},
	} {
		l.Add(v.value >= 0 && v.value <= 1e6, v.key, v.value, "a number in [0, 1e6]")
	}
	l.Join("network", c.Network.Validate())
	return l.Err()
}
