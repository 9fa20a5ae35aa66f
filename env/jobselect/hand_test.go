package jobselect_test

import (
	"context"
	"math"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

type three []traces.Job

func (t three) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: t, Counted: len(t)}, nil
}

// Three jobs on a counter of two GPUs, worked out on paper: A wants both for 100 s, B and C one each for 10 s,
// all at time 0.
func TestThreeJobsByHand(t *testing.T) {
	jobs := three{
		{ID: "A", GPUs: 2, GPUMilli: 1000, Work: 100 * time.Second},
		{ID: "B", GPUs: 1, GPUMilli: 1000, Work: 10 * time.Second},
		{ID: "C", GPUs: 1, GPUMilli: 1000, Work: 10 * time.Second},
	}
	play := func(reward string, order ...string) (rewards []float64, ret float64) {
		cfg := jobselect.DefaultConfig()
		cfg.Warm, cfg.Load, cfg.Comm, cfg.Window, cfg.Reward = 0, 0, "none", 3, reward
		spec, _, _ := cluster.Parse("pool:2")
		e, err := jobselect.New(cfg, spec, jobs, traces.Training)
		if err != nil {
			t.Fatal(err)
		}
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(context.Background(), env.Episode{Window: -1}, ts); err != nil {
			t.Fatal(err)
		}
		for _, id := range order {
			slot := -1
			for i, j := range e.State().Slots {
				if e.State().View.Trace(j).ID == id {
					slot = i
				}
			}
			if err := e.Spec().Check(ts); err != nil {
				t.Fatal(err)
			}
			if err := e.Step(context.Background(), env.Action{Disc: []int32{int32(slot)}}, ts); err != nil {
				t.Fatal(err)
			}
			rewards = append(rewards, ts.Reward)
			ret += ts.Reward
		}
		if ts.Kind != env.Terminated {
			t.Fatalf("ended %v", ts.Kind)
		}
		return rewards, ret
	}
	near := func(got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	r, ret := play("jct", "B", "C", "A")
	near(r[0], 0)
	near(r[1], -30.0/10800)
	near(r[2], -100.0/10800)
	near(ret, -(130.0/3)/3600)
	_, ret = play("jct", "A", "B", "C")
	near(ret, -(320.0/3)/3600)
	_, ret = play("throughput", "B", "C", "A")
	near(ret, (220.0-2*20)/7200)
	_, ret = play("slowdown", "B", "C", "A")
	near(ret, -(1.1+1+1)/3)
	_, ret = play("makespan", "B", "C", "A")
	near(ret, -110.0/3600)
}
