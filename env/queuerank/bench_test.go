package queuerank_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// BenchmarkStep chooses slots at random, episodes' beginnings included.
func BenchmarkStep(b *testing.B) {
	src := rand.New(rand.NewPCG(3, 3))
	var jobs []traces.Job
	at := time.Duration(0)
	for range 256 {
		at += time.Duration(src.IntN(400)) * time.Second
		jobs = append(jobs, job(at, time.Duration(1+src.IntN(4000))*time.Second, 1+src.IntN(64)))
	}
	cfg := queuerank.DefaultConfig()
	cfg.Reward = "minus"
	e, err := queuerank.New(cfg, cluster.Spec{Pool: 256}, windows(jobs), jobs, traces.Training)
	if err != nil {
		b.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	ts.Kind = env.Terminated
	action := env.Action{Disc: make([]int32, 1)}
	b.ReportAllocs()
	for b.Loop() {
		if ts.Kind.Last() {
			if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
				b.Fatal(err)
			}
		}
		action.Disc[0] = int32(src.IntN(len(e.Slots())))
		if err := e.Step(ctx, action, ts); err != nil {
			b.Fatal(err)
		}
	}
}
