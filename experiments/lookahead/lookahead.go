package lookahead

import (
	"embed"

	"clustergym/experiments/study"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 1

// Study returns the study lookahead.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	return study.Of(study.Study{
		Name:  "lookahead",
		Title: "Agents that look ahead: what search and learning gain over the best rules, and how much there is to gain",
		Cite:  "measurements of this project",
		Takes: "quick 2 minutes, full hours on two cores",
	}, files, planned, study.Parts[settings]{Cells: (*settings).cells, Values: (*settings).values})
}
