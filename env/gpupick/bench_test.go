package gpupick_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/gpupick"
	"clustergym/traces"
)

// BenchmarkStep picks legal GPUs at random, episodes' beginnings included.
func BenchmarkStep(b *testing.B) {
	src := rand.New(rand.NewPCG(3, 3))
	var jobs []traces.Job
	at := time.Duration(0)
	for range 100 {
		at += time.Duration(src.IntN(400)) * time.Second
		jobs = append(jobs, job(at, time.Duration(1+src.IntN(4000))*time.Second, 1+src.IntN(8)))
	}
	e, err := gpupick.New(gpupick.DefaultConfig(), tree(), windows(jobs), traces.Training)
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
		g := src.IntN(len(ts.Mask))
		for !ts.Mask[g] {
			g = (g + 1) % len(ts.Mask)
		}
		action.Disc[0] = int32(g)
		if err := e.Step(ctx, action, ts); err != nil {
			b.Fatal(err)
		}
	}
}
