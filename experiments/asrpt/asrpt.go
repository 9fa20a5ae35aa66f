package asrpt

import (
	"embed"

	"clustergym/experiments/study"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 1

// Study returns the study a-srpt.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	return study.Of(study.Study{
		Name:  "a-srpt",
		Title: "A-SRPT: a virtual machine's order for jobs that are graphs, with predicted iterations",
		Cite: "Luo, Liu, Lee, Shroff: Prediction-assisted online distributed deep learning workload scheduling in GPU " +
			"clusters, INFOCOM 2025, arXiv 2501.05563",
		RunTimes: "predicted by a random forest from jobs that have ended (causal); exact in the tables that say so; SRTF " +
			"and SRSF know everything",
		Takes: "quick half a minute, full ten minutes, on one core",
	}, files, planned, study.Parts[settings]{Cells: (*settings).cells, Values: (*settings).values})
}
