package maml

import (
	"fmt"

	"clustergym/internal/fault"
)

// Config holds the hyper-parameters.
type Config struct {
	// maml, reptile, or joint: training on all tasks at once without adapting, for comparison
	Method string `yaml:"method"`
	Order  int    `yaml:"order"` // of maml: 1 = without Hessians (FOMAML), 2 = with them
	// Tasks is the number of tasks in a meta-batch. It changes results; workers do not.
	Tasks  int `yaml:"tasks"`
	Before int `yaml:"before"` // episodes of a task that every inner step learns from
	After  int `yaml:"after"`  // episodes of a task after adaptation

	InnerSteps int     `yaml:"inner_steps"`
	InnerLR    float64 `yaml:"inner_lr"` // alpha, the size of an inner step

	Gamma    float64 `yaml:"gamma"`    // discount factor per env.Spec.Tau, or per step where that is 0
	Lambda   float64 `yaml:"lambda"`   // of generalised advantage estimation
	Baseline string  `yaml:"baseline"` // features: observation (with Info), info, or time alone
	EntCoef  float64 `yaml:"ent_coef"` // weight of the entropy in the outer objective

	Outer string `yaml:"outer"` // trpo or ppo; reptile has neither

	MaxKL        float64 `yaml:"max_kl"`        // trpo: how far a step may go
	CGIterations int     `yaml:"cg_iterations"` // trpo
	Damping      float64 `yaml:"damping"`       // trpo: added to the curvature's diagonal
	// CurvatureEvery n takes products with the curvature from every n-th transition: 1 = from all. They are most of the
	// time of a step, and a tenth of the data is enough for them (Schulman et al. 2015, appendix C).
	CurvatureEvery int     `yaml:"curvature_every"` // trpo
	Backtracks     int     `yaml:"backtracks"`      // trpo: the most shorter steps that are tried
	Backtrack      float64 `yaml:"backtrack"`       // trpo: factor by which each is shorter

	LR          float64 `yaml:"lr"`            // ppo: rate of Adam
	Epochs      int     `yaml:"epochs"`        // ppo: steps on one meta-batch
	Clip        float64 `yaml:"clip"`          // ppo: range of the probability ratio
	KLCoef      float64 `yaml:"kl_coef"`       // ppo: weight of the divergences from the policies that acted
	MaxGradNorm float64 `yaml:"max_grad_norm"` // ppo: 0 = not clipped

	ReptileStep float64 `yaml:"reptile_step"` // epsilon
	HVPReach    float64 `yaml:"hvp_reach"`    // how far from a point gradients are taken for products with Hessians
}

// DefaultConfig is MAML with a trust region at the settings of later implementations: one step of 0.1, 20 episodes
// before and after, 20 tasks.
func DefaultConfig() Config {
	return Config{
		Method: "maml", Order: 1, Tasks: 20, Before: 20, After: 20, InnerSteps: 1, InnerLR: 0.1,
		Gamma: 0.99, Lambda: 1, Baseline: "observation", Outer: "trpo",
		MaxKL: 0.01, CGIterations: 10, Damping: 1e-5, CurvatureEvery: 1, Backtracks: 15, Backtrack: 0.8,
		LR: 1e-3, Epochs: 5, Clip: 0.2, KLCoef: 5e-4, MaxGradNorm: 0.5,
		ReptileStep: 0.5, HVPReach: 0.01,
	}
}

// Validate reports all faults of c at once.
func (c Config) Validate() error {
	var l fault.List
	count := func(key string, v int, most int) {
		l.Add(v >= 1 && v <= most, key, v, fmt.Sprintf("a whole number from 1 to %d", most))
	}
	unit := func(key string, v float64) { l.Add(v >= 0 && v <= 1, key, v, "a number in [0, 1]") }
	positive := func(key string, v, most float64) {
		l.Add(v > 0 && v <= most, key, v, fmt.Sprintf("a number above 0, at most %v", most))
	}
	l.Add(c.Method == "maml" || c.Method == "reptile" || c.Method == "joint", "method", c.Method, "maml, reptile or joint")
	l.Add(c.Order == 1 || c.Order == 2, "order", c.Order, "1, without Hessians, or 2, with them")
	count("tasks", c.Tasks, 4096)
	count("before", c.Before, 4096)
	count("after", c.After, 4096)
	if c.Method == "reptile" {
		l.Add(c.InnerSteps >= 2 && c.InnerSteps <= 64, "inner_steps", c.InnerSteps,
			"a whole number from 2 to 64 with method reptile, which with a single step is training on all tasks at once and "+
				"learns nothing about adapting")
	} else {
		count("inner_steps", c.InnerSteps, 64)
	}
	positive("inner_lr", c.InnerLR, 100)
	unit("gamma", c.Gamma)
	unit("lambda", c.Lambda)
	l.Add(c.Baseline == "observation" || c.Baseline == "info" || c.Baseline == "time", "baseline", c.Baseline,
		"observation, info or time")
	l.Add(c.EntCoef >= 0 && c.EntCoef <= 10, "ent_coef", c.EntCoef, "a number in [0, 10]")
	l.Add(c.Outer == "trpo" || c.Outer == "ppo", "outer", c.Outer, "trpo or ppo")
	positive("max_kl", c.MaxKL, 10)
	count("cg_iterations", c.CGIterations, 1000)
	l.Add(c.Damping >= 0 && c.Damping <= 10, "damping", c.Damping, "a number in [0, 10]")
	count("curvature_every", c.CurvatureEvery, 1000)
	count("backtracks", c.Backtracks, 100)
	l.Add(c.Backtrack > 0 && c.Backtrack < 1, "backtrack", c.Backtrack, "a number in (0, 1)")
	positive("lr", c.LR, 1)
	count("epochs", c.Epochs, 1000)
	l.Add(c.Clip > 0 && c.Clip < 1, "clip", c.Clip, "a number in (0, 1)")
	l.Add(c.KLCoef >= 0 && c.KLCoef <= 1e3, "kl_coef", c.KLCoef, "a number in [0, 1000]")
	l.Add(c.MaxGradNorm >= 0 && c.MaxGradNorm <= 1e6, "max_grad_norm", c.MaxGradNorm, "a number in [0, 1e6]")
	l.Add(c.ReptileStep > 0 && c.ReptileStep <= 1, "reptile_step", c.ReptileStep, "a number in (0, 1]")
	positive("hvp_reach", c.HVPReach, 10)
	return l.Err()
}

// inner returns the number of inner steps of training.
func (c Config) inner() int {
	if c.Method == "joint" {
		return 0
	}
	return c.InnerSteps
}

// second reports whether products with Hessians are made.
func (c Config) second() bool { return c.Method == "maml" && c.Order == 2 }
