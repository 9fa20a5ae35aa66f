package dally

import (
	"slices"
	"strings"
	"time"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/config"
)

// settings are the keys of experiment.yaml.
type settings struct {
	Jobs            int       `yaml:"jobs"`  // of a workload
	Draws           int       `yaml:"draws"` // workloads of each kind
	Nets            []string  `yaml:"nets"`
	Workloads       []string  `yaml:"workloads"`
	Congestion      []float64 `yaml:"congestion"`       // shares of the bandwidth between machines that others take
	CongestionAt    []string  `yaml:"congestion_at"`    // WORKLOAD/NET
	CongestionDraws int       `yaml:"congestion_draws"` // workloads for each share
	Overhead        string    `yaml:"overhead"`         // what a stop costs for each GPU: a time, or authors
	Overheads       []string  `yaml:"overheads"`        // the same, for the table overheads
	Leases          []string  `yaml:"leases"`           // times, for the table leases
	Clusters        []string  `yaml:"clusters"`         // RACKSxMACHINES, for the table leases
	AxesAt          []string  `yaml:"axes_at"`          // WORKLOAD/NET of the tables overheads and leases
	AxesDraws       int       `yaml:"axes_draws"`       // workloads of these tables
	PeerJobs        int       `yaml:"peer_jobs"`        // of a workload for the authors' machine
	PeerDraws       int       `yaml:"peer_draws"`       // workloads for the authors' machine
	TrainSteps      int64     `yaml:"train_steps"`      // of each acceptor
	TrainSeeds      int       `yaml:"train_seeds"`      // acceptors of each kind
	Windows         int       `yaml:"windows"`          // test episodes of the acceptors
	// trace.seed of the log whose test windows they are; 0 = the log of the trainings
	TestSeed uint64 `yaml:"test_seed"`
	// Agent is the run that trains an acceptor, acceptor.yaml with a user's changes. Its length and seed are those above.
	Agent config.Config `yaml:"agent"`
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	for _, n := range []struct {
		key string
		n   int
	}{
		{"jobs", s.Jobs}, {"draws", s.Draws}, {"congestion_draws", s.CongestionDraws}, {"axes_draws", s.AxesDraws},
		{"peer_jobs", s.PeerJobs},
		{"peer_draws", s.PeerDraws}, {"train_steps", int(s.TrainSteps)}, {"train_seeds", s.TrainSeeds},
		{"windows", s.Windows},
	} {
		l.Add(n.n >= 1, n.key, n.n, "1 or more")
	}
	for _, n := range s.Nets {
		l.Add(slices.Contains(nets(), n), "nets", n, nearest.OneOf(n, nets()))
	}
	for _, w := range s.Workloads {
		l.Add(slices.Contains(workloads(), w), "workloads", w, nearest.OneOf(w, workloads()))
	}
	for _, list := range []struct {
		key string
		at  []string
	}{{"congestion_at", s.CongestionAt}, {"axes_at", s.AxesAt}} {
		for _, at := range list.at {
			workload, net, ok := strings.Cut(at, "/")
			l.Add(ok && slices.Contains(workloads(), workload) && slices.Contains(nets(), net), list.key, at, "WORKLOAD/NET")
		}
	}
	for i, o := range append([]string{s.Overhead}, s.Overheads...) {
		d, err := time.ParseDuration(o)
		l.Add(o == authorsCost || err == nil && d >= 0 && d <= time.Minute, []string{"overhead", "overheads"}[min(i, 1)], o,
			"a time from 0s to 1m, or authors")
	}
	for _, t := range s.Leases {
		d, err := time.ParseDuration(t)
		l.Add(err == nil && d >= time.Minute, "leases", t, "a time of 1m or more")
	}
	for _, c := range s.Clusters {
		l.Add(gpusOf(c) > 0, "clusters", c, "RACKSxMACHINES, as 4x4")
	}
	l.Add(len(s.Congestion) > 0, "congestion", s.Congestion, "one share or more")
	for _, c := range s.Congestion {
		l.Add(c >= 0 && c < 1, "congestion", c, "a share from 0 up to below 1")
	}
	l.Join("agent", s.Agent.Validate())
	if base, err := acceptorRun(); err == nil {
		study.SetElsewhere(&l, "agent", base, s.Agent, map[string]string{
			"seed": "the experiment", "train.steps": "train_steps", "train.eval_every": "train_steps",
			"train.checkpoint_every": "train_steps", "eval.policies": "the experiment",
			"env.ask": "the experiment", "env.window": "agent.env.args", "env.relative": "agent.env.args",
			"trace.seed":          "agent.env.args",
			"trace.synth.profile": "agent.env.args", "trace.synth.jobs": "agent.env.args",
		})
	}
	return l.Err()
}

// acceptorRun returns the run of acceptor.yaml.
func acceptorRun() (config.Config, error) { return config.DecodeSection("acceptor.yaml", acceptorYAML) }

// settingsOf returns the settings of p's form, quick or full, with p's number of seeds.
func settingsOf(p study.Plan) (settings, error) {
	agent, err := acceptorRun()
	if err != nil {
		return settings{}, err
	}
	s, err := study.Settings("dally", files, p, settings{Agent: agent}, study.Part{Key: "agent", File: acceptorYAML})
	if p.Seeds > 0 {
		s.Draws, s.CongestionDraws, s.AxesDraws, s.PeerDraws, s.TrainSeeds = p.Seeds, p.Seeds, p.Seeds, p.Seeds, p.Seeds
	}
	return s, err
}
