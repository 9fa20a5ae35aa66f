package lwf

import (
	"embed"

	"clustergym/experiments/study"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 1

// Study returns the study lwf.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	return study.Of(study.Study{
		Name:  "lwf",
		Title: "LWF-κ, AdaDUAL, Ada-SRSF: where to place, and when to send beside another",
		Cite: "Wang, Shi, Wang, Chu: Communication contention aware scheduling of multiple deep learning training " +
			"jobs, arXiv 2002.10105 (2020)",
		RunTimes: "exact, as in the paper: numbers of iterations and times of tasks are known",
		Takes:    "quick half a minute to a minute, full ten minutes, on two cores",
	}, files, planned, study.Parts[settings]{Cells: (*settings).cells, Values: (*settings).values, Formats: formats})
}
