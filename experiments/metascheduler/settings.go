package metascheduler

import (
	"fmt"
	"slices"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// settings are the keys of experiment.yaml. Their JSON is part of the cells' inputs.
type settings struct {
	Seeds       int      `yaml:"seeds"`        // learners of each method
	Windows     int      `yaml:"windows"`      // workloads on which everything is judged and nothing is trained
	Jobs        int      `yaml:"jobs"`         // of a workload
	Slots       int      `yaml:"slots"`        // waiting jobs in an observation
	Width       int      `yaml:"width"`        // of the policies' layers
	Noise       float64  `yaml:"noise"`        // of measured speeds
	Rounds      int      `yaml:"rounds"`       // of the closed loop, before the change
	AfterRounds int      `yaml:"after_rounds"` // of the closed loop, after the change
	FreeRounds  int      `yaml:"free_rounds"`  // of learning without models; a quarter as many and one more after the change
	Episodes    int      `yaml:"episodes"`     // real episodes of a round
	Adapting    int      `yaml:"adapting"`     // real episodes after the change, before the inner steps
	MetaSteps   int      `yaml:"meta_steps"`   // of a round
	Before      int      `yaml:"before"`       // imagined episodes of a task for the inner steps
	After       int      `yaml:"after"`        // and for the meta-gradient; methods without meta-learning learn from both
	Guide       int      `yaml:"guide"`        // passes in which mls-guided imitates the models' planners
	Stream      string   `yaml:"stream"`       // of the judging workloads: held-out, or development to try settings on others
	Methods     []string `yaml:"methods,flow"` // learners, of methods()
}

// defaultSettings returns the values of keys that experiment.yaml leaves out.
func defaultSettings() settings {
	return settings{
		Seeds: 5, Windows: 32, Jobs: 40, Slots: 5, Width: 32, Noise: 0.02, Rounds: 8, AfterRounds: 2, FreeRounds: 40, Episodes: 4,
		Adapting: 2, MetaSteps: 10, Before: 4, After: 4, Guide: 100, Stream: "held-out", Methods: methods(),
	}
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	for _, v := range []struct {
		key   string
		value int
	}{
		{"seeds", s.Seeds}, {"windows", s.Windows}, {"jobs", s.Jobs}, {"slots", s.Slots}, {"width", s.Width}, {"rounds", s.Rounds},
		{"after_rounds", s.AfterRounds}, {"free_rounds", s.FreeRounds}, {"episodes", s.Episodes}, {"adapting", s.Adapting}, {"meta_steps", s.MetaSteps},
		{"before", s.Before}, {"after", s.After},
	} {
		l.Add(v.value >= 1 && v.value <= 10_000, v.key, v.value, "a whole number from 1 to 10000")
	}
	l.Add(s.Guide >= 0, "guide", s.Guide, "a whole number, 0 or more")
	l.Add(s.Stream == "held-out" || s.Stream == "development", "stream", s.Stream, "held-out or development")
	l.Add(s.Noise >= 0 && s.Noise <= 1, "noise", s.Noise, "a number in [0, 1]")
	for i, m := range s.Methods {
		l.Add(slices.Contains(methods(), m), fmt.Sprintf("methods[%d]", i), m, nearest.OneOf(m, methods()))
	}
	return l.Err()
}
