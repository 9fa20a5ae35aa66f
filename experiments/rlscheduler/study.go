package rlscheduler

import (
	"embed"

	"clustergym/experiments/study"
	"clustergym/simulator/sim"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 1

// Study returns the study rlscheduler.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	return study.Of(study.Study{
		Name:  "rlscheduler",
		Title: "RLScheduler's machine and windows: its agent, rules, a tuned key, and that key with a search",
		Cite: "Zhang et al., RLScheduler: an automated HPC batch job scheduler using reinforcement learning, SC " +
			"2020, and github.com/DIR-LAB/deep-batch-scheduler",
		RunTimes:    sim.Estimates{Mode: sim.EstimateExact}.Label(),
		PlaysAgents: true,
		Takes:       "quick 1 minute, full 20 minutes, with --data 40 minutes on two cores",
	}, files, planned, study.Parts[settings]{
		Cells: (*settings).cells, Values: (*settings).values, Claims: (*settings).claims, Notes: (*settings).notes,
	})
}
