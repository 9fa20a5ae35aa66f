package metascheduler

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/agents/maml"
	"clustergym/env/workerplace"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// settings are the keys of experiment.yaml. Their JSON is part of the cells' inputs.
type settings struct {
	Seeds     int `yaml:"seeds"`      // learners of each method
	FirstSeed int `yaml:"first_seed"` // of them
	// of the workloads on which everything is judged; 0 = those on which settings were chosen
	TraceSeed   uint64  `yaml:"trace_seed"`
	Windows     int     `yaml:"windows"`      // workloads on which everything is judged and nothing is trained
	Servers     int     `yaml:"servers"`      // of the cluster
	GPUs        int     `yaml:"gpus"`         // of a server
	Jobs        int     `yaml:"jobs"`         // of a workload
	Arrivals    float64 `yaml:"arrivals"`     // jobs an interval
	Length      float64 `yaml:"length"`       // intervals that a job takes alone
	Crowding    float64 `yaml:"crowding"`     // what a job loses beside every two others, on top of the pairs
	Slots       int     `yaml:"slots"`        // waiting jobs in an observation
	Width       int     `yaml:"width"`        // of the policies' layers
	Noise       float64 `yaml:"noise"`        // of measured speeds
	First       int     `yaml:"first"`        // real episodes that rules play before the first round
	Rounds      int     `yaml:"rounds"`       // of the closed loop, before the change
	AfterRounds int     `yaml:"after_rounds"` // of the closed loop, after the change
	// of learning without models; a quarter as many and one more after the change
	FreeRounds   int      `yaml:"free_rounds"`
	Episodes     int      `yaml:"episodes"`      // real episodes of a round
	FreeEpisodes int      `yaml:"free_episodes"` // real episodes of a round without models
	Adapting     int      `yaml:"adapting"`      // real episodes after the change, before the inner steps
	MetaSteps    int      `yaml:"meta_steps"`    // of a round
	Before       int      `yaml:"before"`        // imagined episodes of a task for the inner steps
	After        int      `yaml:"after"`         // and for the outer step, of methods with meta-learning and without
	Guide        int      `yaml:"guide"`         // passes in which mls-guided imitates the models' planners
	Methods      []string `yaml:"methods,flow"`  // learners, of methods()

	Ablations     []string `yaml:"ablations,flow"` // learners of another inner loop, of ablations()
	AblationSeeds int      `yaml:"ablation_seeds"` // learners of each

	// the learner ppo; cells of it have these keys in their input, others have not
	PPO proximal `yaml:"ppo" json:",omitzero"`

	Poor   poor   `yaml:"poor" json:",omitzero"`   // the regime with poor models; no seeds = without it
	Family family `yaml:"family" json:",omitzero"` // adapting on real episodes, without models; no seeds = without it
}

// proximal are the keys of the learner ppo. They are called as in the runs of an agent; settings.FreeRounds and
// FreeEpisodes are its budget.
type proximal struct {
	LR          float64 `yaml:"lr"`            // of Adam
	Epochs      int     `yaml:"epochs"`        // steps on the episodes of a round
	Clip        float64 `yaml:"clip"`          // range of the probability ratio
	Gamma       float64 `yaml:"gamma"`         // discount of an interval
	Lambda      float64 `yaml:"lambda"`        // of advantages
	EntCoef     float64 `yaml:"ent_coef"`      // weight of the entropy
	KLCoef      float64 `yaml:"kl_coef"`       // weight of the divergence from the policy that acted
	MaxGradNorm float64 `yaml:"max_grad_norm"` // 0 = not clipped
	Imitation   int     `yaml:"imitation"`     // passes in which it first imitates the rule; 0 = none
	Width       int     `yaml:"width"`         // of its network's layers; 0 = settings.Width, that of all other learners
}

// into puts the keys into the settings of a learner.
func (p *proximal) into(c *maml.Config) {
	c.LR, c.Epochs, c.Clip, c.Gamma, c.Lambda = p.LR, p.Epochs, p.Clip, p.Gamma, p.Lambda
	c.EntCoef, c.KLCoef, c.MaxGradNorm = p.EntCoef, p.KLCoef, p.MaxGradNorm
}

// poor are the keys that differ in the regime with poor models: few real episodes in a larger cluster, jobs that crowd
// each other, and two types that come with the change.
type poor struct {
	Seeds       int      `yaml:"seeds"`
	Windows     int      `yaml:"windows"`
	Servers     int      `yaml:"servers"`
	GPUs        int      `yaml:"gpus"`
	Jobs        int      `yaml:"jobs"`
	Arrivals    float64  `yaml:"arrivals"`
	Length      float64  `yaml:"length"`
	Crowding    float64  `yaml:"crowding"`
	Slots       int      `yaml:"slots"`
	First       int      `yaml:"first"`
	Rounds      int      `yaml:"rounds"`
	AfterRounds int      `yaml:"after_rounds"`
	Episodes    int      `yaml:"episodes"`
	MetaSteps   int      `yaml:"meta_steps"`
	Methods     []string `yaml:"methods,flow"` // of explorers()
}

// family are the keys of meta-learning over a family of workloads on real episodes.
type family struct {
	Seeds   int      `yaml:"seeds"`
	Steps   int      `yaml:"steps"`   // meta-steps
	Tasks   int      `yaml:"tasks"`   // workloads of a meta-step
	Judged  int      `yaml:"judged"`  // workloads in which the learners are judged
	Plays   int      `yaml:"plays"`   // episodes in each of them
	Rate    float64  `yaml:"rate"`    // of an inner step
	Methods []string `yaml:"methods"` // of families()
}

// defaultSettings returns the values of keys that experiment.yaml leaves out.
func defaultSettings() settings {
	return settings{
		Seeds: 5, FirstSeed: 1, Windows: 32, Servers: 6, GPUs: 8, Jobs: 40, Arrivals: 3, Length: 3, Slots: 5, Width: 32,
		Noise: 0.02,
		First: 6, Rounds: 8, AfterRounds: 2, FreeRounds: 40, Episodes: 4, FreeEpisodes: 8, Adapting: 2, MetaSteps: 10,
		Before: 4, After: 8, Guide: 100,
		Methods: methods(), AblationSeeds: 3,
		PPO: proximal{LR: 1e-3, Epochs: 10, Clip: 0.2, Gamma: 0.99, Lambda: 0.95, EntCoef: 0.001, KLCoef: 5e-4,
			MaxGradNorm: 0.5, Imitation: 40},
	}
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	counts(&l, "", 10_000, "seeds", s.Seeds, "first_seed", s.FirstSeed, "windows", s.Windows, "first", s.First, "rounds",
		s.Rounds, "after_rounds", s.AfterRounds,
		"free_rounds", s.FreeRounds, "episodes", s.Episodes, "adapting", s.Adapting, "meta_steps", s.MetaSteps,
		"ablation_seeds", s.AblationSeeds)
	counts(&l, "", 4096, "width", s.Width, "free_episodes", s.FreeEpisodes, "before", s.Before, "after", s.After)
	l.Add(s.Guide >= 0 && s.Guide <= 10_000, "guide", s.Guide, "a whole number from 0 to 10000")
	l.Join("", s.world().Validate()) // whose keys have the same names
	names(&l, "methods", s.Methods, methods())
	if len(s.Ablations) > 0 {
		names(&l, "ablations", s.Ablations, ablations())
	}
	c := maml.DefaultConfig()
	s.PPO.into(&c)
	l.Join("ppo", c.Validate())
	l.Add(s.PPO.Imitation >= 0 && s.PPO.Imitation <= 10_000, "ppo.imitation", s.PPO.Imitation,
		"a whole number from 0 to 10000")
	l.Add(s.PPO.Width >= 0 && s.PPO.Width <= 4096, "ppo.width", s.PPO.Width, "a whole number from 0 to 4096; 0 = width")
	if p := &s.Poor; p.Seeds != 0 {
		counts(&l, "poor.", 10_000, "seeds", p.Seeds, "windows", p.Windows, "first", p.First, "rounds", p.Rounds,
			"after_rounds", p.AfterRounds,
			"episodes", p.Episodes, "meta_steps", p.MetaSteps)
		w := s.inPoor().world()
		w.Noise = 0 // it is no key of poor
		l.Join("poor", w.Validate())
		names(&l, "poor.methods", p.Methods, explorers())
	}
	if f := &s.Family; f.Seeds != 0 {
		counts(&l, "family.", 10_000, "seeds", f.Seeds, "steps", f.Steps, "judged", f.Judged, "plays", f.Plays)
		counts(&l, "family.", 4096, "tasks", f.Tasks)
		l.Add(f.Rate > 0 && f.Rate <= 10, "family.rate", f.Rate, "a number above 0, at most 10")
		names(&l, "family.methods", f.Methods, families())
	}
	return l.Err()
}

// counts adds a fault for every number of pairs of a key and a number that is not from 1 to most.
func counts(l *fault.List, before string, most int, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1].(int)
		l.Add(v >= 1 && v <= most, before+pairs[i].(string), v, fmt.Sprintf("a whole number from 1 to %d", most))
	}
}

// names adds a fault if got is empty, and one for every name in it that is unknown or stands there twice.
func names(l *fault.List, key string, got, of []string) {
	l.Add(len(got) > 0, key, got, "one or more of "+strings.Join(of, ", "))
	for i, m := range got {
		at := fmt.Sprintf("%s[%d]", key, i)
		l.Add(slices.Contains(of, m), at, m, nearest.OneOf(m, of))
		l.Add(slices.Index(got, m) == i, at, m, "each name once")
	}
}

// world returns the configuration of the environment.
func (s *settings) world() workerplace.Config {
	c := workerplace.DefaultConfig()
	c.Servers, c.GPUs, c.Arrivals, c.Length, c.Crowding = s.Servers, s.GPUs, s.Arrivals, s.Length, s.Crowding
	c.Obs, c.Slots, c.Jobs, c.Noise = "pairs", s.Slots, s.Jobs, s.Noise
	return c
}

// width returns the width of a method's network.
func (s *settings) width(method string) int {
	if method == "ppo" && s.PPO.Width > 0 {
		return s.PPO.Width
	}
	return s.Width
}

// inPoor returns the settings of the regime with poor models.
func (s *settings) inPoor() *settings {
	t, p := *s, &s.Poor
	t.Seeds, t.Windows, t.Servers, t.GPUs, t.Jobs, t.Arrivals, t.Length = p.Seeds, p.Windows, p.Servers, p.GPUs, p.Jobs,
		p.Arrivals, p.Length
	t.Crowding, t.Slots, t.First, t.Rounds, t.AfterRounds, t.Episodes = p.Crowding, p.Slots, p.First, p.Rounds,
		p.AfterRounds, p.Episodes
	t.MetaSteps, t.Methods = p.MetaSteps, p.Methods
	return &t
}
