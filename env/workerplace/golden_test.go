package workerplace

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
)

// add writes a time step to h.
func add(t *testing.T, h hash.Hash, ts *env.TimeStep) {
	t.Helper()
	for _, v := range []any{uint8(ts.Kind), ts.Reward, int64(ts.Elapsed), ts.Obs, ts.Mask, ts.Info} {
		if err := binary.Write(h, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
}

// Episodes of generated jobs and their snapshots stay as they were when they were first recorded.
func TestGeneratedEpisodesAndSnapshotsStayTheSameBytes(t *testing.T) {
	want := map[string]string{
		"default":   "05a222bdd068abbb",
		"pairs":     "b7da7b29e0607aa8",
		"truncated": "b25e2192592a339a",
	}
	all := map[string]Config{}
	c := DefaultConfig()
	all["default"] = c
	c.Jobs, c.Obs, c.Slots, c.Failures, c.Noise, c.Comm, c.Reward = 20, "pairs", 5, 0.02, 0.1, "ps", "progress"
	all["pairs"] = c
	c.Obs, c.Limit, c.Table, c.Interference = "flat", 9, 3, 2
	all["truncated"] = c
	for name, c := range all {
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		h, ts := sha256.New(), env.NewTimeStep(e.Spec())
		for seed := range uint64(3) {
			src := rng.Stream(seed, "workerplace/golden")
			ep := env.Episode{Seed: seed, Window: int(seed) - 1}
			if seed == 2 {
				ep.Task = make([]float64, taskSize)
				e.SampleTask(src, ep.Task)
			}
			if err := e.Reset(ctx, ep, ts); err != nil {
				t.Fatal(err)
			}
			add(t, h, ts)
			for !ts.Kind.Last() {
				a := src.IntN(len(ts.Mask))
				for !ts.Mask[a] {
					a = src.IntN(len(ts.Mask))
				}
				if err := e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
					t.Fatal(err)
				}
				add(t, h, ts)
			}
			s, err := e.AppendSnapshot(nil)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(s)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil))[:16]; got != want[name] {
			t.Errorf("%s: digest %q, want %q", name, got, want[name])
		}
	}
}
