package config

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/lab/envs"
	"clustergym/nets/model"
)

// maxMemory is how much memory CheckMemory allows: 64 GiB. Published settings need far less; more is a typing error
// that would crash the program during an allocation.
const maxMemory = 64 << 30

// Need is one part of a training whose memory grows with settings.
type Need struct {
	What  string
	keys  []string // that make it smaller
	Bytes float64
}

// CheckMemory refuses a training that would need more than maxMemory before anything large is allocated. The error is
// an *fault.Mistake with the size and the keys that cause most of it. spec is that of one environment. Other faults of
// the configuration are reported by the agent's constructor.
//
// It counts what grows with settings: environments and their batches, the rollout or a full replay buffer, and
// networks with their gradients, moments and the values of every layer. Workload and cluster are in memory already.
func CheckMemory(cfg *Config, spec env.Spec) error {
	needs := Needs(cfg, spec)
	total := 0.0
	for _, n := range needs {
		total += n.Bytes
	}
	if total <= maxMemory {
		return nil
	}
	slices.SortStableFunc(needs, func(a, b Need) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var keys, parts []string
	for _, n := range needs {
		if n.Bytes < total/10 { // the others would not help
			continue
		}
		for _, k := range n.keys {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		parts = append(parts, fmt.Sprintf("%s %s", n.What, bytesText(n.Bytes)))
	}
	return fault.Mistakef("%s: this training would need about %s of memory (%s), want at most %s",
		strings.Join(keys, ", "), bytesText(total), strings.Join(parts, ", "), bytesText(maxMemory))
}

// Needs returns the parts, none if the network does not fit the environment.
func Needs(cfg *Config, spec env.Spec) []Need {
	outputs := spec.MaskLen() + len(spec.Action.Low) // logits of every factor, means of every number
	if outputs == 0 {
		return nil
	}
	in := ppo.Input(spec)
	var (
		size model.Size
		err  error
	)
	if cfg.Meta() {
		return metaNeeds(cfg, spec)
	}
	if cfg.Agent == "improper" {
		return improperNeeds(cfg, spec)
	}
	if cfg.Agent == "ddqn" {
		size, err = model.QNetSize(cfg.DDQN.Network, in, outputs, cfg.DDQN.Duelling)
	} else {
		size, err = model.ActorCriticSize(cfg.PPO.Network, in, outputs)
	}
	if err != nil {
		return nil // the constructor says why
	}
	rows := float64(cfg.Train.Envs)
	if cfg.Train.Imitate != "" {
		rows *= 2 // the recording is played again in environments of its own
	}
	return append(agentNeeds(cfg, spec, size), Need{"environments", []string{"train.envs"}, rows * envBytes(cfg, spec)})
}

// Sizes in bytes.
const (
	float = 4
	word  = 8
)

// envBytes returns the memory of one environment with its row in the batches: its own observation twice, the batches
// before and after a step, and final observations there and in the agent. What a server reserves for an environment is
// an upper bound that includes metrics for remote players; training takes about half of it.
func envBytes(cfg *Config, spec env.Spec) float64 {
	return envs.StepBytes(spec) + cfg.Descriptor().Memory(cfg.Env.Settings, envs.Extent{})/2
}

// observation returns the bytes of one observation with its mask.
func observation(spec env.Spec) float64 {
	return float*float64(spec.ObsLen()) + float64(spec.MaskLen())
}

// metaNeeds returns a meta-learner's parts: the episodes of a meta-batch, assumed to have 1,000 steps if they have no
// limit.
func metaNeeds(cfg *Config, spec env.Spec) []Need {
	c, steps := &cfg.MAML, spec.MaxSteps
	if steps == 0 {
		steps = 1000
	}
	episodes := float64(c.Tasks) * float64(c.InnerSteps*c.Before+c.After)
	return []Need{{"the episodes of a meta-batch", []string{"maml.tasks", "maml.before", "maml.after"},
		episodes * float64(steps) * (observation(spec) + 6*word)}}
}

// improperNeeds returns the parts of a mixture: the perturbed weights of every row with spsa, otherwise the rollout,
// with the controllers' probabilities in every state, and the sums of shards.
func improperNeeds(cfg *Config, spec env.Spec) []Need {
	c, rows, controllers := &cfg.Improper, float64(cfg.Train.Envs), float64(spec.MaskLen())
	environments := Need{"environments", []string{"train.envs"}, rows * envBytes(cfg, spec)}
	if c.Method == "spsa" { // which has one weight for each controller
		return []Need{environments, {"perturbed weights", []string{"train.envs"}, rows * controllers * (float + word/2)}}
	}
	return []Need{
		environments,
		{"sums over a rollout", []string{"improper.shards"},
			4 * word * controllers * (1 + float64(spec.ObsLen())) * float64(c.Shards+4)},
		{"the rollout", []string{"train.envs", "improper.steps"},
			rows * float64(c.Steps) * (observation(spec) + 8*float + word*controllers)},
	}
}

// agentNeeds returns the agent's parts: its rollout or buffer, its parameters, and the values of the layers while it
// learns.
func agentNeeds(cfg *Config, spec env.Spec, size model.Size) []Need {
	rows, obs := float64(cfg.Train.Envs), observation(spec)
	if cfg.Agent == "ddqn" {
		c := &cfg.DDQN
		buffer, batch := float64(c.Buffer), float64(c.Batch)
		held := buffer * (obs + 3*word + 3*float)
		if c.Prioritized {
			held += 2 * word * float64(uint64(1)<<bits.Len(uint(c.Buffer-1))) // a binary tree over them
		}
		return []Need{
			{"a full replay buffer", []string{"ddqn.buffer"}, held},
			{"transitions of n steps under way", []string{"train.envs", "ddqn.n_step"},
				rows * float64(c.NStep) * (obs + 4*word)},
			{"parameters", []string{"ddqn.network", "ddqn.shards"}, parameterBytes(size, 2, c.Shards)},
			// The online network runs in the graph, and like the target network by itself.
			{"a batch in the network", []string{"ddqn.batch", "ddqn.network"},
				batch*(3*obs+float*(size.Graph+2*size.Row)) + float64(2*c.Shards)*float*size.Scratch},
		}
	}
	c := &cfg.PPO
	steps := float64(c.Steps) * rows
	batch, keys := steps/float64(c.Minibatches), []string{"train.envs", "ppo.steps", "ppo.minibatches", "ppo.network"}
	if c.Batch > 0 {
		batch, keys = min(steps, float64(c.Batch)), []string{"ppo.batch", "ppo.network"}
	}
	row, networks := obs+8*float+word+2, 1
	if c.Anchor > 0 { // its outputs for every step, and its own network
		row, networks = row+float*float64(spec.MaskLen()+len(spec.Action.Low)), 2
	}
	return []Need{
		{"the rollout", []string{"train.envs", "ppo.steps"}, steps * row},
		{"parameters", []string{"ppo.network", "ppo.shards"}, parameterBytes(size, networks, c.Shards)},
		{"a minibatch in the network", keys,
			batch*(obs+float*size.Graph) + float64(c.Shards)*float*size.Scratch},
	}
}

// parameterBytes returns the bytes of the weights of all networks, the sum of gradients, Adam's two moments, one
// gradient for each shard, and the temporary memory for initialising the largest matrix.
func parameterBytes(size model.Size, networks, shards int) float64 {
	return float*size.Params*float64(networks+3+shards) + 2*float*size.Largest
}

// bytesText returns a size in GiB or TiB.
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
