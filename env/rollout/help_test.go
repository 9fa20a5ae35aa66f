package rollout_test

import (
	"fmt"
	"strings"
	"time"

	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/synth"
)

type fatal interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func generated(t fatal, n int, seed uint64) []traces.Job {
	t.Helper()
	c := synth.DefaultConfig()
	c.Jobs = n
	jobs, err := synth.Generate(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func spec(t fatal, name string) cluster.Spec {
	t.Helper()
	s, ok, err := cluster.Parse(name)
	if !ok || err != nil {
		t.Fatal(name, ok, err)
	}
	return s
}

// environment returns JobSelect-v1 over jobs, cut into windows of this length.
func environment(t fatal, jobs []traces.Job, estimates string, window int,
	change ...func(*jobselect.Config)) *sched.Env {
	t.Helper()
	cfg := jobselect.DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	cfg.Window, cfg.Warm, cfg.Estimates = window, window, sim.MustEstimates(estimates)
	cl := spec(t, "16x4")
	w, err := sched.Take(sched.Taken{MaxGPUs: cfg.MaxGPUs, Window: cfg.Window, Warm: cfg.Warm, Estimates: sim.MustEstimates(estimates), Forecast: cfg.Forecast}, cl, jobs)
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, cl, foreseen{w.Windows}, traces.Test)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// foreseen are windows with predictors that know what had ended before an episode.
type foreseen struct{ *traces.Windows }

func (f foreseen) Predictor(sim.Estimates) (predict.Maker, error) {
	return history.NewArchive(f.All()), nil
}

// none are predictors that know nothing of earlier runs.
func (foreseen) none() (predict.Maker, error) { return history.NewArchive(nil), nil }

func policy(t fatal, h schedulers.Config) sim.Scheduler {
	t.Helper()
	p, err := schedulers.New(h)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// log writes down what happens, in words that do not depend on numbers of jobs.
type log struct {
	strings.Builder
	jct  time.Duration
	done int
	from int
}

func (l *log) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		l.WriteString(fmt.Sprintf("%v %v", e.At, e.Kind))
		if e.Job >= 0 {
			l.WriteString(fmt.Sprintf(" %d %v", v.Pos(e.Job), e.GPUs))
			if e.Kind == sim.Finish && v.Pos(e.Job) >= l.from {
				l.jct += e.At - v.Trace(e.Job).Submit
				l.done++
			}
		}
		l.WriteByte('\n')
	}
	return nil
}

// discard looks at nothing.
type discard struct{}

func (discard) Observe(*sim.View, *sim.Point) error { return nil }

func (l *log) mean() time.Duration { return l.jct / time.Duration(max(1, l.done)) }

func base(order, admission, estimates string) schedulers.Config {
	c := schedulers.DefaultConfig()
	c.Order, c.Admission, c.Estimates, c.Placement = order, admission, sim.MustEstimates(estimates), "closest-b"
	return c
}

// scheduler returns rollout:ORDER+skip with futures of e's training part.
func scheduler(t fatal, cfg rollout.Config, e *sched.Env, h schedulers.Config, workers int) *rollout.Scheduler {
	t.Helper()
	src, err := rollout.RecordedOf(e)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rollout.New(rollout.Setup{Config: cfg, Source: src, Workers: workers}, h)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func small(budget int) rollout.Config {
	c := rollout.DefaultConfig()
	c.Budget.Rollouts, c.Ahead = budget, 24
	return c
}

// stoppable returns JobSelect-v1 where gangs that have run for five minutes can be stopped, for 30 s.
func stoppable(t fatal, jobs []traces.Job, estimates string, window int, change ...func(*jobselect.Config)) *sched.Env {
	t.Helper()
	return environment(t, jobs, estimates, window, append(change, func(c *jobselect.Config) {
		c.Preempt, c.Running, c.Images = true, 16, false
		c.MinRun, c.Checkpoint, c.Restart = 5*time.Minute, 10*time.Second, 20*time.Second
	})...)
}

// stopper returns rollout:ORDER@slots for an order that stops gangs, with futures of e's training part.
func stopper(t fatal, cfg rollout.Config, e *sched.Env, order string, workers int) *rollout.Stopper {
	t.Helper()
	rule, err := jobselect.NewRule(order, e)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rollout.NewStopper(rollout.Setup{Config: cfg, Workers: workers}, order, rule, e)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
