package rltune

import (
	"embed"

	"clustergym/experiments/study"
)

//go:embed agent.yaml
var agentYAML []byte

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 1

// Study returns the study rltune.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	return study.Of(study.Study{
		Name:  "rltune",
		Title: "RLTune: an agent that ranks the queue of a base policy and an integer programme that places jobs",
		Cite: "Dongare et al., RLTune: hybrid learning-guided scheduling of heterogeneous GPU clusters, SoCC 2025 (arXiv " +
			"2512.10271), " +
			"and github.com/dshruti20/RLTune",
		Takes: "quick a minute, full a quarter of an hour on two cores",
	}, files, planned, study.Parts[settings]{Cells: (*settings).cells, Values: (*settings).values})
}
