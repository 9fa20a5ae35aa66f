package improper

import (
	_ "embed" // settings and figures

	"clustergym/experiments/study"
)

//go:embed experiment.yaml
var settingsYAML []byte

//go:embed agents.yaml
var agentsYAML []byte

//go:embed expected.csv
var expected []byte

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal settings.
const method = 2

// Study returns the study improper.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	// Cells reports bad settings, so the other functions do not report them again.
	valid := func(p study.Plan) *settings {
		s, err := planned(p)
		if err != nil {
			return new(settings)
		}
		return &s
	}
	return study.Study{
		Name:  "improper",
		Title: "Improper learning: softmax mixtures of given schedulers, by policy gradient and natural actor-critic",
		Cite:  "Zaki, Mohan, Gopalan, Mannor: Improper reinforcement learning with gradient-based policy optimization, arXiv 2102.08201 (2021), and Actor-critic based improper reinforcement learning, ICML 2022 (arXiv 2207.09090)",
		Takes: "quick a minute, full six minutes on two free cores",
		Cells: func(p study.Plan) ([]study.Cell, error) {
			s, err := planned(p)
			if err != nil {
				return nil, err
			}
			return s.cells()
		},
		Tables:   func(p study.Plan) []study.Table { return valid(p).tables() },
		Figures:  func(p study.Plan) []study.Figure { return valid(p).figures() },
		Claims:   func(p study.Plan) []study.Claim { return valid(p).claims() },
		Notes:    func(p study.Plan) []string { return valid(p).notes() },
		Expected: expected,
	}
}
