package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/predictors"
	"clustergym/lab/report"
	"clustergym/simulator/metrics"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Played is a model with the environment through whose actions it schedules.
type Played struct {
	envs.Model
	Settings jobselect.Config
}

// NewPlayed returns a model that plays through the environment of cfg, which must be JobSelect-v1. Observations show
// what they did there, also with other estimates.
func NewPlayed(m envs.Model, cfg *config.Config) (Played, error) {
	if cfg.Env.JobSelect() == nil {
		return Played{}, fault.Mistakef("model %s: it plays in %s, and only models for %s can schedule a whole trace", m.File,
			cfg.Env.ID, jobselect.ID)
	}
	shown := *cfg
	if err := shown.ShowAs(cfg); err != nil {
		return Played{}, err
	}
	return Played{m, *shown.Env.JobSelect()}, nil
}

// onlyJobs is a workload as a single window, in which every job counts and the cluster is empty at the beginning.
type onlyJobs struct {
	jobs  []traces.Job
	model *predictors.Model // of estimates gbdt:FILE; nil = none
}

var _ sched.Foresight = (*onlyJobs)(nil)

// At implements sched.Windows.
func (o *onlyJobs) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: o.jobs, Counted: len(o.jobs)}, nil
}

// Jobs implements envs.Windows.
func (o *onlyJobs) Jobs(traces.Part) []traces.Job { return o.jobs }

// Predictor implements sched.Foresight: as for the other policies, nothing has ended before the first job.
func (o *onlyJobs) Predictor(est sim.Estimates) (predict.Maker, error) {
	if o.model != nil && est.File == o.model.File {
		return o.model.Maker(nil), nil
	}
	return predictors.Maker(est, nil)
}

// checkModels returns what models do not go with.
func (c *Config) checkModels(h *Hooks) error {
	names := slices.Clone(c.Policies)
	for i := range h.Models {
		if slices.Contains(names, h.Models[i].Name) {
			return fault.Mistakef("policy %s is named twice", h.Models[i].Name)
		}
		names = append(names, h.Models[i].Name)
	}
	plain := sim.DefaultConfig()
	plain.Comm = c.Simulator.Comm
	if len(h.Models) == 0 {
		return nil
	}
	if c.streams() {
		return fault.Mistakef("%s needs the whole trace in memory; want %s off", fault.Key("policy-onnx"),
			fault.Key("stream"))
	}
	for _, k := range []struct {
		given  bool
		format string
		key    fault.Key
	}{
		{h.Events != nil, "%s", "events"}, {h.Jobs != nil, "%s", "jobs-out"}, {h.Observe != nil, "%s", "html"},
		{c.Peer.Name != "", "%s", "peer"}, {c.Horizon > 0, "%s", "horizon"}, {c.Interference != "", "%s", "interference"},
		{!sameSimulator(c.Simulator, plain), "settings of the simulator other than %s", "comm"},
	} {
		if k.given {
			return fault.Mistakef("%s does not go with %w: models play in %s, which has none; gymctl eval %s %s draws their "+
				"schedules", fault.Key("policy-onnx"), fault.Errorf(k.format, k.key), jobselect.ID, fault.Key("policy-onnx"),
				fault.Key("html"))
		}
	}
	return nil
}

// sameSimulator reports whether two settings simulate alike.
func sameSimulator(a, b sim.Config) bool {
	return a.Restart == b.Restart && a.Checkpoint == b.Checkpoint && a.Failures == b.Failures && a.Horizon == b.Horizon &&
		a.Ring == b.Ring
}

// play schedules the workload by a model, through an environment over all jobs from an empty cluster.
func (r *simulation) play(ctx context.Context, m *Played) error {
	cfg, s := r.cfg, m.Settings
	s.Load, s.Warm, s.Window = 0, 0, len(r.jobs)
	s.Estimates, s.Placement, s.Comm = cfg.Policy.Estimates, cfg.Policy.Placement, cfg.Simulator.Comm
	s.Mode, s.Ahead = sched.Streamed, "" // from the empty cluster, until the last job has ended
	d := envs.Find(cmp.Or(s.ID, jobselect.V1))
	if err := s.Validate(); err != nil {
		return &fault.Mistake{Err: fmt.Errorf("model %s: %w", m.File, err)}
	}
	open, err := d.Open(d.Judged(&s), &envs.Source{Cluster: r.spec, Windows: &onlyJobs{r.jobs, r.model}}, traces.Test)
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	defer open.Close() //nolint:errcheck // it holds nothing
	e := open.(sched.Arena)
	p, err := m.PolicyContext(ctx, e.Spec())
	if err != nil {
		return err
	}
	var counted metrics.Collector
	var seen sim.Observer = &counted
	if w := r.watch(m.Name, len(r.jobs)); w != nil {
		seen = observers{&counted, w}
	}
	e.Watch(seen)
	defer e.Watch(nil)
	wall := r.hooks.clock()
	_, _, err = agents.NewPlayer(e, p).Play(ctx, env.Episode{Seed: cfg.Seed, Split: env.SplitTest}, nil)
	if err != nil && !errors.Is(err, sched.ErrUndecided) { // which played it: there was nothing to decide
		return fmt.Errorf("model %s: %w", m.Name, err)
	}
	run := Result{
		Policy: m.Name, Placement: s.Placement, Backfill: "none", Estimates: s.Estimates, Rung: report.RungOf(s.Estimates),
		Cluster: clusterOf(r.cluster), Events: counted.Events(), Metrics: counted.Summary(cfg.Warmup, cfg.Tail),
		Trace: traceOf(&r.report.Info, r.read, r.never.count, r.never.share(), r.never.ids),
	}
	run.WallS = wall()
	r.unfinished(m.Name, e.View(), &run)
	r.report.Runs = append(r.report.Runs, run)
	return nil
}

// mostGPUs returns the largest gang that every model takes, 0 without models.
func (r *simulation) mostGPUs() int {
	most := 0
	for i := range r.hooks.Models {
		if n := r.hooks.Models[i].Settings.MaxGPUs; most == 0 || n < most {
			most = n
		}
	}
	return most
}

// takes returns which jobs all models take, so that every policy schedules the same ones; nil = there are no models.
func (r *simulation) takes() func(j *traces.Job) bool {
	most := r.mostGPUs()
	if most == 0 {
		return nil
	}
	return func(j *traces.Job) bool { return j.GPUs <= most && j.Work > 0 }
}

// observers are several as one.
type observers []sim.Observer

// Observe implements sim.Observer.
func (o observers) Observe(v *sim.View, p *sim.Point) error {
	for _, x := range o {
		if err := x.Observe(v, p); err != nil {
			return err
		}
	}
	return nil
}
