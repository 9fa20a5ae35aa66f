package schedulers_test

import (
	"slices"
	"strings"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Of orders with a memory, preemption or an eye on what is free no key of a single job exists.
func TestRankersAreOfOrdersThatRankSingleJobs(t *testing.T) {
	want := []string{
		"fifo", "sjf", "ljf", "lcfs", "smallest", "largest", "area", "qssf", "largest-area",
		"wfp3", "unicep", "f1", "f2", "f3", "f4", "multifactor", "wfp3-rlscheduler", "unicep-rlscheduler",
	}
	if got := schedulers.Ranking(); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, name := range []string{"srtf", "drf", "dally", "random", "lpf", "no such order"} {
		if _, err := schedulers.NewRanker(name, sim.MustEstimates("exact")); err == nil ||
			!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "want one of fifo, sjf") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The keys are the orders': a short job of many GPUs, a long one of few. Noise is drawn by seed.
func TestRankersRank(t *testing.T) {
	s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 8})
	if err != nil {
		t.Fatal(err)
	}
	jobs := []traces.Job{{ID: "a", Work: 100 * second, GPUs: 8, GPUMilli: 1000},
		{ID: "b", Work: 200 * second, GPUs: 2, GPUMilli: 1000}}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	for order, first := range map[string]sim.Job{"fifo": 0, "lcfs": 1, "sjf": 0, "ljf": 1, "smallest": 1, "area": 1,
		"largest-area": 0} {
		r, err := schedulers.NewRanker(order, sim.MustEstimates("exact"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Key(v, first) >= r.Key(v, 1-first) {
			t.Errorf("%s: job %d has key %v, the other %v", order, first, r.Key(v, first), r.Key(v, 1-first))
		}
	}
	r, err := schedulers.NewRanker("sjf", sim.MustEstimates("noisy:1"))
	if err != nil {
		t.Fatal(err)
	}
	before := r.Key(v, 0)
	if r.Reseed(7); r.Key(v, 0) == before {
		t.Errorf("another seed draws the same estimate %v", before)
	}
}
