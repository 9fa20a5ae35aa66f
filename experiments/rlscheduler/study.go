package rlscheduler

import (
	_ "embed" // settings and figures

	"clustergym/experiments/ladder"
	"clustergym/experiments/study"
)

//go:embed experiment.yaml
var settingsYAML []byte

//go:embed expected.csv
var expected []byte

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal settings.
const method = 1

// Study returns the study rlscheduler.
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
		Name:        "rlscheduler",
		Title:       "RLScheduler's machine and windows: its agent, rules, a tuned key, and that key with a search",
		Cite:        "Zhang et al., RLScheduler: an automated HPC batch job scheduler using reinforcement learning, SC 2020, and github.com/DIR-LAB/deep-batch-scheduler",
		RunTimes:    ladder.Label("exact"),
		PlaysAgents: true,
		Takes:       "quick 1 minute, full 20 minutes, with --data 40 minutes on two cores",
		Cells: func(p study.Plan) ([]study.Cell, error) {
			s, err := planned(p)
			if err != nil {
				return nil, err
			}
			return s.cells(p)
		},
		Tables:   func(p study.Plan) []study.Table { return valid(p).tables(p) },
		Figures:  func(p study.Plan) []study.Figure { return valid(p).figures() },
		Claims:   func(p study.Plan) []study.Claim { return valid(p).claims(p) },
		Notes:    func(p study.Plan) []string { return valid(p).notes(p) },
		Expected: expected,
	}
}
