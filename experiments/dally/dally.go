package dally

import (
	_ "embed"
	"fmt"

	"clustergym/experiments/study"
)

//go:embed experiment.yaml
var settingsYAML []byte

//go:embed expected.csv.zst
var expected []byte

// acceptorYAML is the run that trains acceptors.
//
//go:embed acceptor.yaml
var acceptorYAML []byte

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal settings.
const method = 5

// Study returns the study dally, which reproduces the delay scheduling of Sharma et al., arXiv 2401.16492.
func Study() study.Study {
	return study.Of(study.Study{
		Name:  "dally",
		Title: "Dally: delay scheduling, its timers tuned or learned",
		Cite: "Sharma, Bhasi, Singh, Kesidis, Kandemir, Das: GPU cluster scheduling for network-sensitive deep learning, " +
			"arXiv 2401.16492 (2024)",
		RunTimes: "exact for agents, none for the one that learned without run times; other policies ask nothing of them",
		Takes:    "quick about a minute, full about a quarter of an hour, on two free cores",
		Expected: expected,
	}, settingsOf, study.Parts[settings]{Cells: (*settings).cells, Tables: (*settings).tables, Figures: (*settings).figures, Claims: (*settings).claims, Notes: (*settings).notes})
}

// claims returns the paper's effects beside ours. The paper says "up to", so ours are those of the scarcest bandwidth.
func (s *settings) claims(study.Plan) (list []study.Claim) {
	if len(s.Congestion) == 0 {
		return nil
	}
	worst := shareText(s.Congestion[len(s.Congestion)-1])
	for _, c := range [][3]string{
		{"makespan", "up to −69 %", "makespan vs "}, {"mean JCT", "up to −83 %", "JCT vs "}, {"communication", "up to −98 %", "communication vs "},
	} {
		for _, against := range []string{"Tiresias", "Gandiva", "las-2d"} {
			list = append(list, study.Claim{
				What: fmt.Sprintf("%s of Dally against %s, %s of the bandwidth between machines taken by others", c[0], against, worst), Paper: c[1],
				Table: "congestion", Line: congestedLine(worst, tunedTimers), Column: c[2] + against,
			})
		}
		for _, against := range []string{"Tiresias", "Gandiva", "las-2d"} {
			list = append(list, study.Claim{
				What: fmt.Sprintf("%s of delay-las, which is ours, against %s, likewise", c[0], against), Paper: "–",
				Table: "congestion", Line: congestedLine(worst, delayLAS), Column: c[2] + against,
			})
		}
		for _, against := range []string{"Tiresias", "Gandiva"} {
			list = append(list, study.Claim{
				What: fmt.Sprintf("%s of Dally against %s on the authors' machine, waiting-only", c[0], against), Paper: c[1],
				Table: "effects", Line: map[string]string{"workload": "dally-multi", "machine": machines()[1], "policy": tunedTimers}, Column: c[2] + against,
			})
		}
	}
	return list
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(study.Plan) []string {
	return []string{
		"The paper says \"up to\" and publishes neither cluster sizes, leases nor congestion settings: these are its effects on settings of ours.",
		"The lines beside the paper's are of dally-multi on the network slow; the tables congestion and effects have others.",
		"Tiresias is tiresias-lease, under Dally's leases and waiting for skewed models; las-2d is Tiresias in two queues, whose jobs take what places there are.",
		"delay-las is ours: the order of Tiresias, and a job waits for a place that is nearly as fast as its best. Tiresias with leases that end together is the stronger rival.",
		"A stop costs a second for each GPU of the gang, as in the authors' program, and nothing for Gandiva, except in the table overheads. The acceptors pay nothing.",
		"Communication is the time that jobs hold GPUs beyond their compute time, with what stops cost, summed over jobs, not multiplied by GPUs.",
		"Gandiva here is env/heuristic's, first come, first served with turns; the authors' program has one that serves the most recently started first (table machines).",
	}
}
