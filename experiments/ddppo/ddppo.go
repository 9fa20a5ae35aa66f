package ddppo

import (
	_ "embed" // settings and figures

	"clustergym/experiments/study"
)

//go:embed experiment.yaml
var settingsYAML []byte

//go:embed expected.csv
var expected []byte

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal settings.
const method = 1

// Study returns the study ddppo.
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
		Name:  "ddppo",
		Title: "DD-PPO for HPC scheduling: replicas of PPO over a streamed log of 11.5 million jobs",
		Cite:  "Sgambati, Vakanski, Anderson, arXiv 2505.03946 (2025)",
		Takes: "quick 2 minutes, full half an hour on two cores",
		Cells: func(p study.Plan) ([]study.Cell, error) {
			s, err := planned(p)
			if err != nil {
				return nil, err
			}
			return s.cells(p)
		},
		Tables:   func(p study.Plan) []study.Table { return valid(p).tables() },
		Figures:  func(p study.Plan) []study.Figure { return valid(p).figures() },
		Claims:   func(p study.Plan) []study.Claim { return valid(p).claims() },
		Notes:    func(p study.Plan) []string { return valid(p).notes(p) },
		Expected: expected,
	}
}
