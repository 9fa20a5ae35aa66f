package dally

import (
	"embed"

	"clustergym/experiments/study"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// acceptorYAML is the run that trains acceptors.
//
//go:embed acceptor.yaml
var acceptorYAML []byte

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
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
	}, files, settingsOf, study.Parts[settings]{
		Cells: (*settings).cells, Values: (*settings).values, Figures: (*settings).figures,
	})
}
