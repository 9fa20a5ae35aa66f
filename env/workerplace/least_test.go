package workerplace

import (
	"math/rand/v2"
	"testing"

	"clustergym/env"
)

// Uniform play, with little and with much to run, with rings and with parameter servers, does not get below the bound.
// A lone job on empty servers gets there.
func TestNoPlayIsFasterThanTheLeast(t *testing.T) {
	play := func(cfg Config, seed uint64, src *rand.Rand) (jct, least float64) {
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close() //nolint:errcheck // it holds nothing
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(t.Context(), env.Episode{Seed: seed, Window: -1}, ts); err != nil {
			t.Fatal(err)
		}
		least = e.Least()
		for !ts.Kind.Last() {
			var legal []int32
			for i, ok := range ts.Mask {
				if ok && (i < len(ts.Mask)-1 || len(legal) == 0) {
					legal = append(legal, int32(i))
				}
			}
			if err := e.Step(t.Context(), env.Action{Disc: []int32{legal[src.IntN(len(legal))]}}, ts); err != nil {
				t.Fatal(err)
			}
		}
		return ts.Info[InfoJCT], least
	}
	src := rand.New(rand.NewPCG(3, 4))
	for _, comm := range []string{"allreduce", "ps"} {
		for _, jobs := range []int{1, 2, 30} {
			cfg := DefaultConfig()
			cfg.Comm, cfg.Jobs = comm, jobs
			for seed := range uint64(20) {
				if jct, least := play(cfg, seed, src); jct < least*(1-1e-12) || least <= 0 {
					t.Errorf("%s, %d jobs, seed %d: %v s, and the bound is %v s", comm, jobs, seed, jct, least)
				}
			}
		}
	}
}
