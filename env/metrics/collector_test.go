package metrics_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/metrics"
	"clustergym/env/sim"
	"clustergym/traces"
)

// script plays decisions by time: at each point those written for it.
type script map[time.Duration][]sim.Decision

func (script) Reset(*sim.View) {}

func (s script) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	if todo := s[v.Now()]; len(todo) > 0 {
		*d = todo[0]
		s[v.Now()] = todo[1:]
	}
	return nil
}

func observe(t *testing.T, cfg sim.Config, jobs []traces.Job, s script, c *metrics.Collector) {
	t.Helper()
	m, err := sim.New(cfg, cluster.Spec{Pool: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(context.Background(), m, s, c); err != nil {
		t.Fatal(err)
	}
}

func job(submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{Submit: submit * second, Work: work * second, GPUs: gpus, GPUMilli: 1000}
}

// A runs 0–10; B starts at 5, is stopped at 10 and goes on at 12; C never starts before the horizon of 30.
func example() ([]traces.Job, script) {
	return []traces.Job{job(0, 10, 1), job(5, 8, 2), job(12, 100, 4)}, script{
		0:           {{Op: sim.StartJob, Job: 0}},
		5 * second:  {{Op: sim.StartJob, Job: 1}},
		10 * second: {{Op: sim.PreemptJob, Job: 1}},
		12 * second: {{Op: sim.StartJob, Job: 1}},
		15 * second: {{Op: sim.Wait, Until: 100 * second}},
	}
}

func TestCollectorFollowsEveryJob(t *testing.T) {
	jobs, s := example()
	var c metrics.Collector
	observe(t, sim.Config{Comm: "none", Horizon: 30 * second}, jobs, s, &c)
	want := []metrics.Job{
		{Pos: 0, GPUs: 1, Milli: 1000, Finish: 10 * second, Run: 10 * second, Work: 10 * second},
		{Pos: 1, GPUs: 2, Milli: 1000, Submit: 5 * second, First: 5 * second, Finish: 15 * second, Run: 8 * second, Work: 8 * second, Preemptions: 1},
		{Pos: 2, GPUs: 4, Milli: 1000, Submit: 12 * second, First: -1, Finish: -1},
	}
	if got := fmt.Sprint(c.Jobs()); got != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if n := c.Events(); n != 9 { // 3 submits, 3 starts, a stop, 2 finishes
		t.Errorf("%d events", n)
	}
	sum := c.Summary(0, 0)
	if sum.Finished != 2 || sum.Unfinished != 1 || sum.Makespan != 30 || sum.Wait.Max != 2 || sum.Preemptions != 1 {
		t.Errorf("%+v", sum)
	}

	// Positions: the first is warm-up, the last is tail.
	if s := c.Summary(1, 0); s.Finished != 1 || s.JCT.Max != 10 {
		t.Errorf("without warm-up %+v", s)
	}
	if s := c.Summary(0, 1); s.Finished != 2 || s.Unfinished != 0 || s.Makespan != 15 {
		t.Errorf("without tail %+v", s)
	}
	if s := c.Summary(2, 2); s != (metrics.Summary{}) {
		t.Errorf("nothing is left: %+v", s)
	}
	if len(c.Jobs()) != 3 {
		t.Error("a summary changes what was gathered")
	}

	c.Reset()
	if len(c.Jobs()) != 0 || c.Events() != 0 {
		t.Error("Reset keeps jobs")
	}
}

// An unfinished job that ran counts up to the end: its time on GPUs, and the work it has done.
func TestCutOffWhileRunning(t *testing.T) {
	var c metrics.Collector
	observe(t, sim.Config{Comm: "none", Horizon: 30 * second}, []traces.Job{job(0, 100, 4)}, script{0: {{Op: sim.StartJob}}}, &c)
	if got := c.Jobs()[0]; got.Finish != -1 || got.Run != 30*second || got.Work != 30*second {
		t.Errorf("%+v", got)
	}
	if s := c.Summary(0, 0); s.Utilization != 1 || s.Effective != 1 {
		t.Errorf("%+v", s)
	}
}

func TestKeepLeavesJobsOut(t *testing.T) {
	jobs, s := example()
	c := metrics.Collector{Keep: func(pos int) bool { return pos == 1 }}
	observe(t, sim.Config{Comm: "none", Horizon: 30 * second}, jobs, s, &c)
	if len(c.Jobs()) != 1 || c.Jobs()[0].Pos != 1 {
		t.Errorf("%+v", c.Jobs())
	}
}

func BenchmarkSummarize(b *testing.B) {
	var jobs []metrics.Job
	for i := range 10_000 {
		at := time.Duration(i * 7919 % 10_000)
		jobs = append(jobs, done(i, 0, at/2, at, at/2, at/3, 1))
	}
	b.ReportAllocs()
	for b.Loop() {
		metrics.Summarize(jobs, 256, 0)
	}
}
