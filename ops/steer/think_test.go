package steer_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
)

// A policy that takes longer than it may leaves the rest to the next look: what it has decided is done, and nothing is
// lost. Here each question after the clock takes a tenth of a second, so that there is time for a few decisions.
func TestThinkingIsBounded(t *testing.T) {
	for _, x := range []struct{ mode, policy, said string }{
		{steer.Gate, "sjf+skip", "starts"}, {steer.Gate, "sjf@slots", "starts"}, {steer.Gate, "rollout:sjf+skip", "starts"},
		{steer.Rank, "sjf@slots", "to order"},
	} {
		c := livetest.New(livetest.Machines(4, 8)...)
		queue(c, 60)
		if x.mode == steer.Gate { // all GPUs are free when the policy looks first
			for _, n := range []string{"g0", "g1", "g2", "g3"} {
				c.SetDown(n, "drained")
			}
			c.Advance(11 * time.Minute)
			for _, n := range []string{"g0", "g1", "g2", "g3"} {
				c.SetDown(n, "")
			}
		} else {
			c.Advance(9 * time.Minute)
		}
		cfg := moved(c, x.mode, x.policy, 1)
		ticks := time.Duration(0)
		cfg.Now = func() time.Time {
			ticks += 100 * time.Millisecond
			return c.Now().Add(ticks)
		}
		cfg.Think = 250 * time.Millisecond
		var notes []string
		cfg.Note = func(text string) { notes = append(notes, text) }
		file := filepath.Join(t.TempDir(), "log")
		var err error
		if cfg.Log, err = steer.OpenLog(file, 1<<30, 1); err != nil {
			t.Fatal(err)
		}
		if err := steer.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Log.Close(); err != nil {
			t.Fatal(err)
		}
		line := readLog(t, file)[0]
		if len(notes) != 1 || !strings.Contains(notes[0], x.said) || !strings.Contains(line.Note, notes[0]) ||
			line.Think <= 0 || line.Think > line.Took {
			t.Errorf("%s %s: people are told %q, and the log says %q; it thought for %g s of %g", x.mode, x.policy, notes,
				line.Note, line.Think, line.Took)
		}
		n := 0
		for _, a := range c.Log() {
			if strings.HasPrefix(a, "start ") {
				n++
			}
		}
		if x.mode == steer.Gate && n != 3 {
			t.Errorf("%s: in the time for 3 decisions it has started %d jobs", x.policy, n)
		}
		if x.mode == steer.Rank { // the first three are the policy's, the others stay in order of arrival
			s, err := c.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ranked := 0
			for i := range s.Jobs {
				if s.Jobs[i].Rank > 0 {
					ranked++
				}
			}
			var last time.Time
			for i, r := range line.Order {
				j := s.Job(r.ID)
				if i < 3 {
					continue
				}
				if j.State != live.Waiting || j.Submit.Before(last) {
					t.Errorf("job %s, number %d of the order, has come at %v, and the one before at %v", r.ID, i, j.Submit, last)
				}
				last = j.Submit
			}
			if ranked != len(line.Order) || ranked < 10 {
				t.Errorf("%d of %d jobs have ranks", ranked, len(line.Order))
			}
		}
	}
}

// Jobs for which there was no time keep the ranks that they have.
func TestTheRestKeepsItsOrder(t *testing.T) {
	c := livetest.New(livetest.Machines(1, 8)...)
	queue(c, 40)
	c.Advance(10 * time.Minute)
	cfg := moved(c, steer.Rank, "sjf@slots", 1)
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	first := len(c.Log())
	ticks := time.Duration(0)
	cfg.Now = func() time.Time {
		ticks += 100 * time.Millisecond
		return c.Now().Add(ticks)
	}
	cfg.Think = 250 * time.Millisecond
	if err := steer.Run(t.Context(), cfg); err != nil || first < 20 || len(c.Log()) > first {
		t.Errorf("%v: %d jobs were ranked, and then %v", err, first, c.Log()[first:])
	}
}
