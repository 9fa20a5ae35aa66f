package arena

import (
	"context"
	"errors"
	"fmt"
	"math"

	"clustergym/env/sim"
	"clustergym/experiments/config"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// Scored is what one policy reaches on the test windows or episodes of a configuration.
type Scored struct {
	Name, Kind string
	Trained    sim.Estimates // the estimates with which a checkpoint was trained
	Nothing    bool          // it does not ask for run times
	Knows      bool          // it knows the windows beforehand, or what no agent sees
	Values     [][]float64   // of the environment's metric, [play][window]: one play, or eval.seeds of a policy that draws
}

// Scores plays the checkpoints and external policies of opt and the policies of cfg on the test windows or episodes of cfg, as
// Compare does, and returns the metric of each game in place of statistics. A policy without a value is a *fault.Mistake: it is
// external and did not finish, or the metric does not apply to it.
func Scores(ctx context.Context, cfg config.Config, opt EvalOptions) ([]Scored, error) {
	err := ready(&cfg)
	if err != nil {
		return nil, err
	}
	if opt.World == nil {
		if opt.World, err = NewWorldContext(ctx, &cfg); err != nil {
			return nil, err
		}
	}
	var all []Scored
	if cfg.Simulated() {
		all, err = opt.World.scores(ctx, &cfg, &opt)
	} else {
		all, err = opt.World.episodeScores(ctx, &cfg, &opt)
	}
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		for _, row := range s.Values {
			for i, v := range row {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return nil, fault.Mistakef("%s: %s has no %s on window %d: the metric does not apply to it", cfg.Env.ID, s.Name, opt.World.About.Metric.Key, i)
				}
			}
		}
	}
	return all, nil
}

// scores is Scores on the cluster simulator.
func (w *World) scores(ctx context.Context, cfg *config.Config, opt *EvalOptions) ([]Scored, error) {
	n, err := w.count(traces.Test, cfg.Eval.Windows)
	if err != nil {
		return nil, err
	}
	cs, err := w.contestantsContext(ctx, cfg, opt)
	if err != nil {
		return nil, err
	}
	v := &evaluation{world: w, cfg: &cfg.Eval, part: traces.Test, windows: n, seeds: cfg.Eval.Seeds, workers: opt.Workers}
	tick := counted(v.games(cs), opt.Game)
	games, err := v.beside(ctx, cs, opt.External, tick, func(ctx context.Context) ([][][]result, error) { return v.play(ctx, cs, tick) })
	if err != nil {
		return nil, err
	}
	var all []Scored
	for c := range cs {
		if cs[c].missing != "" {
			return nil, fault.Mistakef("policy %s %s", cs[c].name, cs[c].missing)
		}
		s := Scored{Name: cs[c].name, Kind: cs[c].kind, Trained: cs[c].trained, Nothing: cs[c].nothing, Knows: cs[c].knows}
		for _, row := range games[c] {
			values := make([]float64, len(row))
			for i := range row {
				values[i] = row[i].score
			}
			s.Values = append(s.Values, values)
		}
		all = append(all, s)
	}
	return all, nil
}

// episodeScores is Scores without the simulator.
func (w *World) episodeScores(ctx context.Context, cfg *config.Config, opt *EvalOptions) ([]Scored, error) {
	p, err := w.problem()
	if err != nil {
		return nil, err
	}
	if w.About.Metric.Of == nil {
		return nil, fault.Mistakef("env.id: %s counts returns and has no metric; want a scheduling environment", cfg.Env.ID)
	}
	if opt.External != nil {
		return nil, fault.Mistakef("--serve: %s has no windows that other programs could play too", cfg.Env.ID)
	}
	entrants, err := p.entrants(ctx, cfg, opt)
	if err != nil {
		return nil, err
	}
	seeds := func(e *entrant) int {
		if e.draws && e.planner == nil {
			return max(1, cfg.Eval.Seeds)
		}
		return 1
	}
	n, total := p.episodes(testEpisodes, cfg.Eval.Episodes), 0
	for i := range entrants {
		total += seeds(&entrants[i]) * n
	}
	tick := counted(total, opt.Game)
	var all []Scored
	for i := range entrants {
		e := &entrants[i]
		s := Scored{Name: e.name, Kind: e.kind, Knows: e.knows}
		for k := range seeds(e) {
			g, err := p.play(ctx, opt.Workers, n, cfg.Eval.Seed, testEpisodes, k, e, tick)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.name, err)
			}
			s.Values = append(s.Values, g.scores)
		}
		all = append(all, s)
	}
	return all, nil
}

// TestSHA returns a hash of everything that decides the episodes of the test part of cfg, whose world w is: settings, cluster,
// jobs, the number of windows and their seed. The trace's name, and what training alone uses, are not in it.
func (w *World) TestSHA(cfg *config.Config) (string, error) {
	if !w.About.Scheduling() {
		return "", errors.New("arena: a problem has no test part")
	}
	n := cfg.Eval.Episodes
	if w.About.Simulated() {
		var err error
		if n, err = w.count(traces.Test, cfg.Eval.Windows); err != nil {
			return "", err
		}
	}
	v := &evaluation{world: w, cfg: &cfg.Eval, part: traces.Test, windows: n}
	return v.sha()
}
