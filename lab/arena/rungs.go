package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Rungs are the estimates of run times with which a comparison is repeated.
type Rungs []sim.Estimates

// ParseRungs reads estimates as in env.estimates, each once and at least two.
func ParseRungs(list []string) (Rungs, error) {
	var all Rungs
	seen := map[sim.Estimates]bool{}
	for _, s := range list {
		e, err := sim.ParseEstimates(s)
		if err != nil {
			return nil, err
		}
		if seen[e] {
			return nil, fmt.Errorf("estimates %s are named twice", e)
		}
		seen[e] = true
		all = append(all, e)
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("want two or more estimates to compare, as none,history,exact: each is one of %s",
			sim.EstimatesWanted)
	}
	return all, nil
}

// Against returns the estimates that losses refer to: the exact ones, or else the last.
func (r Rungs) Against() sim.Estimates {
	for _, e := range r {
		if e.Rung() == sim.RungExact {
			return e
		}
	}
	return r[len(r)-1]
}

// Base returns cfg with estimates among r with which all policies can play: the configuration to be checked and to
// follow a workload.
func (r Rungs) Base(cfg config.Config) (config.Config, error) {
	if !cfg.Simulated() {
		return cfg, fault.Mistakef("%s: %s has no run times to know; want an environment on the simulator",
			fault.Key("rungs"), cfg.Env.ID)
	}
	est := r.Against()
	for _, e := range r {
		if est.Rung() == sim.RungNone {
			est = e
		}
	}
	on, err := cfg.OnRung(est)
	if err != nil {
		return cfg, err
	}
	on.Eval.Policies = cfg.AllPolicies()
	return on, nil
}

// CompareRungs plays checkpoints and the policies of cfg on the same test windows or streams with each of rungs: the
// result is a *report.Ladder or a *report.StreamLadder. cfg is what Rungs.Base returns. Policies that rank by run times
// are absent where there are none.
func CompareRungs(ctx context.Context, cfg config.Config, rungs Rungs, opt EvalOptions) (_ Comparison, err error) {
	if err := ready(&cfg); err != nil {
		return nil, err
	}
	if opt.External != nil {
		return nil, fault.Mistakef("%s does not go with %s: other programs play on one rung", fault.Key("rungs"),
			fault.Key("serve"))
	}
	scenario := opt.Scenario
	if scenario == nil {
		var err error
		if scenario, err = NewScenarioContext(ctx, &cfg); err != nil {
			return nil, err
		}
	}
	runners, err := rungs.runners(ctx, scenario, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	done, err := share(ctx, &cfg, &opt, runners...)
	if err != nil {
		return nil, err
	}
	defer func() { err = done(err) }()
	games := 0
	for _, r := range runners {
		games += r.counts()
	}
	tick := counted(games, opt.Game)
	played := make([][][][]result, len(runners))
	for i, r := range runners {
		r.tick = tick
		if played[i], _, err = r.results(ctx); err != nil {
			return nil, fmt.Errorf("estimates %s: %w", r.scenario.About.Cut(r.scenario.Settings).Estimates, err)
		}
	}
	// The order is that of the configuration, on whichever rung.
	baselines, err := scenario.baselines(&cfg)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range slices.Concat(runners[0].policies[:len(opt.Checkpoints)+len(opt.Models)], baselines) {
		names = append(names, p.name)
	}
	var left *sched.LeftOut
	if l := scenario.Taken.Left; l.Jobs() > 0 {
		left = &l
	}
	if cfg.Streamed() {
		l := rungs.streams(runners, played, names)
		l.LeftOut = left
		return l, nil
	}
	l := &report.Ladder{Against: rungs.Against(), LeftOut: left}
	for i, r := range runners {
		on, err := r.report(played[i])
		if err != nil {
			return nil, err
		}
		l.Rungs = append(l.Rungs, on)
	}
	l.Fill(cfg.Eval.Seed, names)
	return l, nil
}

// runners returns what plays on each rung. Every fault is found before the first game.
func (r Rungs) runners(ctx context.Context, scenario *Scenario, cfg *config.Config,
	opt *EvalOptions) (runners []*runner, err error) {
	for _, e := range r {
		on, err := cfg.OnRung(e)
		if err != nil {
			return nil, err
		}
		on.Eval.Whole = false
		if err := on.Validate(); err != nil {
			return nil, atRung(e, err)
		}
		w := *scenario
		w.Settings = on.Env.Settings
		if err := w.knows(e); err != nil {
			return nil, err
		}
		if len(opt.Checkpoints)+len(opt.Models) == 0 && len(cfg.Eval.Policies) > 0 && len(on.Eval.Policies) == 0 {
			return nil,
				fault.Mistakef(
					"%s %s: all of %s rank by run times, and there are none; name another policy too, such as fifo+skip, or leave "+
						"%s out", fault.Key("rungs"), e, strings.Join(cfg.Eval.Policies, ", "), e)
		}
		run, err := w.testing(ctx, &on, opt)
		if err != nil {
			return nil, err
		}
		runners = append(runners, run)
	}
	return runners, nil
}

// streams compares what was played on streams, the same on every rung.
func (r Rungs) streams(runners []*runner, played [][][][]result, names []string) *report.StreamLadder {
	l := &report.StreamLadder{Against: r.Against()}
	for i, on := range runners {
		l.Rungs = append(l.Rungs, on.streamReport(played[i]))
	}
	against := slices.Index(r, l.Against)
	of := func(rung int, name string) [][]result {
		return played[rung][slices.IndexFunc(runners[rung].policies, func(p policy) bool { return p.name == name })]
	}
	l.Fill(names, func(rung int, name string) statistic.Replicated {
		return runners[against].compared(name, name, of(rung, name), of(against, name))
	})
	return l
}

// atRung names the estimates in a fault of the configuration with them, unless it is of estimates itself.
func atRung(e sim.Estimates, err error) error {
	var faults []error
	for _, f := range fault.All(err) {
		if f.Key == "env.estimates" {
			faults = append(faults, fault.Errorf("%s: got %s, want %s", fault.Key("rungs"), f.Value, f.Want))
		} else {
			faults = append(faults, f)
		}
	}
	if len(faults) == 0 {
		return fault.Mistakef("%s %s: %w", fault.Key("rungs"), e, err)
	}
	return &fault.Mistake{Err: errors.Join(faults...)}
}

// knows returns the user's mistake if the trace lacks what the estimates need.
func (w *Scenario) knows(e sim.Estimates) error {
	if e.Mode != sim.EstimateTrace {
		return nil
	}
	for part := range traces.Part(3) {
		for _, j := range w.Taken.Windows.Jobs(part) {
			if j.Estimate <= 0 {
				return fault.Mistakef("%s %s: job %s of %s has no requested time; want %s", fault.Key("rungs"), e, j.ID,
					w.Trace.File, "none, history, gbdt, exact or noisy:SIGMA")
			}
		}
	}
	return nil
}
