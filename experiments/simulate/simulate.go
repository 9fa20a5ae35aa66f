package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/metrics"
	"clustergym/env/sim"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/traces"
)

// SimConfig is one workload on one cluster under one or more heuristics.
type Config struct {
	Trace   workload.TraceConfig `yaml:"trace"`
	Cluster string               `yaml:"cluster"` // see ClusterSpec
	// Policies are orders and other policies of package heuristic, each with its own admission and back-filling
	// where it says so: "sjf", "sjf+skip", "fifo+strict+easy".
	Policies  []string `yaml:"policies"`
	Admission string   `yaml:"admission"` // of policies that name none: strict, skip, commit, or "" = skip for those that preempt, else strict
	Backfill  string   `yaml:"backfill"`  // of policies that name none: none, easy or conservative
	// Policy is what else a user may choose of the policies: placement, estimates, limits, …. Its order,
	// admission, back-filling and seed are not looked at.
	Policy    heuristic.Config `yaml:"policy"`
	Simulator sim.Config       `yaml:"simulator"` // its horizon and seed are not looked at
	// Interference is how jobs that share hardware slow each other down: see InterferenceForms. "" = not at all.
	Interference string `yaml:"interference"`
	// Service is what gittins-2d takes for the distribution of the jobs' GPU-times: a file of them, as Tiresias'
	// sample; "workload" = those of the workload itself, known beforehand; "" = those of the jobs that have finished.
	Service string `yaml:"service"`
	Seed    uint64 `yaml:"seed"` // of random orders, noisy estimates, failures, model mixes

	Horizon time.Duration `yaml:"horizon"` // cut the run off this long after the first submit; 0 = never
	Warmup  int           `yaml:"warmup"`  // jobs at the beginning that run but are not counted
	Tail    int           `yaml:"tail"`    // and at the end
	// FailRefused makes jobs that can never fit the cluster a mistake; else they are left out, counted and named.
	FailRefused bool `yaml:"fail_refused"`
	// Stream reads the trace while it is simulated, once for each policy, instead of holding it in memory: "auto"
	// for large files, "on", "off".
	Stream string `yaml:"stream"`
	// Peer runs the workload on a peer's own machine instead: only trace, cluster, policies, seed and
	// fail_refused are looked at beside it.
	Peer PeerConfig `yaml:"peer"`
}

// DefaultSimConfig is FIFO strict with first-fit over a generated workload on the cluster philly-192.
func DefaultConfig() Config {
	h := heuristic.DefaultConfig()
	return Config{
		Trace: workload.DefaultTraceConfig(), Cluster: "philly-192", Policies: []string{h.Order},
		Policy: h, Simulator: sim.DefaultConfig(), Seed: 1, Stream: "auto", Peer: DefaultPeerConfig(),
	}
}

// Validate reports every fault. Files are not looked at.
func (c *Config) Validate() error {
	var l fault.List
	l.Join("trace", c.Trace.Validate())
	l.Add(c.Cluster != "", "cluster", c.Cluster, workload.ClusterForms)
	l.Add(len(c.Policies) > 0, "policies", "none", "one or more of "+strings.Join(heuristic.Orders(), ", "))
	if c.Peer.Name != "" {
		c.validatePeer(&l)
		return l.Err()
	}
	admission := c.Admission == "" || slices.Contains(heuristic.Admissions(), c.Admission)
	l.Add(admission, "admission", c.Admission, OneOf(heuristic.Admissions()))
	backfill := c.Backfill == "" || slices.Contains(heuristic.Backfills(), c.Backfill)
	l.Add(backfill, "backfill", c.Backfill, OneOf(heuristic.Backfills()))
	for i, p := range c.Policies {
		key := fmt.Sprintf("policies[%d]", i)
		order, own, filled, ok := heuristic.SplitName(p)
		if !ok || !slices.Contains(heuristic.Orders(), order) {
			want := "one of " + strings.Join(heuristic.Orders(), ", ") + ", with +strict, +skip or +commit and +easy or +conservative after it where wanted"
			if near := nearest.Name(order, heuristic.Orders()); near != "" && near != order {
				want += "; did you mean " + near + "?"
			}
			l.Add(false, key, p, want)
			continue
		}
		if !admission || !backfill {
			continue
		}
		// What is wrong with admission and back-filling of this policy, each where it was said.
		h := heuristic.DefaultConfig()
		h.Order, h.Admission, h.Backfill = order, c.Admission, c.Backfill
		if own != "" {
			h.Admission = own
		}
		if filled != "" {
			h.Backfill = filled
		}
		for _, f := range fault.All(h.Validate()) {
			g := *f
			if own != "" && f.Key == "admission" || filled != "" && f.Key == "backfill" {
				g.Key, g.Value = key, p
			}
			l.Join("", &g)
		}
	}
	// The rest of a policy's configuration; its order and admission are right here.
	h := c.Policy
	d := heuristic.DefaultConfig()
	h.Order, h.Admission, h.Backfill = d.Order, "", d.Backfill
	l.Join("policy", h.Validate())
	l.Join("simulator", c.Simulator.Validate())
	l.Add(c.Simulator.Horizon == 0, "simulator.horizon", c.Simulator.Horizon, "nothing here; horizon counts from the first submit")
	l.Add(c.Horizon >= 0, "horizon", c.Horizon, "a time, or 0s for none")
	l.Add(c.Warmup >= 0, "warmup", c.Warmup, "a number of jobs, 0 or more")
	l.Add(c.Tail >= 0, "tail", c.Tail, "a number of jobs, 0 or more")
	l.Add(slices.Contains([]string{"", "auto", "on", "off"}, c.Stream), "stream", c.Stream, "auto, on or off")
	return l.Err()
}

func OneOf(names []string) string { return "one of " + strings.Join(names, ", ") }

// heuristic is the scheduler that the policy called name stands for.
func (c *Config) Heuristic(name string) heuristic.Config {
	h := c.Policy
	h.Seed = c.Seed
	h.Order, h.Admission, h.Backfill, _ = heuristic.SplitName(name)
	if h.Admission == "" {
		h.Admission = c.Admission
	}
	if h.Backfill == "" {
		h.Backfill = c.Backfill
	}
	if h.Backfill == "" {
		h.Backfill = "none"
	}
	if h.Admission == "" { // the order's own, by its name
		_, h.Admission, _, _ = heuristic.SplitName(h.Name())
	}
	return h
}

// SimHooks is what a simulation needs from outside.
type Hooks struct {
	Now    func() time.Time // the clock that wall_s is measured by; nil = wall_s stays 0
	Events io.Writer        // every event as a JSON line, for one policy only; nil = none
	Jobs   io.Writer        // of a peer's machine, a row for each job with every digit, for one policy only; nil = none
	// Observe gives somebody who is shown every point of the run of policy; nil = nobody.
	Observe func(policy string) sim.Observer
}

// SimReport is what a simulation found.
type Report struct {
	Runs  []Result      // in the order of the policies
	Info  workload.Info // of the workload
	Notes []string      // for people, to be shown beside the result: what was left out, what did not finish

	refused []string // by a peer's machine
}

// SimRun is one policy's result. Its JSON form is a published document: fields keep their names and order.
type Result struct {
	Policy    string          `json:"policy"`
	Admission string          `json:"admission"`
	Placement string          `json:"placement"`
	Backfill  string          `json:"backfill"`
	Estimates string          `json:"estimates"`
	Trace     Trace           `json:"trace"`
	Cluster   Cluster         `json:"cluster"`
	Metrics   metrics.Summary `json:"metrics"`
	Events    int             `json:"events"`
	WallS     float64         `json:"wall_s"`
	Proven    *bool           `json:"proven_optimal,omitempty"` // of policies that search: the schedule is an optimum
	Peer      *Peer           `json:"peer,omitempty"`           // of a peer's machine
}

// Name is the policy with its admission and back-filling: "fifo+strict+easy".
func (r *Result) Name() string {
	name := r.Policy
	if r.Admission != "" {
		name += "+" + r.Admission
	}
	if r.Backfill != "none" {
		name += "+" + r.Backfill
	}
	return name
}

// SimTrace is the workload of a run.
type Trace struct {
	File    string `json:"file"`
	Format  string `json:"format"`
	Jobs    int    `json:"jobs"`    // read: those refused included
	Refused int    `json:"refused"` // can never fit the cluster, and were left out
	// RefusedIDs are the first of them.
	RefusedIDs []string `json:"refused_ids,omitempty"`
}

// SimCluster is the cluster of a run.
type Cluster struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	GPUs  int    `json:"gpus"`
}

// MarshalJSON gives the document of one run, or {"runs": […]} for several.
func (r *Report) MarshalJSON() ([]byte, error) {
	if len(r.Runs) == 1 {
		return marshalJSON(r.Runs[0])
	}
	return marshalJSON(struct {
		Runs []Result `json:"runs"`
	}{r.Runs})
}

// marshalJSON leaves <, > and & as they are.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// Simulate runs the workload of cfg under each policy, one after the other, each on the empty cluster. Faults in
// cfg, in its files and in what they say together are *InputErrors. ctx ends a run between two events.
func Run(ctx context.Context, cfg Config, hooks Hooks) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &workload.InputError{Err: err}
	}
	if hooks.Jobs != nil && len(cfg.Policies) > 1 {
		return nil, workload.Mistake("the rows of jobs can be written for one policy at a time, not for %s", strings.Join(cfg.Policies, ","))
	}
	if hooks.Events != nil && len(cfg.Policies) > 1 {
		return nil, workload.Mistake("events can be written for one policy at a time, not for %s", strings.Join(cfg.Policies, ","))
	}
	if cfg.Peer.Name != "" {
		return simulatePeer(ctx, cfg, hooks)
	}
	if hooks.Jobs != nil {
		return nil, workload.Mistake("--jobs-out goes with --peer; want --events, which has what happened to every job")
	}
	spec, err := workload.ClusterSpec(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	c, err := cluster.New(spec)
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	sc := cfg.Simulator
	sc.Seed = cfg.Seed
	if cfg.Interference != "" {
		if sc.Interference, err = workload.LoadInterference(cfg.Interference); err != nil {
			return nil, err
		}
	}
	r := &simulation{report: &Report{}, cfg: &cfg, hooks: hooks, spec: spec, cluster: c, sim: sc}
	if r.service, err = workload.ReadService(cfg.Service); err != nil {
		return nil, err
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	for _, policy := range cfg.Policies {
		if err := r.run(ctx, policy); err != nil {
			return nil, err
		}
	}
	return r.report, nil
}

// simulation is a Simulate under way.
type simulation struct {
	report  *Report
	cfg     *Config
	hooks   Hooks
	spec    cluster.Spec
	cluster *cluster.Cluster // empty: to ask what fits
	sim     sim.Config
	service []time.Duration // GPU-times, sorted; nil = those of the jobs
	jobs    []traces.Job    // that fit; nil when the trace is streamed
	read    int             // jobs, those refused included; when streamed, as of the last run
	never   refusal
}

// load reads the workload into memory, unless it is to be streamed.
func (r *simulation) load(ctx context.Context) error {
	cfg := r.cfg
	if cfg.streams() {
		return nil
	}
	all, info, err := workload.LoadTraceContext(ctx, cfg.Trace)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.report.Info, r.read = info, len(all)
	r.jobs, r.never = Fitting(r.cluster, all)
	if cfg.Service == "workload" {
		r.service = workload.ServiceOf(r.jobs)
	}
	if err := r.refuse(len(r.jobs) == 0); err != nil {
		return err
	}
	return r.cuts(len(r.jobs))
}

// refuse notes the jobs that can never fit, or makes them a mistake.
func (r *simulation) refuse(all bool) error {
	if r.never.count == 0 {
		return nil
	}
	if r.cfg.FailRefused || all {
		return r.never.Mistake(r.read, r.spec.Name, r.cluster, r.cfg.FailRefused)
	}
	r.report.note("%d of %s refused, because cluster %s can never hold them: %s", r.never.count, workload.Plural(r.read, "job", "jobs"), r.spec.Name,
		listIDs(r.never.ids, r.never.count))
	return nil
}

// cuts checks warm-up and tail against the number of jobs.
func (r *simulation) cuts(n int) error {
	if cfg := r.cfg; cfg.Warmup+cfg.Tail >= n {
		return workload.Mistake("warmup %d and tail %d leave none of the %s to count; want less than %d together", cfg.Warmup, cfg.Tail, workload.Plural(n, "job", "jobs"), n)
	}
	return nil
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// run simulates one policy.
func (r *simulation) run(ctx context.Context, policy string) error {
	cfg, h, sc := r.cfg, r.cfg.Heuristic(policy), r.sim
	if err := r.prepare(&h); err != nil {
		return err
	}
	sch, err := heuristic.New(h)
	if err != nil {
		return &workload.InputError{Err: err}
	}
	h.Simulator(&sc)
	var jobs traces.Stream = &traces.Slice{Jobs: r.jobs}
	var file *streamed
	if r.jobs == nil {
		if file, err = openStreamed(ctx, cfg.Trace); err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // only read
		jobs = file
	}
	if cfg.Horizon > 0 {
		first, err := firstSubmit(jobs)
		if err != nil {
			return err
		}
		sc.Horizon = first + cfg.Horizon
	}
	s, err := sim.New(sc, r.spec)
	if err != nil {
		return &workload.InputError{Err: err}
	}
	if err := s.Reset(jobs); err != nil {
		return &workload.InputError{Err: err}
	}
	var counted metrics.Collector
	observers := []sim.Observer{&counted}
	var events *eventLog
	if r.hooks.Events != nil {
		events = newEventLog(r.hooks.Events)
		observers = append(observers, events)
	}
	if r.hooks.Observe != nil {
		observers = append(observers, r.hooks.Observe(sch.Name()))
	}
	var begin time.Time
	if r.hooks.Now != nil {
		begin = r.hooks.Now()
	}
	if err := sim.Run(ctx, s, sch, observers...); err != nil {
		if ctx.Err() == nil {
			if input, ok := errors.AsType[*workload.InputError](err); ok { // of a row of a streamed trace
				return input
			}
		}
		return fmt.Errorf("policy %s: %w", h.Name(), err)
	}
	run := Result{
		Policy: h.Order, Admission: h.Admission, Placement: h.Placement, Backfill: h.Backfill, Estimates: h.Estimates,
		Cluster: Cluster{Name: r.spec.Name, Nodes: r.cluster.Nodes(), GPUs: r.cluster.GPUs()},
		Events:  counted.Events(),
	}
	if r.hooks.Now != nil {
		run.WallS = r.hooks.Now().Sub(begin).Seconds()
	}
	if events != nil {
		if err := events.flush(); err != nil {
			return err
		}
	}
	v := s.View()
	if file != nil {
		if err := r.Count(file, s); err != nil {
			return err
		}
	}
	run.Trace = Trace{File: r.report.Info.File, Format: r.report.Info.Format, Jobs: r.read, Refused: r.never.count, RefusedIDs: r.never.ids}
	run.Metrics = counted.Summary(cfg.Warmup, cfg.Tail)
	r.unfinished(h.Name(), v, &run)
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

// prepare gives a policy what it must know of the workload beforehand, and finds what it would miss.
func (r *simulation) prepare(h *heuristic.Config) error {
	if r.jobs == nil {
		h.Service = r.service
		if h.Clairvoyant() || r.cfg.Service == "workload" {
			return workload.Mistake("policy %s must know the whole workload beforehand; want --stream off", h.Name())
		}
		return nil
	}
	if h.Estimates == "trace" && h.Estimating() {
		if n, first := WithoutEstimate(r.jobs); n > 0 {
			return workload.Mistake("policy %s looks at estimated run times, and %d of %s in %s have none, the first is %s; want estimates exact or noisy:SIGMA",
				h.Name(), n, workload.Plural(len(r.jobs), "job", "jobs"), r.report.Info.File, first)
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
			return workload.Mistake("comm %s needs to know the models of gangs, and %d of %s in %s have none, the first is %s; want --mix NAME or --profiles",
				comm, n, workload.Plural(len(r.jobs), "job", "jobs"), r.report.Info.File, first)
		}
	}
	h.Service = r.service
	h.Know(r.jobs, r.cluster)
	h.Given.Interference, h.Given.InterferenceScope = r.sim.Interference, r.sim.InterferenceScope
	if h.Placement == "least-interference" && r.sim.Interference == nil {
		return workload.Mistake("placement least-interference needs to know how jobs slow each other down; want --interference FILE or seeded:N")
	}
	return nil
}

// unfinished counts and notes what did not run to its end, so that jobs read = finished + unfinished + dropped +
// refused where nothing is cut off by warm-up and tail.
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
		r.report.note("%s: %s unfinished %s: %s", policy, workload.Plural(len(left), "job", "jobs"), why, listIDs(ids, len(left)))
	}
	if late > 0 {
		r.report.note("%s: %s submitted after the horizon of %v and not simulated", policy, workload.Plural(late, "job is", "jobs are"), r.cfg.Horizon)
	}
}

// withoutEstimate counts the jobs that give no estimate and names the first.
func WithoutEstimate(jobs []traces.Job) (n int, first string) {
	for i := range jobs {
		if jobs[i].Estimate > 0 {
			continue
		}
		if n++; n == 1 {
			first = jobs[i].ID
		}
	}
	return n, first
}

// namedJobs is how many jobs a message names.
const namedJobs = 10

// listIDs joins the first ids of so many.
func listIDs(ids []string, of int) string {
	s := strings.Join(ids, ", ")
	if more := of - len(ids); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// refusal is the jobs that can never fit a cluster.
type refusal struct {
	count   int
	ids     []string // the first of them
	largest int      // gang
	noGPU   int      // ask for none
}

// fitting takes out of jobs those that c has no place for even when it is empty. Where all fit, jobs itself is
// returned.
func Fitting(c *cluster.Cluster, jobs []traces.Job) ([]traces.Job, refusal) {
	var never refusal
	kept := jobs
	for i := range jobs {
		if _, ok := c.Request(&jobs[i]); ok {
			if never.count > 0 {
				kept = append(kept, jobs[i])
			}
			continue
		}
		if never.count == 0 {
			kept = append(make([]traces.Job, 0, len(jobs)), jobs[:i]...)
		}
		if never.count++; len(never.ids) < namedJobs {
			never.ids = append(never.ids, jobs[i].ID)
		}
		never.largest = max(never.largest, jobs[i].GPUs)
		if jobs[i].GPUs < 1 {
			never.noGPU++
		}
	}
	return kept, never
}

// mistake says what can be done.
func (r *refusal) Mistake(of int, name string, c *cluster.Cluster, asked bool) error {
	var why []string
	if r.largest > c.GPUs() {
		why = append(why, fmt.Sprintf("the largest asks for %s", workload.Plural(r.largest, "GPU", "GPUs")))
	} else if r.noGPU < r.count {
		why = append(why, "there is never enough of the GPU types, cores or memory they ask for")
	}
	if r.noGPU > 0 {
		why = append(why, fmt.Sprintf("%s for no GPU", workload.Plural(r.noGPU, "asks", "ask")))
	}
	want := "want a cluster that holds one of them at least"
	if asked {
		want = "want a cluster that holds them, or no --fail-refused, to run without them"
	}
	return workload.Mistake("%d of %s can never fit cluster %s (%s): %s; %s; %s",
		r.count, workload.Plural(of, "job", "jobs"), name, workload.Plural(c.GPUs(), "GPU", "GPUs"), listIDs(r.ids, r.count), strings.Join(why, ", "), want)
}
