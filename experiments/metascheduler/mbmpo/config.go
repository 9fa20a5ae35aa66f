package mbmpo

import (
	"slices"

	"clustergym/agents/maml"
	"clustergym/experiments/metascheduler/perfmodel"
	"clustergym/internal/fault"
)

// Config holds the settings of a closed loop.
type Config struct {
	Maml   maml.Config      `yaml:"maml"`   // method joint = without meta-learning
	Models perfmodel.Config `yaml:"models"` // members 1 = a single model

	// ModelFree uses no models: the policy learns by joint training from the real episodes alone, maml.tasks of them in a
	// round. The loop is compared with it.
	ModelFree bool `yaml:"model_free"`

	Data      []string `yaml:"data,flow"`  // workerplace.Rules that play the first real episodes, in turn
	First     int      `yaml:"first"`      // of them
	Rule      string   `yaml:"rule"`       // one of Data, which the policy imitates first
	Imitation int      `yaml:"imitation"`  // passes over the rule's episodes for that; 0 = none
	ImitateLR float64  `yaml:"imitate_lr"` // rate of Adam there
	Episodes  int      `yaml:"episodes"`   // real episodes of a round
	// passes, in the first round, in which the policy imitates the planner of each model in that model; 0 = none
	Guide     int     `yaml:"guide"`
	Guided    int     `yaml:"guided"`     // imagined episodes of each of these planners
	Wait      float64 `yaml:"wait"`       // of these planners: workerplace.Planner.Wait, at least 0
	MetaSteps int     `yaml:"meta_steps"` // of a round
	Memory    int     `yaml:"memory"`     // newest measurements that models are fitted to

	Explore string  `yaml:"explore"` // targeted (both kinds), tailored, subspace, random or none
	Random  float64 `yaml:"random"`  // probability of an action drawn from all legal ones, with explore random
	Beta    float64 `yaml:"beta"`    // weight of a subspace's score
	Decay   float64 `yaml:"decay"`   // of beta, each round
	Average float64 `yaml:"average"` // weight of the newest error in a subspace's average
	Bonus   float64 `yaml:"bonus"`   // c: of rarely seen subspaces
	Guard   float64 `yaml:"guard"`   // how much slower than the policy's likeliest action an exploring action may be

	// relative change of completion times and of errors below which Loop.Settled holds; 0 = never
	Settled float64 `yaml:"settled"`
}

// Explorations are the values of Config.Explore.
func Explorations() []string { return []string{"targeted", "tailored", "subspace", "random", "none"} }

// DefaultConfig is five models and some rounds of a few episodes.
func DefaultConfig() Config {
	c := Config{
		Maml: maml.DefaultConfig(), Models: perfmodel.DefaultConfig(),
		Data: []string{"least-interference", "load-balance", "tetris"}, Rule: "least-interference", First: 6, Imitation: 40,
		ImitateLR: 3e-3, Episodes: 4, Guide: 60, Guided: 4, Wait: 0.4, MetaSteps: 10, Memory: 20_000,
		Explore: "targeted", Random: 0.1, Beta: 2, Decay: 0.8, Average: 0.3, Bonus: 0.5, Guard: 0.1,
	}
	c.Maml.Tasks, c.Maml.Before, c.Maml.After, c.Maml.Baseline, c.Maml.CGIterations = 5, 4, 4, "info", 5
	c.Maml.InnerLR, c.Maml.MaxKL, c.Maml.Damping = 0.05, 0.02, 1e-3
	c.Models.Hidden = []int{64, 64}
	return c
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var l fault.List
	l.Join("maml", c.Maml.Validate())
	l.Join("models", c.Models.Validate())
	count := func(key string, v, least int) {
		l.Add(v >= least && v <= 1<<20, key, v,
			map[int]string{0: "a whole number from 0 to 2^20", 1: "a whole number from 1 to 2^20"}[least])
	}
	count("first", c.First, 1)
	l.Add(len(c.Data) > 0 && slices.Contains(c.Data[:min(len(c.Data), c.First)], c.Rule), "rule", c.Rule,
		"one of the rules in data that first comes to")
	count("imitation", c.Imitation, 0)
	count("episodes", c.Episodes, 1)
	count("meta_steps", c.MetaSteps, 0)
	count("guide", c.Guide, 0)
	count("guided", c.Guided, 1)
	l.Add(c.Wait >= 0 && c.Wait <= 1, "wait", c.Wait, "a number in [0, 1]")
	count("memory", c.Memory, 1)
	l.Add(!c.ModelFree || c.Maml.Method == "joint", "model_free", c.ModelFree,
		"false, or method joint: there is nothing to adapt in")
	l.Add(c.ImitateLR > 0 && c.ImitateLR <= 1, "imitate_lr", c.ImitateLR, "a number in (0, 1]")
	l.Add(slices.Contains(Explorations(), c.Explore), "explore", c.Explore, "targeted, tailored, subspace, random or none")
	unit := func(key string, v float64) { l.Add(v >= 0 && v <= 1, key, v, "a number in [0, 1]") }
	unit("random", c.Random)
	unit("decay", c.Decay)
	unit("average", c.Average)
	unit("guard", c.Guard)
	unit("settled", c.Settled)
	l.Add(c.Beta >= 0 && c.Beta <= 100, "beta", c.Beta, "a number in [0, 100]")
	l.Add(c.Bonus >= 0 && c.Bonus <= 100, "bonus", c.Bonus, "a number in [0, 100]")
	return l.Err()
}

func (c Config) tailored() bool { return c.Explore == "targeted" || c.Explore == "tailored" }

func (c Config) subspace() bool { return c.Explore == "targeted" || c.Explore == "subspace" }
