package lwf

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

// Study returns the study lwf.
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
		Name:     "lwf",
		Title:    "LWF-κ, AdaDUAL, Ada-SRSF: where to place, and when to send beside another",
		Cite:     "Wang, Shi, Wang, Chu: Communication contention aware scheduling of multiple deep learning training jobs, arXiv 2002.10105 (2020)",
		RunTimes: "exact, as in the paper: numbers of iterations and times of tasks are known",
		Takes:    "quick half a minute, full ten minutes, on two cores",
		Cells: func(p study.Plan) ([]study.Cell, error) {
			s, err := planned(p)
			if err != nil {
				return nil, err
			}
			return s.cells(p)
		},
		Tables:   func(p study.Plan) []study.Table { return valid(p).tables(p) },
		Figures:  func(p study.Plan) []study.Figure { return valid(p).figures() },
		Claims:   func(p study.Plan) []study.Claim { return claims(p) },
		Notes:    func(p study.Plan) []string { return notes(p) },
		Expected: expected,
	}
}
