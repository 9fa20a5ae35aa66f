package steer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
)

// A node that shows no GPUs while jobs run on it counts as drained, with the GPUs that it had. The policy does not
// begin anew, nothing is started there, and all goes on when it shows them again.
func TestANodeThatShowsNoGPUs(t *testing.T) {
	for _, mode := range steer.Modes() {
		for _, busy := range []bool{true, false} {
			c := livetest.New(livetest.Machines(2, 8)...)
			if busy {
				c.Submit(one("a", "", 4, 10*time.Minute), "g0")
			}
			c.Submit(one("b", "", 8, 20*time.Minute), "g1")
			c.Advance(time.Second)
			for _, id := range []string{"c", "d", "e"} {
				j := one(id, "", 8, 30*time.Minute)
				j.Submit = 2 * time.Minute // when it shows none
				c.Submit(j)
			}
			cfg := moved(c, mode, "sjf+skip", 6*120)
			opened, looks := 0, 0
			open := cfg.Open
			cfg.Open = func(l mirror.Layout, s *live.Snapshot) (*steer.Policy, error) {
				opened++
				return open(l, s)
			}
			cfg.Wait = func(ctx context.Context, d time.Duration) error {
				switch looks++; looks {
				case 5:
					c.Hide("g0", true)
				case 6 * 25:
					c.Hide("g0", false)
				}
				c.Advance(d)
				return ctx.Err()
			}
			var notes []string
			cfg.Note = func(text string) { notes = append(notes, text) }
			if err := steer.Run(t.Context(), cfg); err != nil {
				t.Fatalf("%s, busy %v: %v", mode, busy, err)
			}
			says := "node g0 shows fewer GPUs than jobs hold there; it counts as drained, with 8 GPUs"
			if !busy {
				says = "node g0 shows no GPUs any more; it counts as drained, with 8 GPUs"
			}
			said := 0
			for _, n := range notes {
				if strings.HasPrefix(n, "node g0") {
					said++
				}
			}
			// While jobs run there, they are seen; when the last has ended, it shows none.
			if opened != 1 || said != 1 || !strings.HasPrefix(notes[0], says) {
				t.Errorf("%s, busy %v: the policy was opened %d times, and it was said %q", mode, busy, opened, notes)
			}
			for _, j := range c.History() {
				if j.State == live.Waiting {
					t.Errorf("%s, busy %v: %+v still waits", mode, busy, j)
				}
			}
		}
	}
}

// A node that goes down is named once, with what the cluster says of it.
func TestNodesThatGoDownAreNamed(t *testing.T) {
	c := livetest.New(livetest.Machines(3, 8)...)
	c.SetDown("g2", "drain: since long")
	cfg := moved(c, steer.Shadow, "sjf+skip", 10)
	looks := 0
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		if looks++; looks == 3 {
			c.SetDown("g1", "drain: a fan")
		}
		c.Advance(d)
		return ctx.Err()
	}
	var notes []string
	cfg.Note = func(text string) { notes = append(notes, text) }
	if err := steer.Run(t.Context(), cfg); err != nil || len(notes) != 1 || notes[0] != "down: g1: drain: a fan" {
		t.Errorf("%v, it was said %q", err, notes)
	}
}
