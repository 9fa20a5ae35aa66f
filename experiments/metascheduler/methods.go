package metascheduler

import "clustergym/agents/mbmpo"

// imitated is the rule that all learners imitate first. It sometimes waits, so they learn that waiting is possible.
const imitated = "sjf-waits"

// methods returns the learners in the order of the tables: the whole method, the method without one of its parts, the method
// with a guide of ours, and others.
func methods() []string {
	return []string{"mls", "random-exploration", "no-meta", "single-model", "mls-guided", "harmony-like", "ppo"}
}

// loop returns the configuration of a method's closed loop.
func (s *settings) loop(method string) mbmpo.Config {
	c := mbmpo.DefaultConfig()
	c.Episodes, c.MetaSteps, c.Guide = s.Episodes, s.MetaSteps, 0
	c.Maml.Before, c.Maml.After = s.Before, s.After
	c.Maml.CurvatureEvery = 4
	c.Data, c.Rule = []string{imitated, "load-balance", "tetris"}, imitated
	switch method {
	case "random-exploration":
		c.Explore = "random"
	case "no-meta":
		// The same real episodes, models and exploration, and equally many imagined episodes, all of them for learning.
		c.Maml.Method, c.Maml.After = "joint", c.Maml.Before+c.Maml.After
		c.Explore = "subspace"
	case "single-model":
		c.Models.Members = 1
	case "mls-guided":
		c.Guide = s.Guide
	case "harmony-like":
		c.Models.Members, c.Explore = 1, "none"
		c.Maml.Method, c.Maml.After = "joint", c.Maml.Before+c.Maml.After
	case "ppo":
		c.ModelFree, c.Explore = true, "none"
		c.Maml.Method, c.Maml.Outer, c.Maml.Tasks, c.Maml.After = "joint", "ppo", s.Episodes, 1
		c.Maml.Epochs, c.Maml.LR, c.Maml.EntCoef = 6, 1e-3, 0.001
	}
	return c
}
