package ppo

import (
	"fmt"
	"math"
	"time"

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
	// Batch, if not 0, replaces Minibatches: the number of steps in a minibatch; the last of a pass may have fewer.
	Batch int `yaml:"batch"`
	// Shards is the number of pieces of a minibatch whose gradients are computed separately and summed in order. At
	// most that many workers help. Shards change results in their last bits; workers do not.
	Shards int `yaml:"shards"`
	// Replicas is the number of learners that share the rows, each with its own rollout, minibatches and copy of the
	// network, and sum their gradients before every step (NewReplicas). It changes results: a gradient step is then
	// over Replicas minibatches.
	Replicas int `yaml:"replicas"`
	// PreemptShare, if not 0, makes every replica take its steps without waiting for the others. When this share of
	// them, rounded up, has a full rollout, the others that have at least a quarter of theirs are cut short. Results
	// then depend on the clock and cannot be repeated (Preempts), unless the share amounts to all replicas.
	PreemptShare float64 `yaml:"preempt_share"`

	LR       float64 `yaml:"lr"`        // learning rate of Adam
	AnnealLR bool    `yaml:"anneal_lr"` // linearly to 0 over the training
	AdamEps  float64 `yaml:"adam_eps"`

	Gamma  float64 `yaml:"gamma"`  // discount factor per env.Spec.Tau, or per step where that is 0
	Lambda float64 `yaml:"lambda"` // of generalised advantage estimation, per decision
	// Average, if not 0, learns differential values: the running average of the reward per simulated time is subtracted
	// from rewards, and this is the share of the average that each rollout renews. It is for environments whose episodes
	// are stretches of a task without an end, with gamma 1; without it and gamma 1, values there grow without bound.
	Average float64 `yaml:"average,omitempty"`
	// LambdaTau, if not 0, is the simulated time over which Lambda applies once, instead of once per decision: decisions
	// at one instant then share all that follows it.
	LambdaTau time.Duration `yaml:"lambda_tau,omitempty"`

	// Baseline is what advantages are taken over: the critic's value, or with Group rows that play the same episode the
	// mean of what the others got from the same simulated time on.
	Baseline Baseline `yaml:"baseline,omitempty"`
	// Group is how many rows play the same episodes: rows 0 to Group−1, and so on. It is the trainer's setting.
	Group int `yaml:"-"`
	// ValueNorm is how the critic's targets are normalised.
	ValueNorm ValueNorm `yaml:"value_norm,omitempty"`

	// CriticWarmup is the number of updates at the start that teach the critic alone: the policy and what it shares with
	// the critic stay as they are.
	CriticWarmup int `yaml:"critic_warmup,omitempty"`
	// Anchor is the weight in the loss of the divergence from the policy that the training began with, which after an
	// imitation is what was imitated. 0 = none.
	Anchor float64 `yaml:"anchor,omitempty"`
	// AnchorDecay is the share of Anchor that is gone by the end of the training; it goes evenly.
	AnchorDecay float64 `yaml:"anchor_decay,omitempty"`
	// CriticEpochs, if not 0, gives the critic passes of its own: an update makes Epochs passes with the policy's loss
	// alone, which TargetKL may end, and then CriticEpochs passes with the critic's. They have optimisers of their own.
	// Actor and critic must be separate networks. 0 = every step is for both.
	CriticEpochs int `yaml:"critic_epochs,omitempty"`
	// CriticLR is the learning rate of those passes, 0 = LR; AnnealLR applies to it too.
	CriticLR float64 `yaml:"critic_lr,omitempty"`

	// Loss is how the loss and its gradient are computed: loss.go.
	Loss Loss `yaml:"loss,omitempty"`

	Clip       float64 `yaml:"clip"`        // range of the probability ratio
	AnnealClip bool    `yaml:"anneal_clip"` // linearly to 0 over the training
	ClipValue  float64 `yaml:"clip_value"`  // range of the value's change, in units of scaled rewards; 0 = not clipped

	EntCoef       float64 `yaml:"ent_coef"`
	VFCoef        float64 `yaml:"vf_coef"`       // of half the squared error: 1 is what Stable-Baselines3 calls 0.5
	MaxGradNorm   float64 `yaml:"max_grad_norm"` // 0 = not clipped
	NormAdvantage bool    `yaml:"norm_advantage"`
	TargetKL      float64 `yaml:"target_kl"` // 0 = never end an update early

	// RewardScale divides rewards by the running deviation of the discounted return.
	RewardScale bool `yaml:"reward_scale"`
	// ClipReward clips rewards, scaled or not, to ±ClipReward; 0 = not clipped.
	ClipReward float64 `yaml:"clip_reward"`
	// NormObs subtracts the running mean of every element of the observation and divides by its running deviation;
	// ClipObs then clips it to ±ClipObs, 0 = not clipped.
	NormObs bool    `yaml:"norm_obs"`
	ClipObs float64 `yaml:"clip_obs"`

	// LogStd is the logarithm of the deviation that continuous actions begin with.
	LogStd float64 `yaml:"log_std"`
	// ScaleActions makes the policy express continuous actions with finite bounds in half widths from the middle of
	// their box, −1 to 1, instead of in their own unit.
	ScaleActions bool `yaml:"scale_actions"`

	Network model.Config `yaml:"network"`
}

// DefaultConfig is CleanRL's setting for classic control, without value clipping.
func DefaultConfig() Config {
	return Config{
		Steps: 128, Epochs: 4, Minibatches: 4, Shards: 4, Replicas: 1,
		LR: 2.5e-4, AnnealLR: true, AdamEps: 1e-5,
		Gamma: 0.99, Lambda: 0.95, Loss: Fused,
		Clip: 0.2, EntCoef: 0.01, VFCoef: 0.5, MaxGradNorm: 0.5, NormAdvantage: true,
		ClipObs: 10,
		Network: model.DefaultConfig(),
	}
}

// Loss is a way to compute the loss and its gradient.
type Loss string

// The ways, which agree up to rounding.
const (
	Fused    Loss = "fused"    // one operation with a gradient in closed form
	Composed Loss = "composed" // the formula in operations that know their gradients: slower, and easily changed
)

// IsZero says that the default is left out of what is written, so that configurations read the same as before there was
// a choice.
func (l Loss) IsZero() bool { return l == Fused }

// Baseline is what advantages are taken over.
type Baseline string

// The baselines; the default is empty.
const (
	ByCritic Baseline = ""
	ByGroup  Baseline = "group"
)

// ValueNorm is a way to normalise the critic's targets.
type ValueNorm string

// The values of ValueNorm. By default values are not normalised.
const (
	PlainValues ValueNorm = ""
	PopArt      ValueNorm = "popart"
)

// timed reports whether advantages need the simulated time of steps.
func (c Config) timed() bool { return c.LambdaTau > 0 || c.Baseline == ByGroup || c.Average > 0 }

// quorum returns how many replicas with full rollouts cut the others short.
func (c Config) quorum() int { return int(math.Ceil(c.PreemptShare*float64(c.Replicas) - 1e-9)) }

// criticLR returns the learning rate of the critic's own passes.
func (c Config) criticLR() float64 {
	if c.CriticLR == 0 {
		return c.LR
	}
	return c.CriticLR
}

// Preempts reports whether replicas can be cut short, so that a run cannot be repeated.
func (c Config) Preempts() bool { return c.PreemptShare > 0 && c.quorum() < c.Replicas }

// pieces returns the number of minibatches of a pass over n steps, and the size of the largest.
func (c Config) pieces(n int) (count, largest int) {
	if c.Batch > 0 {
		return ceil(n, c.Batch), min(n, c.Batch)
	}
	return c.Minibatches, ceil(n, c.Minibatches)
}

// piece returns which of n shuffled steps are minibatch k.
func (c Config) piece(k, n int) (from, to int) {
	if c.Batch > 0 {
		return min(k*c.Batch, n), min((k+1)*c.Batch, n)
	}
	return k * n / c.Minibatches, (k + 1) * n / c.Minibatches
}

// Validate reports all faults of c at once.
func (c Config) Validate() error {
	var l fault.List
	count := func(key string, v int) { l.Add(v >= 1 && v <= 1<<20, key, v, "a whole number from 1 to 2^20") }
	count("steps", c.Steps)
	count("epochs", c.Epochs)
	count("minibatches", c.Minibatches)
	l.Add(c.Batch >= 0 && c.Batch <= 1<<20, "batch", c.Batch,
		"a whole number from 1 to 2^20, or 0 = as many minibatches as minibatches says")
	l.Add(c.Shards >= 1 && c.Shards <= 1024, "shards", c.Shards, "a whole number from 1 to 1024")
	l.Add(c.Replicas >= 1 && c.Replicas <= 1024, "replicas", c.Replicas, "a whole number from 1 to 1024")
	switch share := c.PreemptShare; {
	case share == 0:
	case !(share >= 0.5 && share <= 1):
		l.Add(false, "preempt_share", share,
			"0 = replicas step together, or the share of them that cuts the others short, 0.5 to 1")
	default:
		l.Add(c.Replicas > 1, "preempt_share", share,
			fmt.Sprintf("0, or at least 2 replicas (here %d): one alone waits for nobody", c.Replicas))
	}
	l.Add(c.LR > 0 && c.LR <= 1, "lr", c.LR, "a number in (0, 1]")
	l.Add(c.CriticEpochs >= 0 && c.CriticEpochs <= 1<<20, "critic_epochs", c.CriticEpochs,
		"the number of the critic's own passes, 1 to 2^20, or 0 = none: every step is for policy and critic")
	l.Add(c.CriticEpochs == 0 || c.Network.Separate, "critic_epochs", c.CriticEpochs,
		"0 without network.separate: a pass for the critic would change the policy")
	l.Add(c.CriticLR >= 0 && c.CriticLR <= 1, "critic_lr", c.CriticLR, "a number in (0, 1], or 0 = lr")
	l.Add(c.CriticLR == 0 || c.CriticEpochs > 0, "critic_lr", c.CriticLR,
		"0 without critic_epochs: a step for both has one learning rate")
	l.Add(c.AdamEps > 0 && c.AdamEps <= 1, "adam_eps", c.AdamEps, "a number in (0, 1]")
	l.Add(c.Gamma >= 0 && c.Gamma <= 1, "gamma", c.Gamma, "a number in [0, 1]")
	l.Add(c.Lambda >= 0 && c.Lambda <= 1, "lambda", c.Lambda, "a number in [0, 1]")
	l.Add(c.Average >= 0 && c.Average <= 1, "average", c.Average, "the share of the average that a rollout renews, in (0, 1], or 0 = discounted values")
	l.Add(c.Average == 0 || c.Gamma == 1, "average", c.Average, "0 with a gamma below 1: differential values are not discounted")
	l.Add(c.Average == 0 || c.Replicas <= 1, "average", c.Average, "0 with replicas, each of which would have an average of its own")
	l.Add(c.LambdaTau >= 0, "lambda_tau", c.LambdaTau, "a time over which lambda applies once, or 0s = per decision")
	switch {
	case c.Baseline != ByCritic && c.Baseline != ByGroup:
		l.Add(false, "baseline", c.Baseline, `"" = the critic, or group`)
	case c.Baseline == ByGroup:
		l.Add(c.PreemptShare == 0, "baseline", c.Baseline, "nothing with preempt_share: the rows of a group must keep step")
	}
	l.Add(c.ValueNorm == PlainValues || c.ValueNorm == PopArt, "value_norm", c.ValueNorm, `"" or popart`)
	l.Add(c.Loss == Fused || c.Loss == Composed, "loss", c.Loss, "fused, or composed, which is slower and easily changed")
	l.Add(c.CriticWarmup >= 0 && c.CriticWarmup <= 1<<20, "critic_warmup", c.CriticWarmup,
		"a number of updates from 0 to 2^20")
	l.Add(c.AnchorDecay >= 0 && c.AnchorDecay <= 1, "anchor_decay", c.AnchorDecay, "a share from 0 to 1")
	l.Add(c.Anchor > 0 || c.AnchorDecay == 0, "anchor_decay", c.AnchorDecay, "nothing without anchor")
	l.Add(c.Clip > 0 && c.Clip < 1, "clip", c.Clip, "a number in (0, 1)")
	for _, v := range []struct {
		key   string
		value float64
	}{
		{"clip_value", c.ClipValue}, {"ent_coef", c.EntCoef}, {"vf_coef", c.VFCoef},
		{"anchor", c.Anchor}, {"max_grad_norm", c.MaxGradNorm}, {"target_kl", c.TargetKL},
		{"clip_reward", c.ClipReward}, {"clip_obs", c.ClipObs},
	} {
		l.Add(v.value >= 0 && v.value <= 1e6, v.key, v.value, "a number in [0, 1e6]")
	}
	l.Add(c.LogStd >= -20 && c.LogStd <= 2, "log_std", c.LogStd, "a number in [-20, 2]")
	l.Add(!c.NormObs || c.Network.Kind != model.KindAttention, "norm_obs", c.NormObs,
		"false with network.kind attention: rows of tables are empty by their zeros")
	l.Join("network", c.Network.Validate())
	return l.Err()
}
