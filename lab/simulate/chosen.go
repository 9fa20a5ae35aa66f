package simulate

import (
	"context"
	"errors"
	"io"
	"slices"

	"clustergym/simulator/policyname"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Why a run has the estimates that it has, if its configuration names none.
const (
	allRequested = "all jobs have a requested time"
	notRequested = "not all jobs have a requested time"
)

// oracle says what exact estimates are.
const oracle = "an oracle: no cluster knows run times"

// choose sets the estimates of a configuration that names none to what a cluster has: requested times if every job of the
// workload comes with one, else forecasts from the jobs that have ended. all are the jobs, nil if they are streamed; then
// the file is read up to the first job without a requested time.
func (r *simulation) choose(ctx context.Context, all []traces.Job) error {
	cfg := r.cfg
	if !cfg.Policy.Estimates.IsZero() {
		return nil
	}
	cfg.Policy.Estimates = sim.Estimates{Mode: sim.EstimateHistory}
	if !cfg.asks() && len(r.hooks.Models) == 0 {
		return nil // a streamed file is not read for nothing
	}
	requested := len(all) > 0 && !slices.ContainsFunc(all, func(j traces.Job) bool { return !asked(&j) })
	if all == nil {
		var err error
		if requested, err = requests(ctx, cfg); err != nil {
			return err
		}
	}
	r.report.chosen = notRequested
	if requested {
		cfg.Policy.Estimates.Mode, r.report.chosen = sim.EstimateTrace, allRequested
	}
	return nil
}

// asks reports whether a policy of c looks at run times.
func (c *Config) asks() bool {
	return slices.ContainsFunc(c.Policies, func(name string) bool {
		h := c.Heuristic(name)
		return h.Estimating() || policyname.Of(name).Ahead != policyname.None
	})
}

// asked reports whether j comes with a time that its user has requested. Logs without requests get the run time instead,
// which no cluster has.
func asked(j *traces.Job) bool { return j.Estimate > 0 && !j.Assumed }

// requests reports whether every job of a streamed trace comes with a requested time.
func requests(ctx context.Context, cfg *Config) (bool, error) {
	s, err := openStreamed(ctx, cfg.Trace)
	if err != nil {
		return false, err
	}
	defer s.Close() //nolint:errcheck // open for reading only
	for n := 0; ; n++ {
		var j traces.Job
		switch err := s.Next(&j); {
		case errors.Is(err, io.EOF):
			return n > 0, nil
		case err != nil:
			return false, err
		case !asked(&j):
			return false, nil
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
}

// estimates describes the estimates of the runs for the head of the table: what they are, and why.
func (r *Report) estimates() string {
	e := r.Runs[0].Estimates
	switch {
	case r.chosen != "":
		return e.Label() + ", as " + r.chosen
	case e.Mode == sim.EstimateExact && r.Runs[0].Peer == nil && r.Runs[0].LWF == nil:
		return e.Label() + ", " + oracle
	}
	return e.Label()
}
