package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/predictors"
	"clustergym/lab/report"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Hooks connects a simulation to its caller.
type Hooks struct {
	Now    func() time.Time // the clock that measures wall_s; nil = wall_s stays 0
	Events io.Writer        // every event as a JSON line, for one policy only; nil = none
	// Progress is called many times during a run; nil = never.
	Progress func(Progress)
	Workers  int       // goroutines of policies that look ahead; they affect only speed, 0 = one
	Jobs     io.Writer // a CSV row for each job of each policy, with all digits; nil = none
	Models   []Played  // models that schedule the workload after the policies
	// Observe returns an observer of the run of policy; nil = no observers.
	Observe func(policy string) sim.Observer
}

// Run runs the workload of cfg under each policy, one after the other, each on the empty cluster. Faults in cfg, in its
// files and in their combination are *fault.Mistakes. ctx ends a run between two events. The report comes with an error
// if runs of some policies would not have ended (schedulers.ErrNoProgress): it has the others.
func Run(ctx context.Context, cfg Config, hooks Hooks) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if hooks.Events != nil && len(cfg.Policies) > 1 {
		return nil, fault.Mistakef("events can be written for one policy at a time, not for %s",
			strings.Join(cfg.Policies, ","))
	}
	if err := cfg.checkModels(&hooks); err != nil {
		return nil, err
	}
	if cfg.Peer.Name != "" {
		return runPeer(ctx, cfg, hooks)
	}
	spec, err := workload.ClusterSpec(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	c, err := cluster.New(spec)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	sc := cfg.Simulator
	sc.Seed = cfg.Seed
	if cfg.Interference != "" {
		if sc.Interference, err = workload.LoadInterference(cfg.Interference); err != nil {
			return nil, err
		}
	}
	free := sc.Restart == 0 && sc.Checkpoint == 0 && sc.Overhead == sim.Overhead{}
	r := &simulation{report: &Report{freeStops: free}, cfg: &cfg, hooks: hooks, spec: spec, cluster: c, sim: sc}
	if r.service, err = workload.ReadService(cfg.Service); err != nil {
		return nil, err
	}
	if est := cfg.Policy.Estimates; est.File != "" {
		if r.model, err = predictors.ReadModel(ctx, nil, est.File, est.File); err != nil {
			return nil, err
		}
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	if hooks.Jobs != nil {
		if r.table, err = newJobTable(hooks.Jobs, &cfg, c); err != nil {
			return nil, err
		}
	}
	var endless error // of policies whose runs would not end; the others' rows stand
	for _, policy := range cfg.Policies {
		switch err := r.run(ctx, policy); {
		case errors.Is(err, schedulers.ErrNoProgress):
			endless = errors.Join(endless, &fault.Mistake{Err: err})
		case err != nil:
			return nil, err
		}
	}
	for i := range hooks.Models {
		if err := r.play(ctx, &hooks.Models[i]); err != nil {
			return nil, err
		}
	}
	return r.report, endless
}

// simulation is the state of Run.
type simulation struct {
	report  *Report
	cfg     *Config
	hooks   Hooks
	spec    cluster.Spec
	cluster *cluster.Cluster // always empty; tells what can fit
	sim     sim.Config
	service []time.Duration // GPU-times, sorted; nil = those of the jobs
	all     []traces.Job    // jobs of the trace, while it is loaded
	jobs    []traces.Job    // jobs that can fit; nil if the trace is streamed
	read    int             // number of jobs, including refused ones; of a streamed trace, the last run's
	never   Refusal
	table   *jobTable         // nil = none
	model   *predictors.Model // of estimates gbdt:FILE; nil = none
	outside bool              // the caller decides, and may look at run times
}

// load reads the workload into memory, unless it is streamed.
func (r *simulation) load(ctx context.Context) error {
	cfg := r.cfg
	if cfg.streams() {
		return r.choose(ctx, nil)
	}
	all, info, err := workload.LoadTraceContext(ctx, cfg.Trace)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.report.Info, r.read = info, len(all)
	if err := r.choose(ctx, all); err != nil {
		return err
	}
	r.all = all
	r.jobs, r.never = fitting(r.cluster, all, r.hooks.Jobs != nil, r.takes())
	if r.model != nil {
		n, _ := r.model.Known(r.jobs)
		r.known(n)
	}
	if cfg.Service == "workload" {
		r.service = workload.ServiceOf(r.jobs)
	}
	err = r.refuse(len(r.jobs) == 0)
	if r.all = nil; err != nil {
		return err
	}
	return r.cuts(len(r.jobs))
}

// known notes that the model has been fitted to n of the jobs.
func (r *simulation) known(n int) {
	if n > 0 {
		r.report.note(
			"model %s has been fitted to %s that are simulated, so it knows what no cluster can know: these results are not "+
				"on the causal rung", r.model.File, plain.Count(n, "job", "jobs"))
	}
}

// refuse notes the jobs that can never fit. It returns a mistake if all jobs are such, or if the configuration wants
// one.
func (r *simulation) refuse(all bool) error {
	if r.never.count == 0 {
		return nil
	}
	if r.cfg.FailRefused || all {
		return r.never.Mistake(r.read, r.spec.Name, r.cluster, r.cfg.FailRefused)
	}
	if err := r.tooMuch(); err != nil {
		return err
	}
	why := "cluster " + r.spec.Name + " can never hold them"
	if most := r.mostGPUs(); most > 0 {
		why += fmt.Sprintf(", or models take no jobs without a run time or with more than %d GPUs (env.max_gpus)", most)
	}
	ids := listIDs(r.never.ids, r.never.count)
	r.report.note("%s refused, because %s: %s", workload.Part(r.never.count, r.read, r.never.share()), why,
		strings.Join(append([]string{ids}, r.never.why.Reasons(r.cluster)...), "; "))
	return nil
}

// tooMuch returns a mistake if too much of the GPU time of a trace is left out.
func (r *simulation) tooMuch() error {
	t, share := &r.cfg.Trace, r.never.share()
	if t.File == "" || t.AcceptLeftOut || share <= workload.MostLeftOut {
		return nil
	}
	if r.all != nil {
		left := workload.CountLeft(r.cluster, r.all, r.mostGPUs())
		return left.Mistake(t, &r.report.Info, r.cluster, r.spec.Name)
	}
	return workload.TooMuchLeft(t.File, r.spec.Name, share, r.never.why.Reasons(r.cluster))
}

// cuts returns a mistake if warm-up and tail leave none of n jobs to count.
func (r *simulation) cuts(n int) error {
	if cfg := r.cfg; cfg.Warmup+cfg.Tail >= n {
		return fault.Mistakef("warmup %d and tail %d leave none of the %s to count; want less than %d together", cfg.Warmup,
			cfg.Tail, plain.Count(n, "job", "jobs"), n)
	}
	return nil
}

// run simulates one policy and adds its result to the report.
func (r *simulation) run(ctx context.Context, policy string) error {
	cfg, h, sc := r.cfg, r.cfg.Heuristic(policy), r.sim
	looks := policyname.Of(policy).Ahead != policyname.None
	if err := r.prepare(&h, looks || h.Estimating()); err != nil {
		return err
	}
	sch, err := r.scheduler(ctx, h, looks)
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	h.Simulator(&sc)
	if looks || h.Estimating() {
		if r.model != nil {
			sc.Predictor = r.model.Maker(nil)
		} else if sc.Predictor, err = predictors.Maker(h.Estimates, nil); err != nil {
			return &fault.Mistake{Err: err}
		}
	}
	var jobs traces.Stream = &traces.Slice{Jobs: r.jobs}
	var file *streamed
	if r.jobs == nil {
		if file, err = openStreamed(ctx, cfg.Trace); err != nil {
			return err
		}
		file.model = r.model
		defer file.Close() //nolint:errcheck // open for reading only
		jobs = file
	}
	if sc.Horizon, err = cfg.end(jobs); err != nil {
		return err
	}
	if r.table != nil {
		jobs = r.table.begin(sch.Name(), jobs, r.never.jobs)
	}
	s, err := sim.New(sc, r.spec)
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	if err := s.Reset(jobs); err != nil {
		return &fault.Mistake{Err: err}
	}
	var counted metrics.Collector
	observers, events := r.observers(sch.Name(), &counted)
	wall := r.hooks.clock()
	if err := play(ctx, s, sch, observers); err != nil {
		return err
	}
	run := r.result(&h, looks)
	run.Events, run.WallS = counted.Events(), wall()
	if events != nil {
		if err := events.flush(); err != nil {
			return err
		}
	}
	v := s.View()
	if r.table != nil {
		if err := r.table.close(jobs); err != nil {
			return err
		}
	}
	if file != nil {
		if err := r.count(file, s); err != nil {
			return err
		}
	}
	run.Trace = traceOf(&r.report.Info, r.read, r.never.count, r.never.share(), r.never.ids)
	run.Metrics = counted.Summary(cfg.Warmup, cfg.Tail)
	r.unfinished(sch.Name(), v, &run)
	if q, ok := sch.(interface{ Proven() (bool, error) }); ok {
		proven, err := q.Proven()
		if err != nil {
			return err
		}
		run.Proven = &proven
	}
	r.report.Runs = append(r.report.Runs, run)
	return nil
}

// observers are all who follow a policy's simulation; events is one of them, nil if there is no log of events.
func (r *simulation) observers(policy string, counted *metrics.Collector) (all []sim.Observer, events *eventLog) {
	all = []sim.Observer{counted}
	if r.table != nil {
		all = append(all, r.table)
	}
	if r.hooks.Events != nil {
		events = newEventLog(r.hooks.Events)
		all = append(all, events)
	}
	if w := r.watch(policy, max(len(r.jobs), r.read-r.never.count)); w != nil {
		all = append(all, w)
	}
	if r.hooks.Observe != nil {
		all = append(all, r.hooks.Observe(policy))
	}
	return all, events
}

// play runs a simulation to its end. Its errors name the policy, or the row of the trace that is at fault.
func play(ctx context.Context, s *sim.Simulator, sch schedulers.Policy, observers []sim.Observer) error {
	err := sim.Run(ctx, s, sch, observers...)
	if err == nil || errors.Is(err, schedulers.ErrNoProgress) { // which names the policy
		return err
	}
	if ctx.Err() == nil {
		if input, ok := errors.AsType[*fault.Mistake](err); ok { // from a row of a streamed trace
			return input
		}
	}
	return fmt.Errorf("policy %s: %w", sch.Name(), err)
}

// end returns when a run ends whose jobs these are, 0 = with the last of them.
func (c *Config) end(jobs traces.Stream) (time.Duration, error) {
	if c.Horizon == 0 {
		return 0, nil
	}
	first, err := firstSubmit(jobs)
	if err == nil && first > traces.MaxTime-c.Horizon {
		err = fault.Mistakef("horizon: got %v, want less: the first job is submitted at %v, and the clock ends at 146 years",
			c.Horizon, first)
	}
	return first + c.Horizon, err
}

// watch returns what tells the progress of a run of so many jobs, nil if it is not asked for.
func (r *simulation) watch(policy string, jobs int) *watch {
	if r.hooks.Progress == nil {
		return nil
	}
	runs := len(r.cfg.Policies) + len(r.hooks.Models)
	return &watch{tell: r.hooks.Progress, at: Progress{Policy: policy, Run: len(r.report.Runs), Runs: runs, Jobs: jobs}}
}

// clock begins to measure, and returns what returns the seconds since; 0 without a clock.
func (h *Hooks) clock() (seconds func() float64) {
	if h.Now == nil {
		return func() float64 { return 0 }
	}
	begin := h.Now()
	return func() float64 { return h.Now().Sub(begin).Seconds() }
}

// result returns the result of a run of h, or of a search on top of it, without what the run measures.
func (r *simulation) result(h *schedulers.Config, looks bool) Result {
	run := Result{
		Policy: h.Order, Admission: h.Admission, Placement: h.Placement, Backfill: h.Backfill, Estimates: h.Estimates,
		Rung: report.RungOf(h.Estimates), knows: h.Order == "gittins-2d" && r.cfg.Service == "workload",
		Cluster: clusterOf(r.cluster),
	}
	if looks {
		run.Policy = policyname.Rollout.String() + run.Policy
	} else if rung, own := h.Knows(); own && rung == sim.RungNone {
		run.Nothing = !run.knows
	} else if own {
		run.knows = true
	}
	if run.knows {
		run.Rung = sim.RungExact.String()
	}
	return run
}

// scheduler returns the policy that h describes, or, if it looks ahead, that one on top of it.
func (r *simulation) scheduler(ctx context.Context, h schedulers.Config, looks bool) (schedulers.Policy, error) {
	if !looks {
		return schedulers.New(h)
	}
	setup := rollout.Setup{Config: r.cfg.Rollout, Workers: max(1, r.hooks.Workers)}
	if now := r.hooks.Now; now != nil {
		begin := now()
		setup.Clock = func() time.Duration { return now().Sub(begin) }
	}
	s, err := rollout.New(setup, h)
	if err != nil {
		return nil, err
	}
	s.Cancel(ctx)
	return s, nil
}

// prepare gives a policy what it must know about the workload beforehand. It returns a mistake if the workload lacks
// something that the policy, which asks for run times or not, or the simulator needs.
func (r *simulation) prepare(h *schedulers.Config, asks bool) error {
	if r.jobs == nil {
		h.Service = r.service
		if h.Clairvoyant() || r.cfg.Service == "workload" {
			return fault.Mistakef("policy %s must know the whole workload beforehand; want %s off", h.Name(),
				fault.Key("stream"))
		}
		return nil
	}
	if h.Estimates.Mode == sim.EstimateTrace && asks {
		if n, first := WithoutEstimate(r.jobs); n > 0 {
			return fault.Mistakef(
				"policy %s looks at estimated run times, and %d of %s in %s have none, the first is %s; want estimates history, "+
					"exact or noisy:SIGMA, or %s TIME (trace.limit), which stands for those that are missing", h.Name(), n,
				plain.Count(len(r.jobs), "job", "jobs"), r.report.Info.File, first, fault.Key("limit"))
		}
	}
	if comm := r.sim.Comm; (comm == "ring" || comm == "contention") && !r.cluster.Pool() {
		n, first := 0, ""
		for i := range r.jobs {
			if j := &r.jobs[i]; j.GPUs > 1 && j.Profile == nil {
				if n++; n == 1 {
					first = j.ID
				}
			}
		}
		if n > 0 {
			return fault.Mistakef(
				"comm %s needs to know the models of gangs, and %d of %s in %s have none, the first is %s; want %s NAME or %s",
				comm, n, plain.Count(len(r.jobs), "job", "jobs"), r.report.Info.File, first, fault.Key("mix"),
				fault.Key("profiles"))
		}
	}
	h.Service = r.service
	h.Know(r.jobs, r.cluster)
	h.Given.Interference, h.Given.InterferenceScope = r.sim.Interference, r.sim.InterferenceScope
	if h.Placement == "least-interference" && r.sim.Interference == nil {
		return fault.Mistakef(
			"placement least-interference needs to know how jobs slow each other down; want %s FILE or seeded:N",
			fault.Key("interference"))
	}
	return nil
}

// unfinished counts and notes the jobs that did not run to their end. Without warm-up and tail, jobs read = finished +
// unfinished + dropped + refused.
func (r *simulation) unfinished(policy string, v *sim.View, run *Result) {
	late := r.read - r.never.count - v.Arrived()
	run.Metrics.Unfinished += late
	left := slices.Concat(v.Running(), v.Waiting())
	if len(left) > 0 {
		slices.SortFunc(left, func(a, b sim.Job) int { return v.Pos(a) - v.Pos(b) })
		ids := make([]string, 0, namedJobs)
		for _, j := range left[:min(namedJobs, len(left))] {
			ids = append(ids, v.Trace(j).ID)
		}
		why := fmt.Sprintf("at the horizon of %v", r.cfg.Horizon)
		if r.cfg.Horizon == 0 || late == 0 && len(v.Running()) == 0 {
			why = "for they can never start on what works of the cluster"
		}
		r.report.note("%s: %s unfinished %s: %s", policy, plain.Count(len(left), "job", "jobs"), why, listIDs(ids, len(left)))
	}
	if late > 0 {
		r.report.note("%s: %s submitted after the horizon of %v and not simulated", policy,
			plain.Count(late, "job is", "jobs are"), r.cfg.Horizon)
	}
}
