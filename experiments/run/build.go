package run

import (
	"fmt"
	"io"

	"clustergym/agents"
	"clustergym/agents/ddqn"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/env/vec"
	"clustergym/experiments/workload"
	"clustergym/nets"
	"clustergym/traces"
)

// World is what a configuration's episodes are drawn from: a workload, cut into windows, and a cluster. It is
// immutable and can be shared.
type World struct {
	Env      EnvConfig
	Cluster  cluster.Spec
	Workload *sched.Workload
	Trace    workload.Info
}

// NewWorld loads the workload that cfg names.
func NewWorld(cfg *Config) (*World, error) {
	spec, err := workload.ClusterSpec(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	jobs, info, err := workload.LoadTrace(cfg.Trace)
	if err != nil {
		return nil, err
	}
	w, err := jobselect.NewWorkload(cfg.Env.Config, spec, jobs)
	if err != nil {
		return nil, &workload.InputError{Err: fmt.Errorf("%s: %w", info.File, err)}
	}
	return &World{Env: cfg.Env, Cluster: spec, Workload: w, Trace: info}, nil
}

// NewEnv returns an environment over one part of the workload. gamma replaces the configured one. What makes
// training easier is for training only: contested windows, relative rewards, and limits at which episodes are cut
// off. Validation and test windows are played until their last job ends, as heuristics play them.
func (w *World) NewEnv(part traces.Part, gamma float64) (*sched.Env, error) {
	cfg := w.Env.Config
	cfg.Gamma = gamma
	if part != traces.Training {
		cfg = w.evaluated(gamma)
	}
	return jobselect.New(cfg, w.Cluster, w.Workload.Windows, part)
}

// evaluated is the environment's configuration in evaluations.
func (w *World) evaluated(gamma float64) jobselect.Config {
	cfg := w.Env.Config
	cfg.Gamma, cfg.Contested, cfg.Relative, cfg.Horizon, cfg.MaxSteps = gamma, false, "", 0, 0
	return cfg
}

// newVec returns the environments that cfg trains in.
func (w *World) NewVec(cfg *Config, workers int) (*vec.Vec, error) {
	envs := make([]env.Env, cfg.Train.Envs)
	for i := range envs {
		e, err := w.NewEnv(traces.Training, cfg.gamma())
		if err != nil {
			return nil, err
		}
		envs[i] = e
	}
	return vec.New(vec.Config{Workers: workers, Autoreset: vec.SameStep}, envs...)
}

// gamma is the discount that the agent learns with.
func (c *Config) gamma() float64 {
	if c.Agent == "ddqn" {
		return c.DDQN.Gamma
	}
	if c.meta() {
		return c.MAML.Gamma
	}
	return c.PPO.Gamma
}

// learner is an agent whose weights can be looked at.
type Learner interface {
	agents.Agent
	Params() *nets.Params
}

// newAgent is the one switch over kinds of agents.
func NewAgent(cfg *Config, spec env.Spec, workers int) (Learner, error) {
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

// newPolicy is a trained agent's greedy policy, from its weights.
func NewPolicy(cfg *Config, spec env.Spec, weights io.Reader) (agents.Policy, error) {
	switch cfg.Agent {
	case "ppo":
		return ppo.NewPolicy(cfg.PPO, spec, weights)
	case "ddqn":
		return ddqn.NewPolicy(cfg.DDQN, spec, weights)
	case metaAgent: // as it is before it adapts
		m := cfg.MAML.ModelConfig
		return ppo.NewPolicy(ppo.Config{Network: m.Network, LogStd: m.LogStd, ScaleActions: m.ScaleActions}, spec, weights)
	}
	return nil, fmt.Errorf("agent %q is unknown", cfg.Agent)
}
