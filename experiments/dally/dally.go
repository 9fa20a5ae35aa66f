package dally

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
)

//go:embed experiment.yaml
var dallySettingsFile []byte

//go:embed expected.csv
var dallyExpected []byte

// acceptorYAML is how acceptors are trained.
//
//go:embed acceptor.yaml
var acceptorYAML []byte

// dallySettings are the settings of the study dally.
type dallySettings struct {
	Jobs            int       `yaml:"jobs"`  // of a workload
	Draws           int       `yaml:"draws"` // workloads of each kind
	Nets            []string  `yaml:"nets"`
	Workloads       []string  `yaml:"workloads"`
	Congestion      []float64 `yaml:"congestion"`    // share of the bandwidth between machines that others take
	CongestionAt    []string  `yaml:"congestion_at"` // WORKLOAD/NET
	CongestionDraws int       `yaml:"congestion_draws"`
	PeerJobs        int       `yaml:"peer_jobs"`
	PeerDraws       int       `yaml:"peer_draws"`
	TrainSteps      int64     `yaml:"train_steps"`
	TrainSeeds      int       `yaml:"train_seeds"`
	Windows         int       `yaml:"windows"` // test episodes of the acceptors
}

// Validate implements configs.Validator.
func (s *dallySettings) Validate() error {
	var l fault.List
	for _, n := range []struct {
		key string
		n   int
	}{
		{"jobs", s.Jobs}, {"draws", s.Draws}, {"congestion_draws", s.CongestionDraws}, {"peer_jobs", s.PeerJobs},
		{"peer_draws", s.PeerDraws}, {"train_steps", int(s.TrainSteps)}, {"train_seeds", s.TrainSeeds}, {"windows", s.Windows},
	} {
		l.Add(n.n >= 1, n.key, n.n, "1 or more")
	}
	for _, n := range s.Nets {
		l.Add(slices.Contains(dallyNets(), n), "nets", n, "one of "+strings.Join(dallyNets(), ", "))
	}
	for _, w := range s.Workloads {
		l.Add(slices.Contains(dallyWorkloads(), w), "workloads", w, "one of "+strings.Join(dallyWorkloads(), ", "))
	}
	for _, at := range s.CongestionAt {
		workload, net, ok := strings.Cut(at, "/")
		l.Add(ok && slices.Contains(dallyWorkloads(), workload) && slices.Contains(dallyNets(), net), "congestion_at", at, "WORKLOAD/NET")
	}
	for _, c := range s.Congestion {
		l.Add(c >= 0 && c < 1, "congestion", c, "a share from 0 up to below 1")
	}
	return l.Err()
}

// The policies by the names that the tables have for them.
const (
	dallyAuto     = "Dally, tuned timers"
	dallyFixed    = "Dally, timers 5/10"
	dallyAccept   = "accept at once"
	dallyNever    = "wait for the nearest tier"
	dallyGive     = "the same, long gangs give way"
	dallyTiresias = "Tiresias, leases"
	dallyLAS      = "Tiresias, las-2d"
	dallyGandiva  = "Gandiva"
)

// dallyStudy is delay scheduling (Sharma et al., arXiv 2401.16492).
func Study() study.Study {
	return study.Study{
		Name:  "dally",
		Title: "Dally: delay scheduling, its timers tuned or learned",
		Cite: "Sharma, Bhasi, Singh, Kesidis, Kandemir, Das: GPU cluster scheduling for network-sensitive deep learning, " +
			"arXiv 2401.16492 (2024)",
		Takes:    "quick about a minute, full about a quarter of an hour, on two cores",
		Expected: dallyExpected,
		Cells:    dallyCells,
		Tables:   dallyTables,
		Figures:  dallyFigures,
		Claims: func(p study.Plan) []study.Claim {
			s, err := dallyPlan(p)
			if err != nil {
				return nil
			}
			worst := dallyShare(s.Congestion[len(s.Congestion)-1])
			var list []study.Claim
			for _, c := range [][3]string{
				{"makespan", "up to −69 %", "makespan vs "}, {"mean JCT", "up to −83 %", "JCT vs "}, {"communication", "up to −98 %", "communication vs "},
			} {
				for _, against := range []string{"Tiresias", "Gandiva", "las-2d"} {
					list = append(list, study.Claim{
						What: fmt.Sprintf("%s of Dally against %s, %s of the bandwidth between machines taken by others", c[0], against, worst), Paper: c[1],
						Table: "congestion", Line: dallyCongested(worst, dallyAuto), Column: c[2] + against,
					})
				}
				for _, against := range []string{"Tiresias", "Gandiva"} {
					list = append(list, study.Claim{
						What: fmt.Sprintf("%s of Dally against %s on the authors' machine, waiting-only", c[0], against), Paper: c[1],
						Table: "effects", Line: map[string]string{"workload": "dally-multi", "machine": dallyMachines()[1], "policy": dallyAuto}, Column: c[2] + against,
					})
				}
			}
			return list
		},
		Notes: func(study.Plan) []string {
			return []string{
				"The paper says \"up to\" and publishes neither cluster sizes, leases nor congestion settings: these are its effects on settings of ours.",
				"The lines beside the paper's are of dally-multi on the network slow; the tables congestion and effects have others.",
				"Tiresias is tiresias-lease, under Dally's leases and waiting for skewed models; las-2d is Tiresias in two queues, whose jobs take what places there are.",
				"Communication is the time that jobs hold GPUs beyond their compute time, summed over jobs, not multiplied by GPUs.",
				"Gandiva here is env/heuristic's, first come, first served with turns; the authors' program has one that serves the most recently started first (table machines).",
			}
		},
	}
}

func dallyPlan(p study.Plan) (dallySettings, error) {
	s, err := study.Settings[dallySettings]("dally", dallySettingsFile, p, dallySettings{})
	if p.Seeds > 0 {
		s.Draws, s.CongestionDraws, s.PeerDraws, s.TrainSeeds = p.Seeds, p.Seeds, p.Seeds, p.Seeds
	}
	return s, err
}

// dallyShare is a share of congestion in words.
func dallyShare(c float64) string { return fmt.Sprintf("%g %%", 100*c) }

// dallyCongested is a line of the table congestion, where the paper's figures are looked for.
func dallyCongested(share, policy string) map[string]string {
	return map[string]string{"workload": "dally-multi", "net": "slow", "congestion": share, "policy": policy}
}

func dallyTables(p study.Plan) []study.Table {
	s, _ := dallyPlan(p)
	var shares []string
	for _, c := range s.Congestion {
		shares = append(shares, dallyShare(c))
	}
	policies := []string{dallyAuto, dallyFixed, dallyAccept, dallyNever, dallyTiresias, dallyLAS, dallyGandiva}
	against := func(title, metric string) []study.Column {
		return []study.Column{
			{Title: title + " vs Tiresias", Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": dallyTiresias}},
			{Title: title + " vs Gandiva", Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": dallyGandiva}},
			{Title: title + " vs las-2d", Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": dallyLAS}},
		}
	}
	figures := []study.Column{
		{Title: "mean JCT (h)", Metric: "jct_h"}, {Title: "makespan (h)", Metric: "makespan_h"}, {Title: "communication (h)", Metric: "comm_h"},
	}
	effects := slices.Concat(against("JCT", "jct_h"), against("makespan", "makespan_h"), against("communication", "comm_h"))
	return []study.Table{
		{
			Name: "schedulers", Title: "Schedulers by workload and network, in this simulator",
			By: []string{"workload", "net", "policy"}, Order: map[string][]string{"policy": policies, "net": dallyNets(), "workload": dallyWorkloads()},
			Columns: slices.Concat(figures, effects),
		},
		{
			Name: "congestion", Title: "Dally against Tiresias and Gandiva as others take bandwidth between machines",
			By:      []string{"workload", "net", "congestion", "policy"},
			Order:   map[string][]string{"policy": policies, "congestion": shares, "net": dallyNets(), "workload": dallyWorkloads()},
			Columns: slices.Concat(figures, effects),
		},
		{
			Name: "timers", Title: "The timers: tuned against fixed, and against none",
			By: []string{"workload", "net", "policy"}, Order: map[string][]string{"policy": policies, "net": dallyNets(), "workload": dallyWorkloads()},
			Columns: []study.Column{
				{Title: "JCT vs timers 5/10", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": dallyFixed}},
				{Title: "JCT vs accept at once", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": dallyAccept}},
				{Title: "communication vs timers 5/10", Metric: "comm_h", Stat: study.Percent, Versus: map[string]string{"policy": dallyFixed}},
			},
		},
		{
			Name: "machines", Title: "The machine of Dally's authors beside this simulator, the same jobs (network slow)",
			By: []string{"workload", "policy", "machine"}, Order: map[string][]string{"machine": dallyMachines(), "policy": {"Dally, tuned timers", "Dally, timers 5/10", "Tiresias", "Gandiva"}},
			Columns: figures,
		},
		{
			Name: "effects", Title: "Dally against the others on each machine", From: "machines",
			By: []string{"workload", "machine", "policy"}, Order: map[string][]string{"machine": dallyMachines(), "policy": {"Dally, tuned timers", "Dally, timers 5/10"}},
			Columns: []study.Column{
				{Title: "JCT vs Tiresias", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": "Tiresias"}},
				{Title: "JCT vs Gandiva", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": "Gandiva"}},
				{Title: "makespan vs Tiresias", Metric: "makespan_h", Stat: study.Percent, Versus: map[string]string{"policy": "Tiresias"}},
				{Title: "makespan vs Gandiva", Metric: "makespan_h", Stat: study.Percent, Versus: map[string]string{"policy": "Gandiva"}},
				{Title: "communication vs Tiresias", Metric: "comm_h", Stat: study.Percent, Versus: map[string]string{"policy": "Tiresias"}},
				{Title: "communication vs Gandiva", Metric: "comm_h", Stat: study.Percent, Versus: map[string]string{"policy": "Gandiva"}},
			},
		},
		{
			Name: "acceptors", Title: "DelayOffer-v1: who answers the offers (test windows of dally-multi, network slow)",
			By: []string{"acceptor"}, Order: map[string][]string{"acceptor": {dallyGreedy, dallyLearned, dallyBlind, dallyAuto, dallyFixed, dallyNever, dallyGive, dallyAccept, dallyRandom}},
			Columns: []study.Column{
				{Title: "mean JCT (h)", Metric: "jct_h"}, {Title: "communication (h)", Metric: "comm_h"},
				{Title: "JCT vs tuned timers", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"acceptor": dallyAuto}},
				{Title: "JCT vs timers 5/10", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"acceptor": dallyFixed}},
				{Title: "JCT vs giving way", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"acceptor": dallyGive}},
				{Title: "windows won against tuned timers", Metric: "jct_h", Stat: study.Wins, Versus: map[string]string{"acceptor": dallyAuto}},
				{Title: "offers accepted", Metric: "accepted", Format: study.Share, Bare: true},
			},
		},
	}
}

func dallyFigures(p study.Plan) []study.Figure {
	s, err := dallyPlan(p)
	if err != nil {
		return nil
	}
	lines := func(column string) func(r *study.Results) []study.Series {
		return func(r *study.Results) []study.Series {
			var all []study.Series
			for _, policy := range []string{dallyAuto, dallyNever, dallyTiresias, dallyLAS, dallyGandiva} {
				one := study.Series{Name: policy}
				for _, c := range s.Congestion {
					if v, _, ok := r.Find("congestion", dallyCongested(dallyShare(c), policy), column); ok {
						one.Points = append(one.Points, study.Point{X: 1 / (1 - c), Y: v.Value, Low: v.Low, High: v.High})
					}
				}
				all = append(all, one)
			}
			return all
		}
	}
	return []study.Figure{
		{Name: "jct", Title: "Mean JCT as bandwidth between machines becomes scarce", X: "times less bandwidth (dally-multi, network slow)", Y: "mean JCT (h)", LogX: true, LogY: true, Series: lines("mean JCT (h)")},
		{Name: "communication", Title: "Communication as bandwidth between machines becomes scarce", X: "times less bandwidth (dally-multi, network slow)", Y: "communication (h)", LogX: true, LogY: true, Series: lines("communication (h)")},
	}
}
