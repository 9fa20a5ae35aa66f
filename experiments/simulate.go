package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/metrics"
	"clustergym/env/sim"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/traces"
)

// SimConfig is one workload on one cluster under one or more heuristics.
type SimConfig struct {
	Trace   TraceConfig `yaml:"trace"`
	Cluster string      `yaml:"cluster"` // see ClusterSpec
	// Policies are orders of package heuristic, each with its own admission where it says so: "sjf", "sjf+skip".
	Policies  []string `yaml:"policies"`
	Admission string   `yaml:"admission"` // of policies that name none: strict, skip, or "" = skip for orders that preempt, else strict
	Placement string   `yaml:"placement"`
	Estimates string   `yaml:"estimates"` // what orders that rank by run time are told: exact, trace, noisy:SIGMA
	Comm      string   `yaml:"comm"`      // how a placement slows a gang down: none or tree
	Seed      uint64   `yaml:"seed"`      // of random orders and noisy estimates

	Restart time.Duration `yaml:"restart"` // added to what is left of a job whenever it is started again
	Horizon time.Duration `yaml:"horizon"` // cut the run off this long after the first submit; 0 = never
	Warmup  int           `yaml:"warmup"`  // jobs at the beginning that run but are not counted
	Tail    int           `yaml:"tail"`    // and at the end
	// DropRefused runs without the jobs that can never fit the cluster; else they are a mistake.
	DropRefused bool `yaml:"drop_refused"`
}

// DefaultSimConfig is FIFO strict with first-fit over a generated workload on the cluster philly-192.
func DefaultSimConfig() SimConfig {
	h, s := heuristic.DefaultConfig(), sim.DefaultConfig()
	return SimConfig{
		Trace: DefaultTraceConfig(), Cluster: "philly-192", Policies: []string{h.Order},
		Placement: h.Placement, Estimates: h.Estimates, Comm: s.Comm, Seed: 1,
	}
}

// Validate reports every fault. Files are not looked at.
func (c *SimConfig) Validate() error {
	var l fault.List
	l.Join("trace", c.Trace.Validate())
	l.Add(c.Cluster != "", "cluster", c.Cluster, ClusterForms)
	l.Add(len(c.Policies) > 0, "policies", "none", "one or more of "+strings.Join(heuristic.Orders(), ", "))
	admission := c.Admission == "" || slices.Contains(Admissions(), c.Admission)
	l.Add(admission, "admission", c.Admission, strings.Join(Admissions(), " or "))
	for i, p := range c.Policies {
		order, own, has := strings.Cut(p, "+")
		ok := slices.Contains(heuristic.Orders(), order) && (!has || slices.Contains(Admissions(), own))
		want := "one of " + strings.Join(heuristic.Orders(), ", ") + ", with +strict or +skip after it where wanted"
		if near := nearest.Name(order, heuristic.Orders()); near != "" && near != order {
			want += "; did you mean " + near + "?"
		}
		l.Add(ok, fmt.Sprintf("policies[%d]", i), p, want)
	}
	// The rest is one heuristic's configuration; its own order and admission are right here.
	h := heuristic.DefaultConfig()
	h.Placement, h.Estimates = c.Placement, c.Estimates
	l.Join("", h.Validate())
	s := sim.Config{Comm: c.Comm, Restart: c.Restart, Horizon: c.Horizon}
	l.Join("", s.Validate())
	l.Add(c.Warmup >= 0, "warmup", c.Warmup, "a number of jobs, 0 or more")
	l.Add(c.Tail >= 0, "tail", c.Tail, "a number of jobs, 0 or more")
	return l.Err()
}

// Admissions are what can happen when the first in line does not fit.
func Admissions() []string { return []string{"strict", "skip"} }

// heuristic is the scheduler that the policy called name stands for.
func (c *SimConfig) heuristic(name string) heuristic.Config {
	h := heuristic.DefaultConfig()
	order, own, _ := strings.Cut(name, "+")
	h.Order, h.Admission = order, own
	if own == "" {
		h.Admission = c.Admission
	}
	if h.Admission == "" {
		_, h.Admission, _ = strings.Cut(h.Name(), "+") // the order's own, by its name
	}
	h.Placement, h.Estimates, h.Seed = c.Placement, c.Estimates, c.Seed
	return h
}

// SimHooks is what a simulation needs from outside.
type SimHooks struct {
	Now    func() time.Time // the clock that wall_s is measured by; nil = wall_s stays 0
	Events io.Writer        // every event as a JSON line, for one policy only; nil = none
}

// SimReport is what a simulation found.
type SimReport struct {
	Runs  []SimRun // in the order of the policies
	Info  Info     // of the workload
	Notes []string // for people, to be shown beside the result: what was left out, what did not finish
}

// SimRun is one policy's result. Its JSON form is a published document: fields keep their names and order.
type SimRun struct {
	Policy    string          `json:"policy"`
	Admission string          `json:"admission"`
	Placement string          `json:"placement"`
	Backfill  string          `json:"backfill"`
	Estimates string          `json:"estimates"`
	Trace     SimTrace        `json:"trace"`
	Cluster   SimCluster      `json:"cluster"`
	Metrics   metrics.Summary `json:"metrics"`
	Events    int             `json:"events"`
	WallS     float64         `json:"wall_s"`
}

// SimTrace is the workload of a run.
type SimTrace struct {
	File    string `json:"file"`
	Format  string `json:"format"`
	Jobs    int    `json:"jobs"`    // those refused included
	Refused int    `json:"refused"` // can never fit the cluster, and were left out
}

// SimCluster is the cluster of a run.
type SimCluster struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	GPUs  int    `json:"gpus"`
}

// MarshalJSON gives the document of one run, or {"runs": […]} for several.
func (r *SimReport) MarshalJSON() ([]byte, error) {
	if len(r.Runs) == 1 {
		return marshalJSON(r.Runs[0])
	}
	return marshalJSON(struct {
		Runs []SimRun `json:"runs"`
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
// cfg, in its files and in what they say together, such as jobs that can never fit the cluster, are
// *InputErrors. ctx ends a run between two events.
func Simulate(ctx context.Context, cfg SimConfig, hooks SimHooks) (*SimReport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &InputError{err}
	}
	if hooks.Events != nil && len(cfg.Policies) > 1 {
		return nil, mistake("events can be written for one policy at a time, not for %s", strings.Join(cfg.Policies, ","))
	}
	spec, err := ClusterSpec(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	c, err := cluster.New(spec)
	if err != nil {
		return nil, &InputError{err}
	}
	all, info, err := loadTrace(ctx, cfg.Trace)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	report := &SimReport{Info: info}
	jobs, never := fitting(c, all)
	if never.count > 0 {
		if !cfg.DropRefused || len(jobs) == 0 {
			return nil, never.mistake(len(all), spec.Name, c)
		}
		report.note("%d of %s left out because cluster %s can never hold them: %s", never.count, plural(len(all), "job", "jobs"), spec.Name,
			listIDs(never.ids, never.count))
	}
	if n := len(jobs); cfg.Warmup+cfg.Tail >= n {
		return nil, mistake("warmup %d and tail %d leave none of the %s to count; want less than %d together", cfg.Warmup, cfg.Tail, plural(n, "job", "jobs"), n)
	}
	sc := sim.Config{Comm: cfg.Comm, Restart: cfg.Restart}
	if cfg.Horizon > 0 {
		sc.Horizon = jobs[0].Submit + cfg.Horizon
	}
	s, err := sim.New(sc, spec)
	if err != nil {
		return nil, &InputError{err}
	}
	for _, policy := range cfg.Policies {
		h := cfg.heuristic(policy)
		run := SimRun{
			Policy: h.Order, Admission: h.Admission, Placement: h.Placement, Backfill: "none", Estimates: h.Estimates,
			Trace:   SimTrace{File: info.File, Format: info.Format, Jobs: len(all), Refused: never.count},
			Cluster: SimCluster{Name: spec.Name, Nodes: c.Nodes(), GPUs: c.GPUs()},
		}
		if err := report.run(ctx, &run, s, h, jobs, &cfg, hooks); err != nil {
			return nil, err
		}
		report.Runs = append(report.Runs, run)
	}
	return report, nil
}

func (r *SimReport) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// run simulates one policy and fills out.
func (r *SimReport) run(ctx context.Context, out *SimRun, s *sim.Simulator, h heuristic.Config, jobs []traces.Job, cfg *SimConfig, hooks SimHooks) error {
	sch, err := heuristic.New(h)
	if err != nil {
		return &InputError{err}
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		return &InputError{err}
	}
	if h.Estimates == "trace" && heuristic.Estimating(h.Order) {
		if n, first := withoutEstimate(jobs); n > 0 {
			return mistake("policy %s ranks by estimated run time, and %d of %s in %s have none, the first is %s; want estimates exact or noisy:SIGMA",
				h.Name(), n, plural(len(jobs), "job", "jobs"), r.Info.File, first)
		}
	}
	var counted metrics.Collector
	observers := []sim.Observer{&counted}
	var events *eventLog
	if hooks.Events != nil {
		events = newEventLog(hooks.Events)
		observers = append(observers, events)
	}
	var begin time.Time
	if hooks.Now != nil {
		begin = hooks.Now()
	}
	if err := sim.Run(ctx, s, sch, observers...); err != nil {
		return fmt.Errorf("policy %s: %w", h.Name(), err)
	}
	if hooks.Now != nil {
		out.WallS = hooks.Now().Sub(begin).Seconds()
	}
	if events != nil {
		if err := events.flush(); err != nil {
			return err
		}
	}
	out.Metrics = counted.Summary(cfg.Warmup, cfg.Tail)
	out.Events = counted.Events()
	r.unfinished(h.Name(), &counted, jobs, s.View(), cfg)
	return nil
}

// withoutEstimate counts the jobs that give no estimate and names the first.
func withoutEstimate(jobs []traces.Job) (n int, first string) {
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

// unfinished notes what the horizon cut off.
func (r *SimReport) unfinished(policy string, c *metrics.Collector, jobs []traces.Job, v *sim.View, cfg *SimConfig) {
	var left []int
	for j := range c.Jobs() {
		if j.Finish < 0 {
			left = append(left, int(j.Pos))
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		ids := make([]string, 0, namedJobs)
		for _, pos := range left[:min(namedJobs, len(left))] {
			ids = append(ids, jobs[pos].ID)
		}
		r.note("%s: %s unfinished at the horizon of %v: %s", policy, plural(len(left), "job", "jobs"), cfg.Horizon, listIDs(ids, len(left)))
	}
	if n := len(jobs) - v.Arrived(); n > 0 {
		r.note("%s: %s submitted after the horizon of %v and not simulated", policy, plural(n, "job is", "jobs are"), cfg.Horizon)
	}
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
func fitting(c *cluster.Cluster, jobs []traces.Job) ([]traces.Job, refusal) {
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
func (r *refusal) mistake(of int, name string, c *cluster.Cluster) error {
	var why []string
	if r.largest > c.GPUs() {
		why = append(why, fmt.Sprintf("the largest asks for %s", plural(r.largest, "GPU", "GPUs")))
	} else if r.noGPU < r.count {
		why = append(why, "there is never enough of the GPU types, cores or memory they ask for")
	}
	if r.noGPU > 0 {
		why = append(why, fmt.Sprintf("%s for no GPU", plural(r.noGPU, "asks", "ask")))
	}
	return mistake("%d of %s can never fit cluster %s (%s): %s; %s; want a cluster that holds them, or --drop-refused to run without them",
		r.count, plural(of, "job", "jobs"), name, plural(c.GPUs(), "GPU", "GPUs"), listIDs(r.ids, r.count), strings.Join(why, ", "))
}
