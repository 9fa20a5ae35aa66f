package sim_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/sim"
)

// playRich plays a run with random features switched on, together with a second set of books.
func playRich(t fatal, r *rand.Rand, c *chaos, s *sim.Simulator, cfg sim.Config) *ledger {
	t.Helper()
	l := newLedger(t, cfg)
	v := s.View()
	for {
		p, err := s.Advance(context.Background())
		if ended(t, err) {
			return l
		}
		if err := s.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
		if err := l.Observe(v, p); err != nil {
			t.Fatal(err)
		}
		if !v.Over() {
			c.play(t, s)
			l.settled(v)
		}
	}
}

// For any features and decisions, the simulator's books balance after every decision. A second set of books, kept from
// events and rates alone, agrees: work done = work asked for + restarts + what was lost, GPU-time is the integral of
// the gang's size, and every count is right.
func TestSecondSetOfBooks(t *testing.T) {
	play := func(t fatal, seed uint64, jobs, stops int) *ledger {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 11))
		spec, cfg := richSpec(r), richConfig(r, second/7)
		if r.IntN(5) == 0 {
			spec = short(t, "pool:6")
			cfg.Failures.MTBF = 0
		}
		s := start(t, cfg, spec, rich(r, jobs, 4, second/7))
		c := newChaos(t, r)
		c.scale, c.moves, c.stops = second/7, true, stops
		l := playRich(t, r, c, s, cfg)
		if v := s.View(); v.Ended() != v.Arrived() {
			t.Fatalf("%d of %d jobs ended", v.Ended(), v.Arrived())
		}
		return l
	}
	rapid.Check(t, func(t *rapid.T) {
		play(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 40).Draw(t, "jobs"), rapid.IntRange(0, 30).Draw(t, "stops"))
	})
	var finished, fails, moves, sizes, lost int
	for i := range 40 { // the same runs each time, so that the counts cannot fail by chance
		l := play(t, uint64(i), i+1, i%31)
		finished, fails, moves, sizes = finished+l.done, fails+l.fails, moves+l.moves, sizes+l.sizes
		if l.lost > 0 {
			lost++
		}
	}
	t.Logf("%d jobs finished, %d failures, %d migrations, %d resizes, %d runs in which work was lost", finished, fails,
		moves, sizes, lost)
	if finished < 100 || fails < 10 || moves < 10 || sizes < 10 || lost < 5 {
		t.Error("this tests too little")
	}
}
