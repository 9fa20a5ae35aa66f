package sim_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

func stretch(id string, submit, work time.Duration, gpus, low, high int) traces.Job {
	j := job(id, submit, work, gpus)
	j.MinGPUs, j.MaxGPUs = low, high
	return j
}

// On paper: 12 s of work on two GPUs. After 3 s the gang gets four and runs at rate 2: the remaining 9 s take 4.5 s,
// until 7.5 s. It has held 2·3 s + 4·4.5 s of GPUs.
func TestResizeByHand(t *testing.T) {
	for _, spec := range []string{"1x4", "pool:4"} {
		s := start(t, sim.DefaultConfig(), short(t, spec),
			[]traces.Job{stretch("A", 0, 12*second, 2, 1, 4), job("B", 3*second, second, 1)})
		v := s.View()
		place := func(n int) []cluster.GPU {
			if spec == "pool:4" {
				return nil
			}
			return []cluster.GPU{3, 2, 1, 0}[:n]
		}
		advance(t, s)
		apply(t, s, on(0, place(2)...))
		advance(t, s)
		apply(t, s, sim.Decision{Op: sim.ResizeJob, Job: 0, GPUs: place(4), N: 4})
		if v.Rate(0) != 2 || v.Request(0).GPUs != 4 || v.Asked(0) != 2 || v.Resizes(0) != 1 || v.Cluster().Free() != 0 ||
			v.Started(0) != 0 {
			t.Errorf("%s: rate %v, %d GPUs, asked for %d, started at %v", spec, v.Rate(0), v.Request(0).GPUs, v.Asked(0),
				v.Started(0))
		}
		p := advance(t, s)
		want := "7.5s: resize A[3 2 1 0]@3s, finish A[3 2 1 0]"
		if spec == "pool:4" {
			want = "7.5s: resize A@3s, finish A"
		}
		if got := text(v, p); got != want || p.Events[0].N != 4 {
			t.Errorf("%s: %s, %d GPUs", spec, got, p.Events[0].N)
		}
		if v.GPUTime(0) != 24e9 || v.Ran(0) != 7500*ms || v.Request(0).GPUs != 2 {
			t.Errorf("%s: held %v GPU-ns, ran %v, wants %d GPUs", spec, v.GPUTime(0), v.Ran(0), v.Request(0).GPUs)
		}
	}
}

// A model's scaling gives the rate at other sizes: with throughputs of 2 on one GPU and 5 on four, three GPUs give 4,
// and two, as asked for, give 3.
func TestElasticGangsScaleAsTheirModel(t *testing.T) {
	j := stretch("A", 0, 12*second, 2, 1, 4)
	j.Profile = models[2]
	s := start(t, sim.DefaultConfig(), short(t, "1x4"), []traces.Job{j})
	v := s.View()
	advance(t, s)
	apply(t, s, on(0, 0, 1, 2)) // larger than asked for
	if v.Rate(0) != 4.0/3 || v.Request(0).GPUs != 3 {
		t.Errorf("on 3 GPUs: rate %v", v.Rate(0))
	}
	if got := v.Factor(0, []cluster.GPU{3}); got != 2.0/3 {
		t.Errorf("on 1 GPU: rate %v", got)
	}
	apply(t, s, sim.Decision{Until: 6 * second})
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: 0})
	if v.Request(0).GPUs != 2 || v.GPUTime(0) != 18e9 {
		t.Errorf("stopped it wants %d GPUs and has held %v", v.Request(0).GPUs, v.GPUTime(0))
	}
	apply(t, s, sim.Decision{Until: 7 * second})
	advance(t, s)
	apply(t, s, on(0, 0, 1))
	if p := advance(t, s); p.Now != 11*second || v.GPUTime(0) != 26e9 {
		t.Errorf("A finishes at %v and has held %v, want 11s and 26 GPU-s", p.Now, v.GPUTime(0))
	}
}

// A model's own speeds take precedence over the cluster's.
func TestModelsHaveSpeedsOfTheirOwn(t *testing.T) {
	spec := cluster.Spec{Speeds: map[string]float64{"v100": 2, "k80": 0.5}, Racks: []cluster.RackSpec{{
		Nodes: []cluster.NodeSpec{{GPUs: 2, GPUType: "v100"}, {GPUs: 2, GPUType: "k80"}},
	}}}
	a, b, c := job("A", 0, second, 2), job("B", 0, second, 2), job("C", 0, second, 2)
	// 3 on a v100, unknown on a k80
	a.Profile = models[1]
	// an exact match of the name comes first
	c.Profile = &traces.Profile{Speeds: map[string]float64{"V100": 5, "K80": 4, "k80": 0.25}}
	s := start(t, sim.DefaultConfig(), spec, []traces.Job{a, b, c})
	advance(t, s)
	v := s.View()
	for _, c := range []struct {
		gpus    []cluster.GPU
		a, b, c float64
	}{{[]cluster.GPU{0, 1}, 3, 2, 5}, {[]cluster.GPU{0, 2}, 0.5, 0.5, 0.25}} {
		if x, y, z := v.Factor(0, c.gpus), v.Factor(1, c.gpus), v.Factor(2, c.gpus); x != c.a || y != c.b || z != c.c {
			t.Errorf("on %v: %v, %v and %v, want %v, %v and %v", c.gpus, x, y, z, c.a, c.b, c.c)
		}
	}
}

// A moves from two nodes onto one, and keeps one of its GPUs. It loses nothing, but pays for the stop and the start:
// at 5 s it has 6 s of its 10 left at a rate of 0.8 (of 0.8/1.05 before), and continues at 8 s.
func TestMigrateByHand(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Comm, cfg.Overhead, cfg.Checkpoint, cfg.Restart = "tree", sim.Overhead{Start: second, StopPerGPU: second / 2},
		100*second, 50*second
	s := start(t, cfg, short(t, "2x2"), []traces.Job{job("A", 0, 10*second, 2), job("B", 5250*ms, second, 1)})
	v := s.View()
	advance(t, s)
	apply(t, s, on(0, 0, 2))
	advance(t, s)
	// 4.25 s at 0.8/1.05 = 4.25/1.3125
	apply(t, s, sim.Decision{Op: sim.MigrateJob, Job: 0, GPUs: []cluster.GPU{1, 0}})
	left := 10e9 - 4.25e9*(0.8/1.05)
	if v.Rate(0) != 1 || v.Left(0)-left > 1e-3 || left-v.Left(0) > 1e-3 || v.Migrations(0) != 1 || v.Lost(0) != 0 ||
		v.Preemptions(0) != 0 {
		t.Errorf("rate %v, %v left, lost %v", v.Rate(0), v.Left(0), v.Lost(0))
	}
	// 5.25 s + 1 s to stop + 1 s to start
	if got, want := v.Finished(0), 7250*ms+time.Duration(left)+1; got != want {
		t.Errorf("finishes at %v, want %v", got, want)
	}
	if err := s.Apply(&sim.Decision{Op: sim.MigrateJob, Job: 0, GPUs: []cluster.GPU{2, 3}}); !errors.Is(err,
		sim.ErrDecision) {
		t.Errorf("moved twice: %v", err)
	}
	apply(t, s, on(1, 2)) // A's old GPU
	p := advance(t, s)
	if got := text(v, p); got != "7.25s: migrate A[1 0]@5.25s, start B[2]@5.25s, finish B[2]" {
		t.Error(got)
	}
	if v.GPUTime(0) != 14.5e9 || v.Ran(0) != 7250*ms {
		t.Errorf("held %v, ran %v", v.GPUTime(0), v.Ran(0))
	}
}

// An impossible decision changes nothing.
func TestImpossibleMoves(t *testing.T) {
	jobs := []traces.Job{job("A", 0, 100*second, 2), stretch("E", 0, 100*second, 2, 2, 3), job("W", 0, second, 1)}
	s := start(t, sim.DefaultConfig(), short(t, "2x3"), jobs)
	advance(t, s)
	apply(t, s, on(0, 0, 1))
	apply(t, s, on(1, 2, 3))
	apply(t, s, sim.Decision{Until: second})
	advance(t, s)
	before := s.AppendSnapshot(nil)
	for name, c := range map[string]struct {
		d    sim.Decision
		want error
	}{
		"move to a taken GPU": {sim.Decision{Op: sim.MigrateJob, Job: 0, GPUs: []cluster.GPU{1, 2}},
			cluster.ErrNoCapacity},
		"move to fewer":         {sim.Decision{Op: sim.MigrateJob, Job: 0, GPUs: []cluster.GPU{4}}, nil},
		"move to more":          {sim.Decision{Op: sim.MigrateJob, Job: 1, GPUs: []cluster.GPU{2, 3, 4}}, nil},
		"move to one GPU twice": {sim.Decision{Op: sim.MigrateJob, Job: 0, GPUs: []cluster.GPU{4, 4}}, nil},
		"move what waits":       {sim.Decision{Op: sim.MigrateJob, Job: 2, GPUs: []cluster.GPU{4}}, sim.ErrDecision},
		"move nobody":           {sim.Decision{Op: sim.MigrateJob, Job: 9, GPUs: []cluster.GPU{4}}, sim.ErrDecision},
		"resize what is not elastic": {sim.Decision{Op: sim.ResizeJob, Job: 0, GPUs: []cluster.GPU{0, 1, 4}},
			sim.ErrDecision},
		"too small": {sim.Decision{Op: sim.ResizeJob, Job: 1, GPUs: []cluster.GPU{2}}, sim.ErrDecision},
		"too large": {sim.Decision{Op: sim.ResizeJob, Job: 1, GPUs: []cluster.GPU{2, 3, 4, 5}},
			sim.ErrDecision},
		"nothing":         {sim.Decision{Op: sim.ResizeJob, Job: 1}, sim.ErrDecision},
		"the size it has": {sim.Decision{Op: sim.ResizeJob, Job: 1, GPUs: []cluster.GPU{4, 5}}, sim.ErrDecision},
		"resize on a taken GPU": {sim.Decision{Op: sim.ResizeJob, Job: 1, GPUs: []cluster.GPU{0, 4, 5}},
			cluster.ErrNoCapacity},
		"start what is not elastic": {sim.Decision{Op: sim.StartJob, Job: 2, GPUs: []cluster.GPU{4, 5}}, sim.ErrDecision},
		"resize what waits":         {sim.Decision{Op: sim.ResizeJob, Job: 2, GPUs: []cluster.GPU{4, 5}}, sim.ErrDecision},
	} {
		if err := s.Apply(&c.d); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if err := s.CheckInvariants(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !bytes.Equal(before, s.AppendSnapshot(nil)) {
		t.Error("refused decisions changed the run")
	}
	counter := start(t, sim.DefaultConfig(), short(t, "pool:3"), jobs)
	advance(t, counter)
	apply(t, counter, on(0))
	apply(t, counter, sim.Decision{Until: second})
	advance(t, counter)
	if err := counter.Apply(&sim.Decision{Op: sim.MigrateJob, Job: 0}); !errors.Is(err, sim.ErrDecision) {
		t.Errorf("move on a counter: %v", err)
	}
	if err := counter.Apply(&sim.Decision{Op: sim.StartJob, Job: 1, N: 3}); !errors.Is(err, cluster.ErrNoCapacity) {
		t.Errorf("three GPUs where one is free: %v", err)
	}
}
