package run

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"clustergym/env"
	"clustergym/experiments/envs"
	"clustergym/experiments/workload"
	"clustergym/nets/model"
)

// maxMemory is how much a training may ask for by the estimate of checkMemory: 64 GiB. Published settings of this
// kind stay far below; what lies above is a slip of the hand, which would end in the middle of an allocation.
const maxMemory = 64 << 30

// need is one part of a training that takes memory in proportion to settings.
type need struct {
	what  string
	keys  []string // by which it can be made smaller
	bytes float64
}

// checkMemory refuses a training that would ask for more than maxMemory, before anything large is allocated: one
// *InputError, which names the size and the keys that most of it comes from. spec is that of one environment. What
// does not fit together otherwise is left to the agent's constructor to say.
//
// It counts what grows with settings: environments and their batches, the rollout or a full replay buffer, and
// networks with their gradients, moments and the values of every layer. Workload and cluster are in memory already.
func checkMemory(cfg *Config, spec env.Spec) error {
	needs := memoryNeeds(cfg, spec)
	total := 0.0
	for _, n := range needs {
		total += n.bytes
	}
	if total <= maxMemory {
		return nil
	}
	slices.SortStableFunc(needs, func(a, b need) int { return cmp.Compare(b.bytes, a.bytes) })
	var keys, parts []string
	for _, n := range needs {
		if n.bytes < total/10 { // the others would not help
			continue
		}
		for _, k := range n.keys {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		parts = append(parts, fmt.Sprintf("%s %s", n.what, bytesText(n.bytes)))
	}
	return workload.Mistake("%s: this training would need about %s of memory (%s), want at most %s",
		strings.Join(keys, ", "), bytesText(total), strings.Join(parts, ", "), bytesText(maxMemory))
}

// memoryNeeds are the parts, none where the network does not fit the environment.
func memoryNeeds(cfg *Config, spec env.Spec) []need {
	outputs := spec.MaskLen() + len(spec.Action.Low) // logits of every factor, means of every number
	if outputs == 0 {
		return nil
	}
	in := make(model.Input, len(spec.Obs))
	for i, f := range spec.Obs {
		in[i] = model.Field{Name: f.Name, Shape: f.Shape}
	}
	var (
		size model.Size
		err  error
	)
	if cfg.meta() {
		return metaNeeds(cfg, spec)
	}
	if cfg.Agent == "ddqn" {
		size, err = model.QNetSize(cfg.DDQN.Network, in, outputs, cfg.DDQN.Duelling)
	} else {
		size, err = model.ActorCriticSize(cfg.PPO.Network, in, outputs)
	}
	if err != nil {
		return nil // the constructor says why
	}
	return append(agentNeeds(cfg, spec, size), need{"environments", []string{"train.envs"}, float64(cfg.Train.Envs) * envBytes(cfg, spec)})
}

// Sizes in bytes.
const (
	float = 4
	word  = 8
)

// envBytes is one environment with its row in the batches: its own observation twice, the batch before a step and
// the one after it, and final observations there and at the agent.
func envBytes(cfg *Config, spec env.Spec) float64 {
	return envs.StepBytes(spec) + cfg.descriptor().Memory(cfg.Env.Settings, 0)
}

// observation is one observation with its mask.
func observation(spec env.Spec) float64 {
	return float*float64(spec.ObsLen()) + float64(spec.MaskLen())
}

// metaNeeds are a meta-learner's: the episodes of a meta-batch, taken to be of 1,000 steps where there is no limit.
func metaNeeds(cfg *Config, spec env.Spec) []need {
	c, steps := &cfg.MAML, spec.MaxSteps
	if steps == 0 {
		steps = 1000
	}
	episodes := float64(c.Tasks) * float64(c.InnerSteps*c.Before+c.After)
	return []need{{"the episodes of a meta-batch", []string{"maml.tasks", "maml.before", "maml.after"}, episodes * float64(steps) * (observation(spec) + 6*word)}}
}

// agentNeeds are the agent's: what it remembers, its parameters, and the values of the layers while it learns.
func agentNeeds(cfg *Config, spec env.Spec, size model.Size) []need {
	rows, obs := float64(cfg.Train.Envs), observation(spec)
	if cfg.Agent == "ddqn" {
		c := &cfg.DDQN
		buffer, batch := float64(c.Buffer), float64(c.Batch)
		held := buffer * (obs + 3*word + 3*float)
		if c.Prioritized {
			held += 2 * word * float64(uint64(1)<<bits.Len(uint(c.Buffer-1))) // a binary tree over them
		}
		return []need{
			{"a full replay buffer", []string{"ddqn.buffer"}, held},
			{"transitions of n steps under way", []string{"train.envs", "ddqn.n_step"}, rows * float64(c.NStep) * (obs + 4*word)},
			{"parameters", []string{"ddqn.network", "ddqn.shards"}, parameterBytes(size, 2, c.Shards)},
			// The online network runs in the graph, and like the target network by itself.
			{"a batch in the network", []string{"ddqn.batch", "ddqn.network"}, batch*(3*obs+(graphValues+2)*float*size.Row) + float64(2*c.Shards)*float*size.Scratch},
		}
	}
	c := &cfg.PPO
	steps := float64(c.Steps) * rows
	batch, keys := steps/float64(c.Minibatches), []string{"train.envs", "ppo.steps", "ppo.minibatches", "ppo.network"}
	if c.Batch > 0 {
		batch, keys = min(steps, float64(c.Batch)), []string{"ppo.batch", "ppo.network"}
	}
	return []need{
		{"the rollout", []string{"train.envs", "ppo.steps"}, steps * (obs + 8*float + word + 2)},
		{"parameters", []string{"ppo.network", "ppo.shards"}, parameterBytes(size, 1, c.Shards)},
		{"a minibatch in the network", keys,
			batch*(obs+graphValues*float*size.Row) + float64(c.Shards)*float*size.Scratch},
	}
}

// graphValues is about how many numbers a graph keeps for each value of a network: itself, before the activation, and
// the gradients of both.
const graphValues = 4

// parameterBytes is the weights of so many networks, the sum of gradients, Adam's two moments, one gradient for each
// shard, and what initialising the largest matrix takes.
func parameterBytes(size model.Size, networks, shards int) float64 {
	return float*size.Params*float64(networks+3+shards) + 2*float*size.Largest
}

// bytesText is a size in GiB or TiB.
func bytesText(b float64) string {
	const gib = 1 << 30
	switch {
	case b < 10*gib:
		return fmt.Sprintf("%.1f GiB", b/gib)
	case b < 2048*gib:
		return fmt.Sprintf("%.0f GiB", b/gib)
	}
	return fmt.Sprintf("%.0f TiB", b/gib/1024)
}
