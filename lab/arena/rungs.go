package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"clustergym/internal/fault"
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

// CompareRungs plays checkpoints and the policies of cfg on the same test windows with each of rungs. cfg is what
// Rungs.Base returns. Policies that rank by run times are absent where there are none.
func CompareRungs(ctx context.Context, cfg config.Config, rungs Rungs, opt EvalOptions) (_ *report.Ladder, err error) {
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
	// Every fault is found before the first game.
	var runners []*runner
	games := 0
	for _, e := range rungs {
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
		r, err := w.testing(ctx, &on, &opt)
		if err != nil {
			return nil, err
		}
		runners = append(runners, r)
		games += r.counts()
	}
	done, err := share(ctx, &cfg, &opt, runners...)
	if err != nil {
		return nil, err
	}
	defer func() { err = done(err) }()
	tick := counted(games, opt.Game)
	l := &report.Ladder{Against: rungs.Against()}
	for _, r := range runners {
		r.tick = tick
		played, _, err := r.results(ctx)
		if err != nil {
			return nil, fmt.Errorf("estimates %s: %w", r.scenario.About.Cut(r.scenario.Settings).Estimates, err)
		}
		on, err := r.report(played)
		if err != nil {
			return nil, err
		}
		l.Rungs = append(l.Rungs, on)
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
	l.Fill(cfg.Eval.Seed, names)
	if left := scenario.Taken.Left; left.Jobs() > 0 {
		l.LeftOut = &left
	}
	return l, nil
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
