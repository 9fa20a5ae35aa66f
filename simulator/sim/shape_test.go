package sim_test

import (
	"errors"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// A job that says on how many nodes it runs starts on as many, with equal parts of its GPUs, or not at all.
func TestGangsStartInTheirShape(t *testing.T) {
	s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Racks: []cluster.RackSpec{
		{Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 4}}}}})
	if err != nil {
		t.Fatal(err)
	}
	jobs := []traces.Job{{ID: "j", Work: second, GPUs: 4, GPUMilli: 1000, Nodes: 2}}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, gpus := range [][]cluster.GPU{{0, 1, 2, 3}, {0, 1, 2, 4}, {0, 1, 4, 8}} {
		if err := s.Apply(&sim.Decision{Op: sim.StartJob, GPUs: gpus}); !errors.Is(err, sim.ErrDecision) {
			t.Errorf("on %v: %v", gpus, err)
		}
	}
	for _, gpus := range [][]cluster.GPU{{0, 1, 4}, {0, 1, 4, 99}, {0, 0, 4, 4}} {
		if err := s.Apply(&sim.Decision{Op: sim.StartJob, GPUs: gpus}); err == nil {
			t.Errorf("it starts on %v", gpus)
		}
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, GPUs: []cluster.GPU{4, 5, 10, 11}})
	apply(t, s, sim.Decision{})
	if _, err := s.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
}
