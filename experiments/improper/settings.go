package improper

import (
	"slices"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// settings are the keys of one section of experiment.yaml, quick or full.
type settings struct {
	Networks []string `yaml:"networks"`
	NetSeeds int      `yaml:"net_seeds"` // trainings of each method on each network
	NetSteps int64    `yaml:"net_steps"` // of each training, in slots
	Episodes int      `yaml:"episodes"`  // test episodes of a network
	Slots    int      `yaml:"slots"`     // of a test episode

	Workloads []string `yaml:"workloads"`
	Jobs      int      `yaml:"jobs"`    // of a workload: the last fifth is for tests, the tenth before for validation
	Windows   int      `yaml:"windows"` // test windows of a workload, at most
	Seeds     int      `yaml:"seeds"`   // trainings of each agent on each workload
	Steps     int64    `yaml:"steps"`   // of each training, in decisions, the same for all agents
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	for i, n := range s.Networks {
		l.Add(slices.Contains(networkNames(), n) && !slices.Contains(s.Networks[:i], n), "networks", n,
			"each once: "+nearest.OneOf(n, networkNames()))
	}
	for i, w := range s.Workloads {
		l.Add(slices.Contains(workloadNames(), w) && !slices.Contains(s.Workloads[:i], w), "workloads", w,
			"each once: "+nearest.OneOf(w, workloadNames()))
	}
	for _, n := range []struct {
		key         string
		n           int64
		least, most int64
		want        string
	}{
		{"net_seeds", int64(s.NetSeeds), 1, 1000, "1 to 1000"},
		{"net_steps", s.NetSteps, 4096, 1e9, "4096 to 1000000000 slots"},
		{"episodes", int64(s.Episodes), 2, 10000, "2 to 10000"}, {"slots", int64(s.Slots), 100, 1e7, "100 to 10000000"},
		{"jobs", int64(s.Jobs), 8000, 1e6, "8000 to 1000000, so that every part has windows"},
		{"windows", int64(s.Windows), 2, 10000, "2 to 10000"},
		{"seeds", int64(s.Seeds), 1, 1000, "1 to 1000"}, {"steps", s.Steps, 1024, 1e9, "1024 to 1000000000 decisions"},
	} {
		l.Add(n.n >= n.least && n.n <= n.most, n.key, n.n, n.want)
	}
	return l.Err()
}

// settingsOf returns the settings of p's form, quick or full, with p's number of seeds.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("improper", files, p, settings{})
	s.Seeds, s.NetSeeds = p.SeedsOr(s.Seeds), p.SeedsOr(s.NetSeeds)
	return s, err
}
