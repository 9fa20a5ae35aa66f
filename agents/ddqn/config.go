package ddqn

import (
	"fmt"

	"clustergym/internal/fault"
	"clustergym/nets/model"
	"clustergym/replay"
)

// Config holds the hyper-parameters. Steps are environment steps, counted over all rows.
type Config struct {
	Double      bool `yaml:"double"`
	Duelling    bool `yaml:"duelling"`
	Prioritized bool `yaml:"prioritized"`
	NStep       int  `yaml:"n_step"` // steps of a target; 1 = plain

	Gamma        float64 `yaml:"gamma"`         // discount factor per env.Spec.Tau, or per step where that is 0
	RewardFactor float64 `yaml:"reward_factor"` // multiplies rewards
	RewardScale  bool    `yaml:"reward_scale"`  // divides them by the running deviation of the discounted return

	Buffer     int                   `yaml:"buffer"`   // transitions kept
	Priority   replay.PriorityConfig `yaml:"priority"` // with prioritized
	Beta       float64               `yaml:"beta"`     // first exponent of the importance weights; rises to 1
	SaveReplay bool                  `yaml:"save_replay"`

	LR          float64 `yaml:"lr"`        // learning rate of Adam
	AnnealLR    bool    `yaml:"anneal_lr"` // falls linearly to 0 over the training
	AdamEps     float64 `yaml:"adam_eps"`
	Batch       int     `yaml:"batch"`
	Huber       float64 `yaml:"huber"`         // where the loss turns linear; 0 = squared error
	MaxGradNorm float64 `yaml:"max_grad_norm"` // 0 = not clipped
	// Shards is the number of pieces of a batch whose gradients are computed separately and summed in order. At most
	// that many workers help. Shards change results in their last bits; workers do not.
	Shards int `yaml:"shards"`

	LearningStarts int  `yaml:"learning_starts"` // steps before the first update
	WarmupRandom   bool `yaml:"warmup_random"`   // all actions before it are random, regardless of epsilon
	TrainEvery     int  `yaml:"train_every"`     // steps between updates
	GradientSteps  int  `yaml:"gradient_steps"`  // gradient steps in each update; -1 = train_every
	// steps between updates of the target network; 0 = after every gradient step
	TargetEvery int     `yaml:"target_every"`
	Tau         float64 `yaml:"tau"` // share of the online network in an update of the target; 1 = a copy

	EpsStart float64 `yaml:"eps_start"` // share of random actions at first …
	EpsEnd   float64 `yaml:"eps_end"`   // … and from the end of EpsShare on
	EpsShare float64 `yaml:"eps_share"` // share of the training over which it falls linearly

	Network model.Config `yaml:"network"`
}

// DefaultConfig is CleanRL's setting for classic control (two layers of 120 and 84, batches of 128, every 10 steps),
// double and duelling, with Huber's loss, three-step targets and prioritised replay.
func DefaultConfig() Config {
	c := Config{
		Double: true, Duelling: true, Prioritized: true, NStep: 3,
		Gamma: 0.99, RewardFactor: 1,
		Buffer: 50_000, Priority: replay.DefaultPriorityConfig(), Beta: 0.4, SaveReplay: true,
		LR: 2.5e-4, AdamEps: 1e-8, Batch: 128, Huber: 1, MaxGradNorm: 10, Shards: 4,
		LearningStarts: 10_000, WarmupRandom: true, TrainEvery: 10, GradientSteps: 1, TargetEvery: 500, Tau: 1,
		EpsStart: 1, EpsEnd: 0.05, EpsShare: 0.5,
		Network: model.DefaultConfig(),
	}
	c.Network.Hidden, c.Network.Activation, c.Network.Init, c.Network.Separate = []int{120, 84}, "relu", "fan-in", false
	return c
}

// Validate reports all faults of c at once.
func (c Config) Validate() error {
	var l fault.List
	count := func(key string, v, low, high int) {
		l.Add(v >= low && v <= high, key, v, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	number := func(key string, v, low, high float64) {
		l.Add(v >= low && v <= high, key, v, fmt.Sprintf("a number in [%v, %v]", low, high))
	}
	positive := func(key string, v, high float64) {
		l.Add(v > 0 && v <= high, key, v, fmt.Sprintf("a number in (0, %v]", high))
	}
	count("n_step", c.NStep, 1, 1000)
	number("gamma", c.Gamma, 0, 1)
	positive("reward_factor", c.RewardFactor, 1e9)
	count("buffer", c.Buffer, 1, 1<<30)
	l.Add(c.NStep <= c.Buffer, "n_step", c.NStep, fmt.Sprintf("at most the buffer, %d", c.Buffer))
	l.Join("priority", c.Priority.Validate())
	number("beta", c.Beta, 0, 1)
	positive("lr", c.LR, 1)
	positive("adam_eps", c.AdamEps, 1)
	count("batch", c.Batch, 1, 1<<20)
	l.Add(c.Batch <= c.Buffer, "batch", c.Batch, fmt.Sprintf("at most the buffer, %d", c.Buffer))
	number("huber", c.Huber, 0, 1e9)
	number("max_grad_norm", c.MaxGradNorm, 0, 1e9)
	count("shards", c.Shards, 1, 1024)
	count("learning_starts", c.LearningStarts, 0, 1<<40)
	count("train_every", c.TrainEvery, 1, 1<<30)
	l.Add(c.GradientSteps == -1 || c.GradientSteps >= 1 && c.GradientSteps <= 1<<20, "gradient_steps", c.GradientSteps,
		fmt.Sprintf("a whole number from 1 to %d, or -1 for train_every", 1<<20))
	count("target_every", c.TargetEvery, 0, 1<<40)
	positive("tau", c.Tau, 1)
	number("eps_start", c.EpsStart, 0, 1)
	number("eps_end", c.EpsEnd, 0, 1)
	number("eps_share", c.EpsShare, 0, 1)
	l.Join("network", c.Network.Validate())
	return l.Err()
}
