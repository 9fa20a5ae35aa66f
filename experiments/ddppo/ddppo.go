package ddppo

import (
	"embed"

	"clustergym/experiments/study"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 1

// Study returns the study ddppo.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	return study.Of(study.Study{
		Name:  "ddppo",
		Title: "DD-PPO for HPC scheduling: replicas of PPO over a streamed log of 11.5 million jobs",
		Cite:  "Sgambati, Vakanski, Anderson, arXiv 2505.03946 (2025)",
		Takes: "quick 2 minutes, full half an hour on two cores",
	}, files, planned, study.Parts[settings]{
		Cells: (*settings).cells, Values: (*settings).values, Formats: formats, Notes: (*settings).notes,
	})
}
