package topdrl

import (
	"embed"

	"clustergym/experiments/study"
	"clustergym/simulator/sim"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 2

// Study returns the study topdrl, which reproduces TopDRL as far as it is published.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	return study.Of(study.Study{
		Name:     "topdrl",
		Title:    "TopDRL-like: a network picks the job, a heuristic the closest GPUs",
		Cite:     "Ayadi et al., TopDRL, JPDC 204, 105138 (2025), doi 10.1016/j.jpdc.2025.105138; a reconstruction",
		RunTimes: sim.Estimates{Mode: sim.EstimateExact}.Label(),
		Takes:    "quick 2 min, full an hour on two cores",
	}, files, planned, study.Parts[settings]{Cells: (*settings).cells, Values: (*settings).values})
}
