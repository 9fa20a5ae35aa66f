package dagplace

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

// Episodes of generated graphs and their snapshots stay as they were when they were first recorded.
func TestGeneratedEpisodesAndSnapshotsStayTheSameBytes(t *testing.T) {
	want := map[string]string{
		"default":   "1bd34c028b38a64e",
		"makespan":  "f2af8c8363d13027",
		"varied":    "0834da79b5f79d7d",
		"truncated": "314f951be9a30294",
		"large":     "143b3ae6f2262d5f",
	}
	all := small()
	c := DefaultConfig()
	c.Vary, c.Slots, c.Insert = true, 8, true
	all["large"] = c
	for name, c := range all {
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		h, ts := sha256.New(), env.NewTimeStep(e.Spec())
		for seed := range uint64(3) {
			src := rng.Stream(seed, "dagplace/golden")
			if err := e.Reset(ctx, env.Episode{Seed: seed, Window: int(seed) - 1}, ts); err != nil {
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

func BenchmarkEpisode(b *testing.B) {
	e, err := New(DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	ts, a := env.NewTimeStep(e.Spec()), env.Action{Disc: []int32{0}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := e.Reset(ctx, env.Episode{Seed: uint64(i), Window: -1}, ts); err != nil {
			b.Fatal(err)
		}
		for !ts.Kind.Last() {
			a.Disc[0] = (a.Disc[0] + 1) % 50
			if err := e.Step(ctx, a, ts); err != nil {
				b.Fatal(err)
			}
		}
	}
}
