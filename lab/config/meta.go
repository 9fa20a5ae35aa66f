package config

import (
	"clustergym/agents/maml"
	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/lab/envs"
	"clustergym/traces"
	"slices"
	"strings"
	"sync"
)

// MetaAgent is the agent that learns to adapt: it trains and is judged on families of tasks.
const MetaAgent = "maml"

// MetaAgents returns the values of Config.Agent that need an environment with tasks.
func MetaAgents() []string { return []string{MetaAgent} }

// MAML is the configuration of a meta-learner and its policy.
type MAML struct {
	maml.Config     `yaml:",inline"`
	ppo.ModelConfig `yaml:",inline"`
	// Judge are the numbers of inner steps after which validations and evaluations measure the policy; validations
	// choose by the last one that is at most inner_steps.
	Judge []int `yaml:"judge,flow"`
	// JudgeEpisodes is how many episodes of each task one measurement takes.
	JudgeEpisodes int `yaml:"judge_episodes"`
}

// DefaultMAML returns maml's defaults, with the network of PPO's defaults.
func DefaultMAML() MAML {
	c := MAML{Config: maml.DefaultConfig(), Judge: []int{0, 1, 3}, JudgeEpisodes: 20}
	c.Network = ppo.DefaultConfig().Network
	c.Network.Separate = false // there is no critic: the baseline is linear
	return c
}

// Validate reports every fault.
func (c MAML) Validate() error {
	var l fault.List
	l.Join("", c.Config.Validate())
	l.Add(c.LogStd >= -20 && c.LogStd <= 2, "log_std", c.LogStd, "a number in [-20, 2]")
	l.Join("network", c.Network.Validate())
	ascend := len(c.Judge) > 0
	for i, s := range c.Judge {
		ascend = ascend && s >= 0 && s <= 64 && (i == 0 || s > c.Judge[i-1])
	}
	l.Add(ascend, "judge", c.Judge, "numbers of inner steps that ascend, from 0 to 64")
	l.Add(c.JudgeEpisodes >= 1 && c.JudgeEpisodes <= 1<<16, "judge_episodes", c.JudgeEpisodes, "1 to 65536")
	return l.Err()
}

// Meta returns whether the agent is a meta-learner.
func (c *Config) Meta() bool { return slices.Contains(MetaAgents(), c.Agent) }

// validateMeta adds the faults of keys outside maml that concern a meta-learner.
func (c *Config) validateMeta(l *fault.List) {
	if slices.Contains(envs.IDs(), c.Env.ID) {
		l.Add(slices.Contains(Families(), c.Env.ID), "env.id", c.Env.ID,
			"an environment with tasks ("+strings.Join(Families(), ", ")+"), for agent "+c.Agent+" learns to adapt to them")
	}
	d := train.DefaultConfig()
	l.Add(c.Train.Envs == d.Envs, "train.envs", c.Train.Envs,
		"nothing: agent "+c.Agent+" plays maml.tasks × (maml.before + maml.after) episodes at a time")
}

// Families returns the environments without a simulator whose episodes are drawn from a family of tasks.
func Families() []string { return slices.Clone(tasked()) }

var tasked = sync.OnceValue(func() []string {
	var ids []string
	for _, id := range envs.IDs() {
		d := envs.Find(id)
		if d.Simulated() { // its tasks would be workloads
			continue
		}
		e, err := d.Open(d.Args().Settings, &envs.Source{}, traces.Training)
		if err != nil {
			continue
		}
		if _, ok := e.(env.Tasker); ok {
			ids = append(ids, id)
		}
		_ = e.Close() // it holds nothing
	}
	return ids
})

// Chosen returns the index in Judge that validations choose by.
func (c *MAML) Chosen() int {
	k := 0
	for i, s := range c.Judge {
		if s <= c.InnerSteps {
			k = i
		}
	}
	return k
}
