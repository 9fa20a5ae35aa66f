package metascheduler

import (
	"context"

	"clustergym/env"
	"clustergym/env/workerplace"
	"clustergym/experiments/metascheduler/mbmpo"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// rules plays every placement rule in both worlds of a regime.
func (s *settings) rules(ctx context.Context, g *regime) ([]study.Row, error) {
	var rows []study.Row
	usual, changed := s.worlds(g)
	for _, rule := range workerplace.Rules() {
		for i, r := range []mbmpo.Real{usual, changed} {
			out, err := s.play(ctx, r, rule)
			if err != nil {
				return nil, err
			}
			rows = append(rows, jctRows(rule.Name, []string{g.before, g.after}[i], "final", "", out)...)
		}
	}
	return rows, nil
}

// play returns a rule's outcomes on all windows.
func (s *settings) play(ctx context.Context, r mbmpo.Real, rule workerplace.Rule) ([]mbmpo.Outcome, error) {
	e, err := r.Open()
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // the environment holds no resources
	var out []mbmpo.Outcome
	ts := env.NewTimeStep(e.Spec())
	for _, seed := range s.windows() {
		src := rng.Stream(seed, "rule")
		ep := env.Episode{Seed: seed, Window: -1, Task: r.Values}
		ret, _, err := env.Play(ctx, e, ep, ts, func(_ *env.TimeStep, a env.Action) error {
			a.Disc[0] = rule.Choose(e, src)
			return nil
		})
		if err != nil {
			return nil, err
		}
		out = append(out, mbmpo.OutcomeOf(e, ret))
	}
	return out, nil
}

// reference returns the mean completion time, in intervals, of the best rule among those that know what an agent knows.
func (s *settings) reference(ctx context.Context, r mbmpo.Real) (float64, error) {
	rule, err := workerplace.RuleOf(imitated)
	if err != nil {
		return 0, err
	}
	out, err := s.play(ctx, r, rule)
	return meanJCT(out), err
}
