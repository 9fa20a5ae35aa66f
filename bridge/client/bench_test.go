package client_test

import (
	"fmt"
	"testing"

	"clustergym/bridge/client"
	"clustergym/env"
)

// BenchmarkStep is one round trip of one environment over loopback, both ends on this machine.
func BenchmarkStep(b *testing.B) {
	e := open(b, dial(b, serve(b, nil), nil), "CartPole-v1", nil)
	ts := env.NewTimeStep(e.Spec())
	b.ReportAllocs()
	ts.Kind = env.Terminated
	a := env.Action{Disc: []int32{0}}
	for k := 0; b.Loop(); k++ {
		if ts.Kind.Last() {
			if err := e.Reset(ctx, env.Episode{Seed: uint64(k), Window: -1}, ts); err != nil {
				b.Fatal(err)
			}
		}
		a.Disc[0] = int32(k & 1)
		if err := e.Step(ctx, a, ts); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVecStep(b *testing.B) {
	for _, n := range []int{1, 64, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v, err := dial(b, serve(b, nil),
				nil).OpenVec(ctx, "CartPole-v1", nil, n, client.VecConfig{Autoreset: client.SameStep})
			if err != nil {
				b.Fatal(err)
			}
			bt, a := env.NewBatch(v.Spec(), n), env.NewActions(v.Spec(), n)
			if err := v.Reset(ctx, nil, nil, bt); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				for i := range a.Disc {
					a.Disc[i] ^= 1
				}
				if err := v.Step(ctx, nil, a, bt); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "env-steps/s")
		})
	}
}
