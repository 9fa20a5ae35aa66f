package improper

import (
	"embed"

	"clustergym/experiments/study"
)

//go:embed agents.yaml
var agentsYAML []byte

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 2

// Study returns the study improper.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	return study.Of(study.Study{
		Name:  "improper",
		Title: "Improper learning: softmax mixtures of given schedulers, by policy gradient and natural actor-critic",
		Cite: "Zaki, Mohan, Gopalan, Mannor: Improper reinforcement learning with gradient-based policy optimization, " +
			"arXiv 2102.08201 (2021), and Actor-critic based improper reinforcement learning, ICML 2022 (arXiv 2207.09090)",
		Takes: "quick a minute, full six minutes on two free cores",
	}, files, planned, study.Parts[settings]{Cells: (*settings).cells, Values: (*settings).values, Formats: formats})
}
