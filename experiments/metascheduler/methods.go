package metascheduler

import "clustergym/experiments/metascheduler/mbmpo"

// imitated is the rule that all learners imitate first. It sometimes waits, so they learn that waiting is possible.
const imitated = "sjf-waits"

// methods returns the learners in the order of the tables: the whole method, the method without one of its parts, the
// method with a guide of ours, and others.
func methods() []string {
	return []string{"mls", "random-exploration", "no-meta", "single-model", "mls-guided", "harmony-like", "dl2-like",
		"ppo"}
}

// ablations returns the learners with another inner loop.
func ablations() []string { return []string{"second-order", "inner-16", "second-order-16"} }

// explorers returns the learners of the regime with poor models: with meta-learning and without, by their exploration.
func explorers() []string {
	return []string{"mls", "tailored", "random-exploration", "no-exploration", "no-meta", "no-meta-random", "no-meta-none"}
}

// families returns the learners over a family of workloads: first-order MAML, and training on all workloads at once.
func families() []string { return []string{"maml", "joint"} }

// base returns what the closed loops of all methods have in common.
func (s *settings) base() mbmpo.Config {
	c := mbmpo.DefaultConfig()
	c.First, c.Episodes, c.MetaSteps, c.Guide = s.First, s.Episodes, s.MetaSteps, 0
	c.Maml.Before, c.Maml.After, c.Maml.CurvatureEvery, c.Maml.MaxKL = s.Before, s.After, 4, 0.04
	c.Data, c.Rule = []string{imitated, "load-balance", "tetris"}, imitated
	return c
}

// loop returns the configuration of a method's closed loop. Without meta-learning real episodes, models and outer steps
// on as many imagined episodes are the same; with it the imagined episodes of the inner steps come on top.
func (s *settings) loop(method string) mbmpo.Config {
	c := s.base()
	switch method {
	case "tailored":
		c.Explore = "tailored"
	case "random-exploration":
		c.Explore = "random"
	case "no-exploration":
		c.Explore = "none"
	case "no-meta":
		c.Maml.Method, c.Explore = "joint", "subspace"
	case "no-meta-random":
		c.Maml.Method, c.Explore = "joint", "random"
	case "no-meta-none":
		c.Maml.Method, c.Explore = "joint", "none"
	case "single-model":
		c.Models.Members = 1
	case "second-order":
		c.Maml.Order = 2
	case "inner-16":
		c.Maml.Before = 16
	case "second-order-16":
		c.Maml.Order, c.Maml.Before = 2, 16
	case "mls-guided":
		c.Guide = s.Guide
	case "harmony-like":
		c.Models.Members, c.Explore = 1, "none"
		c.Maml.Method = "joint"
	case "dl2-like":
		// A supervised start from all first episodes, which the heuristic plays, then one step of policy gradient on every
		// batch of real episodes.
		s.free(&c)
		c.Data, c.Imitation = []string{imitated}, 80
		c.Maml.Epochs, c.Maml.LR, c.Maml.EntCoef, c.Maml.Lambda = 1, 1e-3, 0.01, 1
	case "ppo":
		s.free(&c)
		c.Imitation = s.PPO.Imitation
		s.PPO.into(&c.Maml)
	}
	return c
}

// free makes c learn from real episodes alone. All episodes of a round are one task, and so have one baseline of
// returns: one for each episode would fit its noise.
func (s *settings) free(c *mbmpo.Config) {
	c.ModelFree, c.Explore = true, "none"
	c.Maml.Method, c.Maml.Outer, c.Maml.Tasks, c.Maml.After = "joint", "ppo", 1, s.FreeEpisodes
}
