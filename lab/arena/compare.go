package arena

import (
	"context"
	"math"
	"slices"

	"clustergym/env/jobselect"
	"clustergym/internal/fault"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/stream"
	"clustergym/traces"
)

// testing returns a runner of the test windows or episodes of cfg, with the policies of opt and cfg.
func (w *Scenario) testing(ctx context.Context, cfg *config.Config, opt *EvalOptions) (r *runner, err error) {
	switch {
	case cfg.Streamed():
		r, err = w.streaming(ctx, cfg, traces.Test, stream.Test, opt.Workers)
	case w.About.Simulated():
		r, err = w.runner(cfg, traces.Test, cfg.Eval.Windows, opt.Workers)
	default:
		r = w.through(cfg, traces.Test, cfg.Eval.Episodes, opt.Workers)
	}
	if err != nil {
		return nil, err
	}
	if err := r.join(ctx, opt); err != nil {
		return nil, err
	}
	if r.streams != nil {
		r.seeds = cfg.Eval.Seeds
		for i := range r.policies {
			if why := streamable(&r.policies[i]); why != "" {
				return nil, fault.Mistakef("policy %s %s", r.policies[i].name, why)
			}
		}
	}
	return r, nil
}

// join sets the policies of r to those of opt and r's configuration.
func (r *runner) join(ctx context.Context, opt *EvalOptions) error {
	e, err := r.open()
	if err != nil {
		return err
	}
	r.policies, err = r.scenario.policies(ctx, r.cfg, opt, e.Spec())
	return err
}

// compare plays the games of r and compares the policies.
func (r *runner) compare(ctx context.Context, opt *EvalOptions) (*report.Report, error) {
	r.tick = counted(r.counts(), opt.Game)
	played, whole, err := r.beside(ctx, opt.External)
	if err != nil {
		return nil, err
	}
	out, err := r.report(played)
	if err == nil && r.entire {
		out.Whole, err = r.wholeReport(whole)
	}
	return out, err
}

// report computes statistics of the results. Agents are compared with every other policy.
func (r *runner) report(played [][][]result) (*report.Report, error) {
	est := r.scenario.About.Cut(r.scenario.Settings).Estimates
	out := &report.Report{Estimates: est, Rung: report.RungOf(est), Stops: r.stops()}
	if r.scenario.About.ID != jobselect.V1 {
		out.Env, out.Metric = r.scenario.About.ID, r.scenario.About.Metric.Key
	}
	for i := range r.episodes {
		w, err := r.scenario.Taken.Windows.At(r.part, 0, i)
		if err != nil {
			return nil, err
		}
		out.Windows = append(out.Windows, report.WindowInfo{Seed: r.episode(i).Seed, FirstJob: w.First, Jobs: w.Counted})
	}
	// scored returns whether policy p has a metric that is not one of the simulator's.
	scored := func(p int) bool { return out.HasScores() && !math.IsNaN(played[p][0][0].score) }
	for i := range r.policies {
		p := &r.policies[i]
		row := report.PolicyReport{Name: p.name, Kind: p.kind, Missing: p.missing, Trained: p.trained, Nothing: p.nothing,
			Knows: p.knows, Greedy: string(p.greedy)}
		if p.missing == "" {
			row.Metrics = r.metrics(played[i])
			if scored(i) {
				s := statistic.Describe(r.cfg.Eval.Seed, sample(played[i], scoreOf))
				row.Metrics.Score = &s
			}
		}
		out.Policies = append(out.Policies, row)
	}
	agents := slices.ContainsFunc(r.policies, func(p policy) bool { return p.agent() })
	for a := range r.policies {
		if r.policies[a].missing != "" || agents && !r.policies[a].agent() {
			continue
		}
		for b := range r.policies {
			if a == b || r.policies[b].missing != "" || !agents && b < a {
				continue
			}
			pair := func(key string, value func(*result) float64, higher bool) {
				out.Paired = append(out.Paired, statistic.Compare(r.cfg.Eval.Seed, r.policies[a].name, r.policies[b].name, key,
					sample(played[a], value), sample(played[b], value), higher))
			}
			pair("jct_s", jctOf, false)
			pair("bounded_slowdown", boundedOf, false)
			if scored(a) && scored(b) {
				pair(out.Metric, scoreOf, out.Counts().Higher)
			}
		}
	}
	return out, nil
}

func jctOf(r *result) float64     { return r.JCT.Mean }
func boundedOf(r *result) float64 { return r.BoundedSlowdown.Mean }

// metrics describes the results of one policy.
func (r *runner) metrics(played [][]result) *report.PolicyMetrics {
	stat := func(value func(*result) float64) statistic.Statistic {
		return statistic.Describe(r.cfg.Eval.Seed, sample(played, value))
	}
	m := &report.PolicyMetrics{
		JCT:             stat(jctOf),
		Wait:            stat(func(s *result) float64 { return s.Wait.Mean }),
		FirstWait:       stat(func(s *result) float64 { return s.FirstWait.Mean }),
		Slowdown:        stat(func(s *result) float64 { return s.Slowdown.Mean }),
		BoundedSlowdown: stat(boundedOf),
		JCT99:           stat(func(s *result) float64 { return s.JCT.P99 }),
		Makespan:        stat(func(s *result) float64 { return s.Makespan }),
		Utilization:     stat(func(s *result) float64 { return s.Utilization }),
		Effective:       stat(func(s *result) float64 { return s.Effective }),
	}
	for _, row := range played {
		for i := range row {
			m.Unfinished += row[i].Unfinished
		}
	}
	return m
}
