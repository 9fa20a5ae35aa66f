package simulate

import (
	"context"

	"clustergym/internal/fault"
	"clustergym/lab/predictors"
	"clustergym/lab/report"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Stage is a workload in memory and a cluster on which policies are played from event to event, for a caller that
// decides itself or does something else in between. What it plays is what Run plays. Its plays are independent of each
// other.
type Stage struct{ r simulation }

// NewStage returns the stage of jobs, which are in order of submit, on the cluster spec. Of cfg it uses everything but
// the workload, the cluster, the policies, the seed, and what is for peers, models and streamed traces. Faults are
// *fault.Mistakes.
func NewStage(ctx context.Context, cfg Config, spec cluster.Spec, jobs []traces.Job,
	info workload.Info) (*Stage, error) {
	cfg.Policies = []string{schedulers.DefaultConfig().Order}
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	c, err := cluster.New(spec)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	s := &Stage{simulation{
		report: &Report{Info: info}, cfg: &cfg, spec: spec, cluster: c, sim: cfg.Simulator, read: len(jobs), outside: true,
	}}
	r := &s.r
	if err := r.choose(ctx, jobs); err != nil {
		return nil, err
	}
	r.all = jobs
	r.jobs, r.never = fitting(c, jobs, false, nil)
	err = r.refuse(len(r.jobs) == 0)
	if r.all = nil; err != nil {
		return nil, err
	}
	return s, r.cuts(len(r.jobs))
}

// Cluster returns the empty cluster. It must not be changed.
func (s *Stage) Cluster() *cluster.Cluster { return s.r.cluster }

// Info describes the workload.
func (s *Stage) Info() workload.Info { return s.r.report.Info }

// Jobs returns how many jobs are played, and how many can never fit the cluster and are left out.
func (s *Stage) Jobs() (played, refused int) { return len(s.r.jobs), s.r.never.count }

// Estimates returns what is known of run times, and in words why.
func (s *Stage) Estimates() (est sim.Estimates, why string) {
	est = s.r.cfg.Policy.Estimates
	if why = est.Label(); s.r.report.chosen != "" {
		why += ", as " + s.r.report.chosen
	}
	return est, why
}

// Notes returns sentences for people on what was left out.
func (s *Stage) Notes() []string { return s.r.report.Notes }

// Play is one run on a stage.
type Play struct {
	Sim *sim.Simulator // at its beginning: nothing has advanced
	// Policy decides; nil = the caller does.
	Policy schedulers.Policy
	// Placement finds GPUs for jobs that the caller starts without naming any.
	Placement place.Placement
	// Estimates are what a caller that decides may know of run times.
	Estimates sim.Estimates
	// Counted is to observe every point.
	Counted *metrics.Collector

	r      simulation
	result Result
	name   string
}

// Begin returns a play of the policy of that name, or if name is "", of one of the caller's that is given the same
// estimates. seed is that of Config. Faults are *fault.Mistakes.
func (s *Stage) Begin(ctx context.Context, name string, seed uint64) (*Play, error) {
	p := &Play{r: s.r, name: name, Counted: &metrics.Collector{}}
	cfg := *s.r.cfg
	cfg.Seed = seed
	r := &p.r
	r.cfg, r.report, r.sim.Seed = &cfg, &Report{Info: s.r.report.Info}, seed
	if name != "" {
		cfg.Policies = []string{name}
		if err := cfg.Validate(); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
	}
	h, sc := cfg.Heuristic(cfg.Policies[0]), r.sim
	looks := policyname.Of(cfg.Policies[0]).Ahead != policyname.None
	asks := looks || h.Estimating() || name == "" && h.Estimates.Known()
	// A caller sees that a job has no estimate; a policy has nothing to go by.
	if err := r.prepare(&h, asks && name != ""); err != nil {
		return nil, err
	}
	var err error
	if name != "" {
		if p.Policy, err = r.scheduler(ctx, h, looks); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		h.Simulator(&sc)
	}
	p.Estimates = h.Estimates
	p.Estimates.Seed = seed
	if p.Placement, err = place.New(h.Placement, p.Estimates, h.Given); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if asks {
		if sc.Predictor, err = predictors.Maker(h.Estimates, nil); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
	}
	jobs := &traces.Slice{Jobs: r.jobs}
	if sc.Horizon, err = cfg.end(jobs); err != nil {
		return nil, err
	}
	if p.Sim, err = sim.New(sc, r.spec); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if err := p.Sim.Reset(jobs); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	p.Placement.Reset()
	p.result = r.result(&h, looks)
	if name == "" {
		p.result.Nothing, p.result.Rung = false, report.RungOf(h.Estimates)
	}
	return p, nil
}

// Name returns the full name of the policy, "" if the caller decides.
func (p *Play) Name() string {
	if p.name == "" {
		return ""
	}
	return p.result.Name()
}

// Rung says what the policy knows of run times, and whether it does not ask for them.
func (p *Play) Rung() (rung string, asksNothing bool) { return p.result.Rung, p.result.Nothing }

// Summary returns the metrics of the play, which has ended, and sentences for people on what did not finish.
func (p *Play) Summary() (metrics.Summary, []string) {
	run := Result{Metrics: p.Counted.Summary(p.r.cfg.Warmup, p.r.cfg.Tail)}
	name := p.name
	if name == "" {
		name = "the scheduler"
	}
	p.r.unfinished(name, p.Sim.View(), &run)
	return run.Metrics, p.r.report.Notes
}
