package improper

import (
	"slices"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// Config holds the hyper-parameters.
type Config struct {
	Method   string `yaml:"method"`   // pg, nac or spsa
	Features string `yaml:"features"` // none: the same weights in every state; observation: weights that depend on it
	Steps    int    `yaml:"steps"`    // of every row between two updates; of pg and nac
	// a step of θ along the gradient (pg, spsa) or natural gradient (nac) of normalised advantages or returns
	LR       float64 `yaml:"lr"`
	AnnealLR bool    `yaml:"anneal_lr"` // lr falls linearly to 0 over the training
	Gamma    float64 `yaml:"gamma"`     // discount factor per env.Spec.Tau, or per step where that is 0
	// of advantages, of pg and nac; 0 = one step and the critic, 1 = returns of rollouts
	Lambda float64 `yaml:"lambda"`
	// of the critic's least squares, of pg and nac; added to the diagonal of its features' mean squares
	Ridge   float64 `yaml:"ridge"`
	Damping float64 `yaml:"damping"` // added to the diagonal of nac's Fisher matrix
	// nac: how far a step may go, by the quadratic model of the divergence; 0 = no bound
	MaxKL   float64 `yaml:"max_kl"`
	EntCoef float64 `yaml:"ent_coef"` // weight of the mixture's entropy, of pg and nac
	Init    float64 `yaml:"init"`     // deviation of θ at the start; 0 = all controllers alike
	// pieces of a rollout that workers share; changes results in their last bits, workers do not
	Shards int `yaml:"shards"`

	Perturb  float64 `yaml:"perturb"`  // c of spsa: the length of a perturbation
	Episodes int     `yaml:"episodes"` // of spsa: episodes of every row between two updates
}

// DefaultConfig is natural actor-critic over weights that do not depend on the state.
func DefaultConfig() Config {
	return Config{
		Method: "nac", Features: "none", Steps: 128, LR: 0.5, AnnealLR: true, Gamma: 0.99, Lambda: 0.95, Ridge: 1e-4,
		Damping: 1e-3, MaxKL: 0.05,
		Init: 0.01, Shards: 8, Perturb: 0.5, Episodes: 1,
	}
}

// IsZero says that defaults are left out of what is written, so that configurations of other agents keep their bytes.
func (c Config) IsZero() bool { return c == DefaultConfig() }

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	var l fault.List
	methods, features := []string{"pg", "nac", "spsa"}, []string{"none", "observation"}
	l.Add(slices.Contains(methods, c.Method), "method", c.Method, nearest.OneOf(c.Method, methods))
	l.Add(slices.Contains(features, c.Features), "features", c.Features, nearest.OneOf(c.Features, features))
	l.Add(c.Method != "spsa" || c.Features == "none", "features", c.Features,
		"none with method spsa, whose estimate has a variance in proportion to the number of weights")
	l.Add(c.Steps >= 1 && c.Steps <= 1<<20, "steps", c.Steps, "1 to 1048576")
	l.Add(c.LR > 0 && c.LR <= 1e3, "lr", c.LR, "a number in (0, 1000]")
	l.Add(c.Gamma >= 0 && c.Gamma <= 1, "gamma", c.Gamma, "a number in [0, 1]")
	l.Add(c.Lambda >= 0 && c.Lambda <= 1, "lambda", c.Lambda, "a number in [0, 1]")
	l.Add(c.Ridge > 0 && c.Ridge <= 1e3, "ridge", c.Ridge, "a number in (0, 1000]")
	l.Add(c.Damping > 0 && c.Damping <= 1e3, "damping", c.Damping, "a number in (0, 1000]")
	l.Add(c.MaxKL >= 0 && c.MaxKL <= 1e3, "max_kl", c.MaxKL, "a number in [0, 1000]")
	l.Add(c.EntCoef >= 0 && c.EntCoef <= 10, "ent_coef", c.EntCoef, "a number in [0, 10]")
	l.Add(c.Init >= 0 && c.Init <= 10, "init", c.Init, "a number in [0, 10]")
	l.Add(c.Shards >= 1 && c.Shards <= 256, "shards", c.Shards, "1 to 256")
	l.Add(c.Perturb > 0 && c.Perturb <= 100, "perturb", c.Perturb, "a number in (0, 100]")
	l.Add(c.Episodes >= 1 && c.Episodes <= 1<<20, "episodes", c.Episodes, "1 to 1048576")
	return l.Err()
}
