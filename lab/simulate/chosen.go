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

// choose sets the estimates of a configuration that names none to what a cluster has: requested times if every job of
// the workload comes with one, else forecasts from the jobs that have ended. all are the jobs, nil if they are
// streamed; then the file is read up to the first job without a requested time.
func (r *simulation) choose(ctx context.Context, all []traces.Job) error {
	cfg := r.cfg
	if !cfg.Policy.Estimates.IsZero() {
		return nil
	}
	cfg.Policy.Estimates = sim.Estimates{Mode: sim.EstimateHistory}
	if !cfg.asks() && len(r.hooks.Models) == 0 && !r.outside {
		return nil // a streamed file is not read for nothing
	}
	requested := len(all) > 0 && !slices.ContainsFunc(all, func(j traces.Job) bool { return !cfg.asked(&j) })
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

// asked reports whether j comes with a time that its user has requested, or has the limit that stands for it. Logs
// without requests get the run time instead, which no cluster has.
func (c *Config) asked(j *traces.Job) bool {
	return j.Estimate > 0 && (!j.Assumed || c.Trace.Limit > 0)
}

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
		case !cfg.asked(&j):
			return false, nil
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
}

// stops says what a stop of a running job costs, for the head of the table; "" if no job was stopped, or it costs.
func (r *Report) stops() string {
	stopped := slices.ContainsFunc(r.Runs, func(x Result) bool { return x.Metrics.Preemptions > 0 })
	if !stopped || !r.freeStops {
		return ""
	}
	return "free: a job that is stopped continues where it was (simulator.restart, simulator.checkpoint)"
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
