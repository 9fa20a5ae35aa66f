package asrpt

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

// Study returns the study a-srpt.
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
		Name:     "a-srpt",
		Title:    "A-SRPT: a virtual machine's order for jobs that are graphs, with predicted iterations",
		Cite:     "Luo, Liu, Lee, Shroff: Prediction-assisted online distributed deep learning workload scheduling in GPU clusters, INFOCOM 2025, arXiv 2501.05563",
		RunTimes: "predicted by a random forest from jobs that have ended (causal); exact in the tables that say so; SRTF and SRSF know everything",
		Takes:    "quick one minute, full ten minutes, on two cores",
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
