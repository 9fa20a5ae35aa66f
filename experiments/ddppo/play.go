package ddppo

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"clustergym/agents"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/experiments/study"
	"clustergym/internal/ordinary"
	"clustergym/lab/predictors"
	rl "clustergym/peer/rlscheduler"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Policies that are no rules.
const (
	agentPolicy = "agent" // followed by its number of replicas
	tunedPolicy = "tuned key"
)

// rungs are what policies know of run times: predictions from jobs that have ended and from what users ask for, or the
// run times.
var rungs = []string{predicted, known}

const predicted, known = "history", "exact"

// rule is a scheduler of the simulator.
type rule struct{ name, policy string }

// rules are the rivals. The first six pick a job and hold it while jobs that end before it can start are back-filled,
// which is the machine of the agent; the others are proper EASY back-filling, and none.
var rules = []rule{
	{"FCFS", "fifo+commit+easy"}, {"SJF", "sjf+commit+easy"}, {"F1", "f1+commit+easy"}, {"F2", "f2+commit+easy"},
	{"F3", "f3+commit+easy"}, {"F4", "f4+commit+easy"},
	{"EASY", "fifo+strict+easy"}, {"SJF, EASY", "sjf+strict+easy"}, {"FCFS alone", "fifo+strict"},
}

func (r *rule) scheduler(rung string) (schedulers.Policy, error) {
	c, err := schedulers.Parse(r.policy)
	if err != nil {
		return nil, err
	}
	c.Placement, c.Estimates = "first-fit", sim.MustEstimates(rung)
	return schedulers.New(c)
}

// sums are over jobs, times in seconds.
type sums struct{ jobs, bsld, wait, jct float64 }

// measure adds up the jobs that start, by the week of their submit. Nothing stops or slows a job, so its end is known.
type measure struct {
	from  time.Duration // where the first week begins; jobs before it do not count
	weeks []sums

	started int
	every   int                                // look after so many jobs
	look    func(started int, heapMiB float64) // nil = never
}

// Reset implements what environments do when an episode begins.
func (m *measure) Reset() { clear(m.weeks); m.started = 0 }

// Observe implements sim.Observer.
func (m *measure) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		if e.Kind != sim.Start {
			continue
		}
		if m.started++; m.look != nil && m.started%m.every == 0 {
			m.look(m.started, heap())
		}
		j := v.Trace(e.Job)
		if j.Submit < m.from {
			continue
		}
		at := 0
		if len(m.weeks) > 1 {
			at = min(int((j.Submit-m.from)/week), len(m.weeks)-1)
		}
		wait, run := (e.At - j.Submit).Seconds(), j.Work.Seconds()
		s := &m.weeks[at]
		s.jobs++
		s.wait += wait
		s.jct += wait + run
		s.bsld += max(1, (wait+run)/max(run, 10))
	}
	return nil
}

// heap returns the memory of the heap in MiB, with what is not collected yet.
func heap() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// rows returns the figures of weeks.
func (m *measure) rows(labels map[string]string) (rows []study.Row) {
	for i, s := range m.weeks {
		row := study.RowOf("held", study.With(labels, "week", i))
		rows = append(rows, row("bsld", s.bsld/s.jobs), row("wait_h", s.wait/s.jobs/3600), row("jct_h", s.jct/s.jobs/3600),
			row("jobs", s.jobs))
	}
	return slices.DeleteFunc(rows, func(r study.Row) bool { return math.IsNaN(r.Value) })
}

// playRule plays a rule on a stream.
func playRule(ctx context.Context, r *rule, rung string, procs int, jobs traces.Stream, m *measure) error {
	maker, err := predictors.Maker(sim.MustEstimates(rung), nil)
	if err != nil {
		return err
	}
	sch, err := r.scheduler(rung)
	if err != nil {
		return err
	}
	s, err := sim.New(sim.Config{Comm: "none", Predictor: maker}, machine(procs))
	if err != nil {
		return err
	}
	if err := s.Reset(jobs); err != nil {
		return err
	}
	return sim.Run(ctx, s, sch, m)
}

// unseen are windows whose predictors have seen nothing, for streams.
type unseen struct{ *index }

// Predictor implements sched.Foresight.
func (unseen) Predictor(est sim.Estimates) (predict.Maker, error) { return predictors.Maker(est, nil) }

// stage returns an environment that plays streams.
func (s *settings) stage(x *index, rung string) (*queuerank.Env, error) {
	c := s.config(rung)
	c.Reward = "minus"
	return queuerank.New(c, machine(x.procs), unseen{x}, x.maxima, traces.Test)
}

// network returns a chooser by a trained network.
func (s *settings) network(dir string, e *queuerank.Env) (queuerank.Chooser, error) {
	f, err := ordinary.Open(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // open for reading only
	p, err := ppo.NewPolicy(s.PPO, e.Spec(), f)
	if err != nil {
		return nil, err
	}
	return greedy(p, e.Spec()), nil
}

// greedy returns a chooser by a policy.
func greedy(p agents.Policy, spec env.Spec) queuerank.Chooser {
	b, a := env.NewBatch(spec, 1), env.NewActions(spec, 1)
	return func(ts *env.TimeStep) (int32, error) {
		b.Obs, b.Mask, b.Kind[0] = ts.Obs, ts.Mask, ts.Kind
		err := p.Act(context.Background(), b, a, nil)
		return a.Disc[0], err
	}
}

// byKey returns a chooser by the least key of the visible jobs; of equals, the oldest.
func byKey(e *queuerank.Env, key *rl.Linear) queuerank.Chooser {
	var j rl.Job
	return func(*env.TimeStep) (int32, error) {
		best, least := 0, 0.0
		for i, n := range e.Slots() {
			t := e.View().Trace(n)
			j.Request, j.Procs, j.Submit = int64(e.Estimate(n)/time.Second), int32(t.GPUs), int64(t.Submit/time.Second)
			if k := key.Key(&j); i == 0 || k < least {
				best, least = i, k
			}
		}
		return int32(best), nil
	}
}

// heldOut plays the held-out weeks with a rule or a chooser.
func (s *settings) heldOut(ctx context.Context, x *index, rung string, labels map[string]string, r *rule,
	choose func(e *queuerank.Env) (queuerank.Chooser, error)) ([]study.Row, error) {
	jobs := x.stream(x.warm)
	var first [1]traces.Job
	if err := x.read(first[:], x.warm); err != nil {
		return nil, err
	}
	m := &measure{from: x.held - first[0].Submit, weeks: make([]sums, s.Held)}
	labels = study.With(labels, "run times", rung)
	if r != nil {
		err := playRule(ctx, r, rung, x.procs, jobs, m)
		return m.rows(labels), err
	}
	e, err := s.stage(x, rung)
	if err != nil {
		return nil, err
	}
	by, err := choose(e)
	if err != nil {
		return nil, err
	}
	e.Watch(m)
	_, err = e.Stream(ctx, jobs, env.NewTimeStep(e.Spec()), by)
	return m.rows(labels), err
}

// pass plays the whole log from its file, with a rule or, if there is none, with the network in a folder, and measures
// time and memory.
func (s *settings) pass(ctx context.Context, b *study.Bench, x *index, path string, r *rule, name,
	dir string) ([]study.Row, error) {
	l, err := openLog(ctx, path)
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // open for reading only
	labels := map[string]string{"policy": name}
	var rows []study.Row
	add := func(table string, labels map[string]string, metric string, v float64) {
		rows = append(rows, study.Row{Table: table, Labels: labels, Metric: metric, Value: v})
	}
	peak := 0.0
	runtime.GC()
	m := &measure{weeks: make([]sums, 1), every: max(1, x.jobs/400)}
	m.look = func(started int, mib float64) {
		peak = max(peak, mib)
		b.Progress(int64(started), int64(x.jobs))
		if k := started / m.every; k%80 == 0 {
			add("heap", study.With(labels, "read", k/4), "timing_mib", peak)
		}
	}
	begin := time.Now()
	if r != nil {
		err = playRule(ctx, r, predicted, x.procs, l, m)
	} else {
		var e *queuerank.Env
		if e, err = s.stage(x, predicted); err != nil {
			return nil, err
		}
		var choose queuerank.Chooser
		if choose, err = s.network(dir, e); err != nil {
			return nil, err
		}
		e.Watch(m)
		var all queuerank.Passed
		all, err = e.Stream(ctx, l, env.NewTimeStep(e.Spec()), choose)
		add("pass", labels, "choices", float64(all.Choices))
		add("pass", labels, "longest", float64(all.Longest))
	}
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	t := m.weeks[0]
	add("pass", labels, "jobs", t.jobs)
	add("pass", labels, "bsld", t.bsld/t.jobs)
	add("pass", labels, "wait_h", t.wait/t.jobs/3600)
	add("pass", labels, "timing_min", took.Minutes())
	add("pass", labels, "timing_jobs_s", t.jobs/took.Seconds())
	add("pass", labels, "timing_mib", peak)
	return rows, nil
}
