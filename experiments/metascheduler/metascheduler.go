package metascheduler

import (
	"context"
	"embed"
	"fmt"

	"clustergym/experiments/metascheduler/mbmpo"
	"clustergym/experiments/study"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// Study returns the study meta-scheduler, which compares the meta-learning scheduler with rules and other learners.
func Study() study.Study {
	return study.Of(study.Study{
		Name:  "meta-scheduler",
		Title: "A meta-learning scheduler that places workers (reconstruction)",
		Cite: "Yang, Bao, Liu, Yang and Wu, On a Meta Learning-Based Scheduler for Deep Learning Clusters, IEEE Trans. " +
			"Cloud Computing 11(4), 2023, 10.1109/TCC.2023.3308161",
		Takes: "quick two minutes of processor time, a minute on two free cores; full about 50 minutes of processor time",
	}, files, settingsOf, study.Parts[settings]{Cells: (*settings).cells, Values: (*settings).values})
}

// version is part of every cell's input. Raise it when cells compute something else with equal settings.
const version = 3

// settingsOf returns the settings of p's form.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings[settings]("meta-scheduler", files, p, defaultSettings())
	for _, n := range []*int{&s.Seeds, &s.AblationSeeds, &s.Poor.Seeds, &s.Family.Seeds} {
		if *n > 0 {
			*n = p.SeedsOr(*n)
		}
	}
	return s, err
}

// cells returns one cell for all rules of a regime, and one for each learner, seed by seed: a run that is not whole
// then has as many learners of each method as possible.
func (s *settings) cells(study.Plan) ([]study.Cell, error) {
	all := []study.Cell{s.rulesCell(&theUsual, "")}
	seeds := s.Seeds
	if s.Poor.Seeds > 0 {
		all = append(all, s.inPoor().rulesCell(&thePoor, "poor/"))
		seeds = max(seeds, s.Poor.Seeds)
	}
	for k := range seeds {
		if k < s.Seeds {
			for _, m := range s.Methods {
				all = append(all, s.learnCell(&theUsual, "", m, s.FirstSeed+k))
			}
		}
		if k < s.Poor.Seeds {
			for _, m := range s.Poor.Methods {
				all = append(all, s.inPoor().learnCell(&thePoor, "poor/", m, s.FirstSeed+k))
			}
		}
	}
	if s.Family.Seeds > 0 {
		all = append(all, s.familyCells()...)
	}
	for k := range s.AblationSeeds {
		for _, m := range s.Ablations {
			all = append(all, s.learnCell(&theUsual, "", m, s.FirstSeed+k))
		}
	}
	return all, nil
}

// input is everything on which a cell depends.
type input struct {
	Version  int
	Settings settings
	What     string
	Regime   []float64     `json:",omitempty"` // of the worlds before and after the change
	Loop     *mbmpo.Config `json:",omitempty"`
	Family   *family       `json:",omitempty"`
	Marks    int           `json:",omitempty"` // how often a learner without models is judged on its way
	Width    int           `json:",omitempty"` // of the network, if it is not that of Settings
	Seed     int
}

// own returns the settings on which every cell depends: not how many other cells there are, nor what input has
// elsewhere.
func (s *settings) own() settings {
	own := *s
	own.Seeds, own.FirstSeed, own.AblationSeeds, own.Methods, own.Ablations = 0, 0, 0, nil, nil
	own.PPO, own.Poor, own.Family = proximal{}, poor{}, family{}
	return own
}

// values returns the tasks of a regime's worlds.
func (g *regime) values() []float64 { return append(append([]float64{}, g.usual...), g.changed...) }

// rulesCell returns the cell of all rules of a regime, whose key begins with prefix.
func (s *settings) rulesCell(g *regime, prefix string) study.Cell {
	return study.Cell{
		Key: prefix + "rules", Input: input{Version: version, Settings: s.own(), What: "rules", Regime: g.values()},
		Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return s.rules(ctx, g) },
	}
}

// learnCell returns the cell of one learner of a regime.
func (s *settings) learnCell(g *regime, prefix, method string, seed int) study.Cell {
	cfg := s.loop(method)
	in := input{Version: version, Settings: s.own(), What: method, Regime: g.values(), Loop: &cfg, Seed: seed}
	if cfg.ModelFree {
		in.Marks = marks
	}
	if w := s.width(method); w != s.Width {
		in.Width = w
	}
	return study.Cell{
		Key: fmt.Sprintf("%slearn/%s/seed=%d", prefix, method, seed), Input: in,
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return s.learn(ctx, b, g, method, cfg, seed)
		},
	}
}
