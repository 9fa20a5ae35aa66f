package steer_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/env/jobselect"
	"clustergym/lab/config"
	"clustergym/lab/workload"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// startTimes notes when jobs start, by id and position.
type startTimes struct{ at []time.Duration }

func (s *startTimes) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		for e.Job >= 0 && len(s.at) <= v.Pos(e.Job) {
			s.at = append(s.at, -1)
		}
		if e.Kind == sim.Start {
			s.at[v.Pos(e.Job)] = e.At
		}
	}
	return nil
}

// simulated plays jobs on a cluster.
func simulated(ctx context.Context, jobs []traces.Job, on string, sch sim.Scheduler,
	watch ...sim.Observer) ([]time.Duration, error) {
	spec, err := workload.ClusterSpec(on)
	if err != nil {
		return nil, err
	}
	s, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		return nil, err
	}
	var all traces.Slice
	all.Reset(jobs)
	if err := s.Reset(&all); err != nil {
		return nil, err
	}
	var seen startTimes
	err = sim.Run(ctx, s, sch, append(watch, &seen)...)
	return seen.at, err
}

// A rule whose environment follows a simulated cluster starts every job when the rule itself does that sees the
// simulation, also where two jobs have one name.
func TestAPolicyFollowsASimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []traces.Job
		for range rapid.IntRange(1, 60).Draw(t, "jobs") {
			jobs = append(jobs, traces.Job{ID: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id"), GPUMilli: 1000,
				GPUs:   rapid.IntRange(1, 8).Draw(t, "gpus"),
				Submit: time.Duration(rapid.IntRange(0, 600).Draw(t, "submit")) * time.Minute,
				Work:   time.Duration(rapid.IntRange(1, 300).Draw(t, "work")) * time.Minute})
		}
		slices.SortStableFunc(jobs, func(a, b traces.Job) int { return cmp.Compare(a.Submit, b.Submit) })
		name := rapid.SampledFrom([]string{"fifo+skip", "smallest+skip", "largest+strict"}).Draw(t, "rule")
		cfg := config.For(jobselect.ID)
		for _, kv := range []string{"env.estimates=none", "env.placement=best-fit"} {
			if err := cfg.Set(kv); err != nil {
				t.Fatal(err)
			}
		}
		spec, err := workload.ClusterSpec("2x8")
		if err != nil {
			t.Fatal(err)
		}
		p, err := steer.Open(&steer.Choice{Policy: name, Config: cfg}, mirror.Layout{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		follows, err := p.Simulated(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got, err := simulated(context.Background(), jobs, "2x8", follows, follows)
		if err != nil {
			t.Fatal(err)
		}
		h, err := schedulers.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		h.Placement = "best-fit"
		sch, err := schedulers.New(h)
		if err != nil {
			t.Fatal(err)
		}
		want, err := simulated(context.Background(), jobs, "2x8", sch)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: started at\n%v, want\n%v", err, got, want)
		}
	})
}

// Jobs without GPUs hold cores of which an environment knows nothing: a start for which none are left is left out and
// asked about again.
func TestASimulationHasCoresThatAPolicyDoesNotSee(t *testing.T) {
	jobs := []traces.Job{
		{ID: "cores", CPUMilli: 7000, Work: time.Hour},
		{ID: "gang", GPUs: 2, GPUMilli: 1000, CPUMilli: 2000, Submit: time.Minute, Work: time.Hour},
	}
	cfg := config.For(jobselect.ID)
	if err := cfg.Set("env.estimates=none"); err != nil {
		t.Fatal(err)
	}
	const on = "testdata/cores.yaml"
	spec, err := workload.ClusterSpec(on)
	if err != nil {
		t.Fatal(err)
	}
	p, err := steer.Open(&steer.Choice{Policy: "fifo+skip", Config: cfg}, mirror.Layout{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	follows, err := p.Simulated(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The job without GPUs is another scheduler's.
	got, err := simulated(t.Context(), jobs, on, beside{follows}, follows)
	if err != nil || !slices.Equal(got, []time.Duration{0, time.Hour}) {
		t.Errorf("%v: started at %v", err, got)
	}
}

// beside starts jobs without GPUs, and leaves the others to another scheduler.
type beside struct{ sim.Scheduler }

func (b beside) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	for _, j := range v.Waiting() {
		if v.Trace(j).GPUs == 0 {
			d.Op, d.Job, d.GPUs = sim.StartJob, j, append(d.GPUs[:0], cluster.Slot(0))
			return nil
		}
	}
	return b.Scheduler.Decide(v, p, d)
}
