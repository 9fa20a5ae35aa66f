package arena

import (
	"context"
	"fmt"

	"clustergym/experiments/config"
	"clustergym/experiments/rundir"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// Rival is a policy that agents are compared with, and how it does where agents in training are validated.
type Rival struct {
	Name       string
	Validation *rundir.Validation
}

// Rivals implements Arena.
func (w *World) Rivals(ctx context.Context, cfg *config.Config, workers int) ([]Rival, error) {
	if cfg.Eval.Choose == config.ByReturn {
		p, err := w.problem()
		if err != nil {
			return nil, err
		}
		return p.Rivals(ctx, cfg, workers)
	}
	n, err := w.count(traces.Validation, cfg.Eval.Validation)
	if err != nil {
		return nil, err
	}
	cs, err := w.heuristics(cfg)
	if err != nil {
		return nil, err
	}
	v := &evaluation{world: w, cfg: &cfg.Eval, part: traces.Validation, windows: n, seeds: 1, workers: workers}
	played, err := v.play(ctx, cs, nil)
	if err != nil {
		return nil, err
	}
	all := make([]Rival, len(cs))
	for i := range cs {
		all[i] = Rival{cs[i].name, w.validation(cfg, played[i][0])}
	}
	return all, nil
}

// heuristics returns the policies of cfg as contestants.
func (w *World) heuristics(cfg *config.Config) ([]contestant, error) {
	var cs []contestant
	for _, name := range cfg.Policies() {
		p, err := cfg.Rival(name)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		cs = append(cs, w.newContestant(cfg, p))
	}
	return cs, nil
}

// Rivals implements Arena. Planners do not act step by step, so that they have a metric and no return; schedulers that see
// the whole queue are no policies of a problem.
func (p *Problem) Rivals(ctx context.Context, cfg *config.Config, workers int) ([]Rival, error) {
	var all []Rival
	n := p.episodes(validationEpisodes, cfg.Eval.Validation)
	for _, name := range cfg.Policies() {
		r, err := cfg.Rival(name)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		if r.Rule == nil && (r.Planner == nil || !p.byScore(cfg)) {
			continue
		}
		who := p.entrant(r)
		g, err := p.play(ctx, workers, n, cfg.Eval.Seed, validationEpisodes, 0, &who, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		all = append(all, Rival{r.Name, p.validation(cfg, g)})
	}
	return all, nil
}
