package sim_test

import (
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// On paper, a gang of two: starting takes 3 s + 2·1 s, so it progresses from 5 s on. Stopped at 8 s, it has 7 s of its
// 10 s left. Started again at 10 s, it pays 2 s + 2·0.5 s for the stop and 5 s for the start, and ends at 25 s.
func TestOverheadsByHand(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Overhead = sim.Overhead{Start: 3 * second, StartPerGPU: second, Stop: 2 * second, StopPerGPU: second / 2}
	s := start(t, cfg, short(t, "1x2"), []traces.Job{job("A", 0, 10*second, 2), job("empty", 25*second, 0, 1)})
	v := s.View()
	step := func(want string) {
		t.Helper()
		if got := text(v, advance(t, s)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	step("0s: submit A")
	apply(t, s, on(0, 0, 1))
	if v.Finished(0) != 15*second {
		t.Errorf("A would finish at %v, want 15s", v.Finished(0))
	}
	apply(t, s, sim.Decision{Until: 4 * second})
	step("4s: start A[0 1]@0s, timer")
	if v.Left(0) != 10e9 || v.Ran(0) != 4*second || v.Rate(0) != 1 {
		t.Errorf("while it starts A has %v left, ran %v, rate %v", v.Left(0), v.Ran(0), v.Rate(0))
	}
	apply(t, s, sim.Decision{Until: 8 * second})
	step("8s: timer")
	apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: 0})
	if v.Left(0) != 7e9 || v.Cluster().Free() != 2 {
		t.Errorf("stopped, A has %v left; %d GPUs are free", v.Left(0), v.Cluster().Free())
	}
	apply(t, s, sim.Decision{Until: 10 * second})
	step("10s: preempt A[0 1]@8s, timer")
	apply(t, s, on(0, 0, 1))
	step("25s: start A[0 1]@10s, finish A[0 1], submit empty")
	if v.Ran(0) != 23*second || v.GPUTime(0) != 46e9 {
		t.Errorf("A ran %v and held %v GPU-ns", v.Ran(0), v.GPUTime(0))
	}
	apply(t, s, on(v.Waiting()[0], 1)) // it has no work, but it must start: 3 s + 1 s
	step("29s: start empty[1]@25s, finish empty[1]")
}

// A gang that is stopped while it starts has made no progress, and pays for both again.
func TestStoppedWhileItStarts(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Overhead, cfg.Checkpoint = sim.Overhead{Start: 5 * second, Stop: second}, second
	s := start(t, cfg, short(t, "pool:1"), []traces.Job{job("A", 0, 10*second, 1)})
	got := playScript(t, s, map[time.Duration][]sim.Decision{
		0: {on(0)}, 4 * second: {{Op: sim.PreemptJob, Job: 0}}, 6 * second: {on(0)}})
	if got["A"] != (6+1+5+10)*second || s.View().Lost(0) != 0 {
		t.Errorf("A finishes at %v, want 22s; lost %v", got["A"], s.View().Lost(0))
	}
}

// Checkpoints come every 4 s of progress. Stopped at 10 s, A returns to its state at 8 s: 2 s are lost, 12 s are left.
// Checkpoints are counted from the beginning of each stint: stopped again at 11 s + 3 s, before the first one, it
// loses these 3 s too.
func TestCheckpointsByHand(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Checkpoint = 4 * second
	s := start(t, cfg, short(t, "pool:2"), []traces.Job{job("A", 0, 20*second, 2)})
	v := s.View()
	got := playScript(t, s, map[time.Duration][]sim.Decision{
		0: {on(0)}, 10 * second: {{Op: sim.PreemptJob, Job: 0}}, 11 * second: {on(0)},
		14 * second: {{Op: sim.PreemptJob, Job: 0}}, 15 * second: {on(0)},
	})
	if got["A"] != 27*second || v.Lost(0) != 5*second || v.Ran(0) != 25*second {
		t.Errorf("A finishes at %v, lost %v, ran %v; want 27s, 5s, 25s", got["A"], v.Lost(0), v.Ran(0))
	}
	// A stop at the moment of a checkpoint loses nothing.
	s = start(t, cfg, short(t, "pool:2"), []traces.Job{job("A", 0, 20*second, 2)})
	got = playScript(t, s,
		map[time.Duration][]sim.Decision{0: {on(0)}, 8 * second: {{Op: sim.PreemptJob, Job: 0}}, 9 * second: {on(0)}})
	if v = s.View(); got["A"] != 21*second || v.Lost(0) != 0 {
		t.Errorf("A finishes at %v, lost %v; want 21s, 0s", got["A"], v.Lost(0))
	}
}

// Changes of rate between checkpoints do not move them. Alone A runs at 1/2; beside B, which starts at 3 s and stops
// at 5 s, at 1/4. By its checkpoint at 4 s it has done 1.5 s + 0.25 s of work; by 6 s it has done 2.5 s and loses 0.75
// s.
func TestCheckpointsWhileRatesChange(t *testing.T) {
	cfg := contended()
	cfg.Checkpoint = 4 * second
	s := start(t, cfg, short(t, "2x2"),
		[]traces.Job{modelled("A", 0, 10*second, 2), modelled("B", 3*second, 10*second, 2)})
	v := s.View()
	advance(t, s)
	apply(t, s, on(0, 0, 2))
	advance(t, s)
	apply(t, s, on(1, 1, 3))
	apply(t, s, sim.Decision{Until: 5 * second})
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: 1}) // after 2 s, before its first checkpoint
	if v.Lost(1) != second/2 || v.Left(1) != 10e9 {
		t.Errorf("B lost %v and has %v left", v.Lost(1), v.Left(1))
	}
	apply(t, s, sim.Decision{Until: 6 * second})
	advance(t, s)
	if v.Left(0) != 7.5e9 {
		t.Errorf("A has %v left, want 7.5 s", v.Left(0))
	}
	apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: 0})
	if v.Lost(0) != 750*ms || v.Left(0) != 8.25e9 {
		t.Errorf("A lost %v and has %v left, want 750ms and 8.25 s", v.Lost(0), v.Left(0))
	}
}

// Restart is work that remains to be done, even if the stint that it was added for is lost.
func TestRestartAndCheckpoints(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Checkpoint, cfg.Restart = 4*second, second
	s := start(t, cfg, short(t, "pool:1"), []traces.Job{job("A", 0, 6*second, 1)})
	v := s.View()
	got := playScript(t, s, map[time.Duration][]sim.Decision{
		0: {on(0)}, 5 * second: {{Op: sim.PreemptJob, Job: 0}}, 10 * second: {on(0)},
		11 * second: {{Op: sim.PreemptJob, Job: 0}}, 20 * second: {on(0)},
	})
	// 2 s left at the checkpoint of 4 s; + 1 s, of which the first attempt is lost; + 1 s.
	if got["A"] != 24*second || v.Lost(0) != 2*second {
		t.Errorf("A finishes at %v, lost %v; want 24s, 2s", got["A"], v.Lost(0))
	}
}

// X and Y share a GPU by halves and leave each other half their speed. From 2 s on, Y's 1 s takes 2 s, in which X does
// 1 s of its remaining 2 s; X ends at 5 s. Z is on the node, but on another GPU.
func TestInterferenceByHand(t *testing.T) {
	half := func(id string, submit, work time.Duration) traces.Job {
		return traces.Job{ID: id, Submit: submit, Work: work, GPUs: 1, GPUMilli: 500}
	}
	for scope, want := range map[string]map[string]time.Duration{
		"":    {"X": 5 * second, "Y": 4 * second, "Z": 3 * second},
		"gpu": {"X": 5 * second, "Y": 4 * second, "Z": 3 * second},
		// X beside Z does 1 s of its 4 s until 2 s. Then all three are on the node, at a quarter, until Y's 1 s is
		// done at 6 s. X then has 2 s left and Z 1 s; at a half, Z ends at 8 s, and X has 1 s left, alone.
		"node": {"X": 9 * second, "Y": 6 * second, "Z": 8 * second},
	} {
		cfg := sim.DefaultConfig()
		cfg.Interference, cfg.InterferenceScope = halves{}, scope
		s := start(t, cfg, short(t, "1x2"),
			[]traces.Job{half("X", 0, 4*second), half("Z", 0, 3*second), half("Y", 2*second, second)})
		got := playScript(t, s, map[time.Duration][]sim.Decision{0: {on(0, 0), on(1, 1)}, 2 * second: {on(2, 0)}})
		for id, at := range want {
			if got[id] != at {
				t.Errorf("scope %q: %s finishes at %v, want %v", scope, id, got[id], at)
			}
		}
	}
}

type halves struct{}

func (halves) Kept(_, _ *traces.Job) float64 { return 0.5 }

// A share outside (0, 1] is a bug of the program.
func TestInterferenceOutOfRangePanics(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Interference, cfg.InterferenceScope = twice{}, "node"
	s := start(t, cfg, short(t, "1x2"), []traces.Job{job("A", 0, second, 1), job("B", 0, second, 1)})
	advance(t, s)
	apply(t, s, on(0, 0))
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = s.Apply(&sim.Decision{Op: sim.StartJob, Job: 1, GPUs: []cluster.GPU{1}})
}

type twice struct{}

func (twice) Kept(_, _ *traces.Job) float64 { return 2 }
