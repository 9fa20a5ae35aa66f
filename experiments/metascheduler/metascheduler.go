package metascheduler

import (
	"context"
	_ "embed" // settings and figures
	"fmt"

	"clustergym/agents/mbmpo"
	"clustergym/experiments/study"
)

//go:embed experiment.yaml
var settingsYAML []byte

//go:embed expected.csv
var expected []byte

// Study returns the study meta-scheduler, which compares the meta-learning scheduler with rules and other learners.
func Study() study.Study {
	return study.Study{
		Name:  "meta-scheduler",
		Title: "A meta-learning scheduler that places workers (reconstruction)",
		Cite:  "Yang, Bao, Liu, Yang and Wu, On a Meta Learning-Based Scheduler for Deep Learning Clusters, IEEE Trans. Cloud Computing 11(4), 2023, 10.1109/TCC.2023.3308161",
		Takes: "quick about a minute on two free cores, full 27 minutes seen with one worker on a busy machine",
		Cells: cells, Tables: tables, Figures: figures, Claims: claims, Notes: notes, Expected: expected,
	}
}

// version is part of every cell's input. Raise it when cells compute something else with equal settings.
const version = 2

// cells returns the study's units of work for p's form and number of seeds.
func cells(p study.Plan) ([]study.Cell, error) {
	s, err := study.Settings[settings]("meta-scheduler", settingsYAML, p, defaultSettings())
	if err != nil {
		return nil, err
	}
	s.Seeds = p.SeedsOr(s.Seeds)
	return s.cells(), nil
}

// cells returns one cell for all rules, and one for each learner.
func (s *settings) cells() []study.Cell {
	// A cell does not depend on how many other cells there are.
	own := *s
	own.Seeds, own.Methods = 0, nil
	type input struct {
		Version  int
		Settings settings
		What     string
		Loop     *mbmpo.Config `json:",omitempty"`
		Seed     int
	}
	all := []study.Cell{{
		Key: "rules", Input: input{Version: version, Settings: own, What: "rules"},
		Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return s.rules(ctx) },
	}}
	for _, m := range s.Methods {
		cfg := s.loop(m)
		for seed := 1; seed <= s.Seeds; seed++ {
			all = append(all, study.Cell{
				Key:   fmt.Sprintf("learn/%s/seed=%d", m, seed),
				Input: input{version, own, m, &cfg, seed},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return s.learn(ctx, b, m, cfg, seed)
				},
			})
		}
	}
	return all
}
