package sim_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/simulator/sim"
)

var long = flag.Bool("long", false, "ten million random decisions instead of a hundred thousand")

// Random schedulers make legal and illegal decisions on random clusters and workloads: the books balance after every
// decision, illegal ones change nothing, and no run gets stuck.
func TestRandomSchedulersNeverBreakTheBooks(t *testing.T) {
	want := 100_000
	if *long {
		want = 10_000_000
	}
	const parts = 2 // of the seeds, played in parallel
	for part := range uint64(parts) {
		t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
			t.Parallel()
			count, busy := 0, 0
			for seed := part; count < want/parts; seed += parts {
				r := rand.New(rand.NewPCG(seed, 5))
				spec, cfg := richSpec(r), richConfig(r, second)
				if r.IntN(4) == 0 {
					spec, cfg.Failures.MTBF = short(t, "pool:9"), 0
				}
				if r.IntN(4) == 0 {
					cfg.Horizon = time.Duration(1+r.IntN(500)) * second
				}
				s := start(t, cfg, spec, rich(r, 1+r.IntN(60), 5, second))
				c := newChaos(t, r)
				c.moves = true
				runChaos(t, s, c)
				if v := s.View(); cfg.Horizon == 0 && v.Ended() != v.Arrived() {
					t.Fatalf("seed %d: %d of %d jobs ended", seed, v.Ended(), v.Arrived())
				}
				count += c.count
				busy += c.busy
			}
			if busy < count/5 {
				t.Errorf("only %d of %d decisions started or stopped something", busy, count)
			}
		})
	}
}

// Equal seeds give equal bytes of events; different seeds give different ones.
func TestEqualSeedsEqualBytes(t *testing.T) {
	play := func(seed uint64) string {
		r := rand.New(rand.NewPCG(seed, 6))
		s := start(t, richConfig(r, second), richSpec(r), rich(r, 40, 4, second))
		var l lines
		c := newChaos(t, r)
		c.moves = true
		runChaos(t, s, c, &l)
		return l.b.String()
	}
	if play(1) != play(1) {
		t.Error("the same seed gives other events")
	}
	if play(1) == play(2) {
		t.Error("another seed gives the same events")
	}
}

// A simulator that was used before behaves like a new one after Reset.
func TestResetForgets(t *testing.T) {
	raced.Alone(t)
	for seed := range uint64(50) {
		testResetForgets(t, seed)
	}
}

func testResetForgets(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	spec, cfg := richSpec(r), richConfig(r, second)
	first, second := rich(r, 40, 4, second), rich(r, 30, 4, second)
	used := start(t, cfg, spec, first)
	c := newChaos(t, r)
	c.moves = true
	for range 12 { // abandon it midway through a run
		advance(t, used)
		c.play(t, used)
		_ = used.View().OnNode(0)
	}
	fresh := start(t, cfg, spec, second)
	if err := used.Reset(stream(second)); err != nil {
		t.Fatal(err)
	}
	var logs [2]lines
	for k, s := range []*sim.Simulator{used, fresh} {
		c := newChaos(t, rand.New(rand.NewPCG(8, 8)))
		c.moves = true
		runChaos(t, s, c, &logs[k])
	}
	if logs[0].b.String() != logs[1].b.String() {
		t.Errorf("used:\n%s\nfresh:\n%s", logs[0].b.String(), logs[1].b.String())
	}
}
