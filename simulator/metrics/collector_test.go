package metrics_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// script plays the decisions listed for each point in time.
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

// A runs 0–10; B starts at 5, is stopped at 10 and continues at 12; C never starts before the horizon of 30.
func example() ([]traces.Job, script) {
	return []traces.Job{job(0, 10, 1), job(5, 8, 2), job(12, 100, 4)}, script{
		0:           {{Op: sim.StartJob, Job: 0}},
		5 * second:  {{Op: sim.StartJob, Job: 1}},
		10 * second: {{Op: sim.PreemptJob, Job: 1}},
		12 * second: {{Op: sim.StartJob, Job: 1}},
		15 * second: {{Op: sim.Wait, Until: 100 * second}},
	}
}

func all(c *metrics.Collector) (jobs []metrics.Job) {
	for j := range c.Jobs() {
		jobs = append(jobs, *j)
	}
	return jobs
}

func TestCollectorFollowsEveryJob(t *testing.T) {
	jobs, s := example()
	var c metrics.Collector
	observe(t, sim.Config{Comm: "none", Horizon: 30 * second}, jobs, s, &c)
	want := []metrics.Job{
		{Pos: 0, GPUs: 1, Milli: 1000, Finish: 10 * second, Run: 10 * second, Work: 10 * second, GPUTime: 10, Fairness: 1},
		{Pos: 1, GPUs: 2, Milli: 1000, Submit: 5 * second, First: 5 * second, Finish: 15 * second, Run: 8 * second,
			Work: 8 * second, GPUTime: 16,
			Fairness: 1.25, Preemptions: 1}, // 1.8 jobs on average, 2·1.8/4 < 1: 10 s instead of 8
		{Pos: 2, GPUs: 4, Milli: 1000, Submit: 12 * second, First: -1, Finish: -1},
	}
	if got := fmt.Sprint(all(&c)); got != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if n := c.Events(); n != 9 { // 3 submits, 3 starts, a stop, 2 finishes
		t.Errorf("%d events", n)
	}
	sum := c.Summary(0, 0)
	if sum.Finished != 2 || sum.Unfinished != 1 || sum.Makespan != 30 || sum.Wait.Max != 2 || sum.Preemptions != 1 {
		t.Errorf("%+v", sum)
	}

	// One job waits from 10 to 12 and one from 12 to 30.
	if q := sum.QueueLength; math.Abs(q.Mean-20./30) > 1e-15 || q.P50 != 1 || q.Max != 1 {
		t.Errorf("queue %+v", q)
	}

	// Positions: the first is warm-up, the last is tail.
	if s := c.Summary(1, 0); s.Finished != 1 || s.JCT.Max != 10 {
		t.Errorf("without warm-up %+v", s)
	}
	if s := c.Summary(0, 1); s.Finished != 2 || s.Unfinished != 0 || s.Makespan != 15 {
		t.Errorf("without tail %+v", s)
	}
	if s := c.Summary(2, 2); s.Finished+s.Unfinished != 0 || s.JCT != (metrics.Quantiles{}) {
		t.Errorf("nothing is left: %+v", s)
	}
	if c.Len() != 3 {
		t.Error("a summary changes what was gathered")
	}

	c.Reset()
	if c.Len() != 0 || c.Events() != 0 || c.Summary(0, 0) != (metrics.Summary{}) {
		t.Error("Reset keeps jobs")
	}
}

// An unfinished job that ran counts up to the end, both its time on GPUs and the work it has done.
func TestCutOffWhileRunning(t *testing.T) {
	var c metrics.Collector
	observe(t, sim.Config{Comm: "none", Horizon: 30 * second}, []traces.Job{job(0, 100, 4)},
		script{0: {{Op: sim.StartJob}}}, &c)
	if got := all(&c)[0]; got.Finish != -1 || got.Run != 30*second || got.Work != 30*second {
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
	if c.Len() != 1 || all(&c)[0].Pos != 1 {
		t.Errorf("%+v", all(&c))
	}
}

// Two nodes of two GPUs. From 0 to 4 one GPU of the first node is in use: 1 of the 3 free GPUs is on that node. From 4
// to 6 each node has one GPU in use: 2 of 2. From 6 to 10 the first node is full, the second idle: 0 of 2. Then
// nothing is in use.
func TestFragmentation(t *testing.T) {
	m, err := sim.New(sim.DefaultConfig(),
		cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	jobs := []traces.Job{job(0, 10, 1), job(4, 2, 1), job(6, 4, 1)}
	jobs[0].Deadline, jobs[1].Deadline = 9*second, 6*second
	jobs[2].GPUMilli = 500
	if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	at := func(g cluster.GPU) []cluster.GPU { return []cluster.GPU{g} }
	var c metrics.Collector
	if err := sim.Run(context.Background(), m, script{
		0:          {{Op: sim.StartJob, Job: 0, GPUs: at(0)}},
		4 * second: {{Op: sim.StartJob, Job: 1, GPUs: at(2)}},
		6 * second: {{Op: sim.StartJob, Job: 2, GPUs: at(1)}},
	}, &c); err != nil {
		t.Fatal(err)
	}
	s := c.Summary(0, 0)
	if want := (4*1./3 + 2*1) / 10; math.Abs(s.Fragmentation-want) > 1e-15 {
		t.Errorf("fragmentation %v, want %v", s.Fragmentation, want)
	}
	if want := (10. + 2 + 4*.5) / (4 * 10); math.Abs(s.Utilization-want) > 1e-15 {
		t.Errorf("utilisation %v, want %v", s.Utilization, want)
	}
	if s.Deadlines != 2 || s.DeadlineMisses != 1 {
		t.Errorf("%d of %d deadlines missed, want 1 of 2", s.DeadlineMisses, s.Deadlines)
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
