package metascheduler

import (
	"fmt"
	"slices"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// settings are the keys of experiment.yaml. Their JSON is part of the cells' inputs.
type settings struct {
	Seeds        int      `yaml:"seeds"`         // learners of each method
	FirstSeed    int      `yaml:"first_seed"`    // of them
	TraceSeed    uint64   `yaml:"trace_seed"`    // of the workloads on which everything is judged; 0 = those on which settings were chosen
	Windows      int      `yaml:"windows"`       // workloads on which everything is judged and nothing is trained
	Servers      int      `yaml:"servers"`       // of the cluster
	GPUs         int      `yaml:"gpus"`          // of a server
	Jobs         int      `yaml:"jobs"`          // of a workload
	Arrivals     float64  `yaml:"arrivals"`      // jobs an interval
	Length       float64  `yaml:"length"`        // intervals that a job takes alone
	Crowding     float64  `yaml:"crowding"`      // what a job loses beside every two others, on top of the pairs
	Slots        int      `yaml:"slots"`         // waiting jobs in an observation
	Width        int      `yaml:"width"`         // of the policies' layers
	Noise        float64  `yaml:"noise"`         // of measured speeds
	First        int      `yaml:"first"`         // real episodes that rules play before the first round
	Rounds       int      `yaml:"rounds"`        // of the closed loop, before the change
	AfterRounds  int      `yaml:"after_rounds"`  // of the closed loop, after the change
	FreeRounds   int      `yaml:"free_rounds"`   // of learning without models; a quarter as many and one more after the change
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

	Poor   poor   `yaml:"poor" json:",omitzero"`   // the regime with poor models; no seeds = without it
	Family family `yaml:"family" json:",omitzero"` // adapting on real episodes, without models; no seeds = without it
}

// poor are the keys that differ in the regime with poor models: few real episodes in a larger cluster, jobs that crowd each
// other, and two types that come with the change.
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
		Seeds: 5, FirstSeed: 1, Windows: 32, Servers: 6, GPUs: 8, Jobs: 40, Arrivals: 3, Length: 3, Slots: 5, Width: 32, Noise: 0.02,
		First: 6, Rounds: 8, AfterRounds: 2, FreeRounds: 40, Episodes: 4, FreeEpisodes: 8, Adapting: 2, MetaSteps: 10, Before: 4, After: 8, Guide: 100,
		Methods: methods(), AblationSeeds: 3,
	}
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	counts := func(before string, all ...any) {
		for i := 0; i < len(all); i += 2 {
			v := all[i+1].(int)
			l.Add(v >= 1 && v <= 10_000, before+all[i].(string), v, "a whole number from 1 to 10000")
		}
	}
	number := func(key string, v, low, high float64) {
		l.Add(v >= low && v <= high, key, v, fmt.Sprintf("a number from %g to %g", low, high))
	}
	names := func(key string, got, of []string) {
		for i, m := range got {
			l.Add(slices.Contains(of, m), fmt.Sprintf("%s[%d]", key, i), m, nearest.OneOf(m, of))
		}
	}
	counts("", "seeds", s.Seeds, "first_seed", s.FirstSeed, "windows", s.Windows, "servers", s.Servers, "gpus", s.GPUs, "jobs", s.Jobs,
		"slots", s.Slots, "width", s.Width, "first", s.First, "rounds", s.Rounds, "after_rounds", s.AfterRounds, "free_rounds", s.FreeRounds,
		"episodes", s.Episodes, "free_episodes", s.FreeEpisodes, "adapting", s.Adapting, "meta_steps", s.MetaSteps, "before", s.Before, "after", s.After, "ablation_seeds", s.AblationSeeds)
	l.Add(s.Guide >= 0, "guide", s.Guide, "a whole number, 0 or more")
	number("noise", s.Noise, 0, 1)
	number("arrivals", s.Arrivals, 0.01, 10)
	number("length", s.Length, 0.01, 1000)
	number("crowding", s.Crowding, 0, 4)
	names("methods", s.Methods, methods())
	names("ablations", s.Ablations, ablations())
	if p := &s.Poor; p.Seeds != 0 {
		counts("poor.", "seeds", p.Seeds, "windows", p.Windows, "servers", p.Servers, "gpus", p.GPUs, "jobs", p.Jobs, "slots", p.Slots, "first", p.First,
			"rounds", p.Rounds, "after_rounds", p.AfterRounds, "episodes", p.Episodes, "meta_steps", p.MetaSteps)
		number("poor.arrivals", p.Arrivals, 0.01, 10)
		number("poor.length", p.Length, 0.01, 1000)
		number("poor.crowding", p.Crowding, 0, 4)
		names("poor.methods", p.Methods, explorers())
	}
	if f := &s.Family; f.Seeds != 0 {
		counts("family.", "seeds", f.Seeds, "steps", f.Steps, "tasks", f.Tasks, "judged", f.Judged, "plays", f.Plays)
		l.Add(f.Rate > 0 && f.Rate <= 10, "family.rate", f.Rate, "a number above 0, at most 10")
		names("family.methods", f.Methods, families())
	}
	return l.Err()
}

// inPoor returns the settings of the regime with poor models.
func (s *settings) inPoor() *settings {
	t, p := *s, &s.Poor
	t.Seeds, t.Windows, t.Servers, t.GPUs, t.Jobs, t.Arrivals, t.Length = p.Seeds, p.Windows, p.Servers, p.GPUs, p.Jobs, p.Arrivals, p.Length
	t.Crowding, t.Slots, t.First, t.Rounds, t.AfterRounds, t.Episodes = p.Crowding, p.Slots, p.First, p.Rounds, p.AfterRounds, p.Episodes
	t.MetaSteps, t.Methods = p.MetaSteps, p.Methods
	return &t
}
