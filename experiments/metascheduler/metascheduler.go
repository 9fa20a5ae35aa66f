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
const version = 3

// settingsOf returns the settings of p's form.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings[settings]("meta-scheduler", settingsYAML, p, defaultSettings())
	if p.Seeds > 0 {
		s.Seeds, s.AblationSeeds = p.Seeds, p.Seeds
		for _, n := range []*int{s.poorSeeds(), s.familySeeds()} {
			if n != nil {
				*n = p.Seeds
			}
		}
	}
	return s, err
}

// cells returns the study's units of work for p's form and number of seeds.
func cells(p study.Plan) ([]study.Cell, error) {
	s, err := settingsOf(p)
	if err != nil {
		return nil, err
	}
	return s.cells(), nil
}

// cells returns one cell for all rules of a regime, and one for each learner.
func (s *settings) cells() []study.Cell {
	all := s.regimeCells(&theUsual, "")
	if s.Poor != nil {
		all = append(all, s.inPoor().regimeCells(&thePoor, "poor/")...)
	}
	if s.Family != nil {
		all = append(all, s.familyCells()...)
	}
	if len(s.Ablations) > 0 {
		all = append(all, s.ablationCells()...)
	}
	return all
}

// input is everything on which a cell depends.
type input struct {
	Version  int
	Settings settings
	What     string
	Regime   []float64     `json:",omitempty"` // of the worlds before and after the change
	Loop     *mbmpo.Config `json:",omitempty"`
	Family   *family       `json:",omitempty"`
	Seed     int
}

// own returns the settings on which a single cell depends: not how many other cells there are.
func (s *settings) own() settings {
	own := *s
	own.Seeds, own.FirstSeed, own.AblationSeeds, own.Methods, own.Ablations, own.Poor, own.Family = 0, 0, 0, nil, nil, nil, nil
	return own
}

// regimeCells returns the cells of a regime, whose keys begin with prefix.
func (s *settings) regimeCells(g *regime, prefix string) []study.Cell {
	values := append(append([]float64{}, g.usual...), g.changed...)
	all := []study.Cell{{
		Key: prefix + "rules", Input: input{Version: version, Settings: s.own(), What: "rules", Regime: values},
		Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return s.rules(ctx, g) },
	}}
	add := func(m string, seed int) {
		cfg := s.loop(m)
		all = append(all, study.Cell{
			Key:   fmt.Sprintf("%slearn/%s/seed=%d", prefix, m, seed),
			Input: input{Version: version, Settings: s.own(), What: m, Regime: values, Loop: &cfg, Seed: seed},
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				return s.learn(ctx, b, g, m, cfg, seed)
			},
		})
	}
	// Seed by seed: the tables of a run that is not whole have as many learners of each method as possible.
	for k := range s.Seeds {
		for _, m := range s.Methods {
			add(m, s.FirstSeed+k)
		}
	}
	return all
}

// ablationCells returns the cells of the learners with another inner loop.
func (s *settings) ablationCells() []study.Cell {
	t := *s
	t.Methods, t.Seeds = s.Ablations, s.AblationSeeds
	return t.regimeCells(&theUsual, "")[1:]
}
