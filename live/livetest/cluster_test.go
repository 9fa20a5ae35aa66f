package livetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/traces"
)

func TestTheClusterInMemoryIsOne(t *testing.T) {
	Suite(t, func(t *testing.T) *Bench {
		c := New(Machines(4, 8)...)
		return &Bench{
			Cluster: c,
			Another: func(*testing.T) live.Cluster { return c },
			Submit: func(_ *testing.T, name string, gpus int) string {
				c.Submit(traces.Job{ID: name, GPUs: gpus, Work: 1000 * time.Hour})
				c.Advance(0)
				return name
			},
			Finish: func(_ *testing.T, id string) { c.Finish(id) },
			Settle: func(t *testing.T, what string, ok func(*live.Snapshot) bool) *live.Snapshot {
				for range 10 {
					s, err := c.Observe(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					if ok(s) {
						return s
					}
					c.Advance(time.Second)
				}
				t.Fatalf("waited in vain: %s", what)
				return nil
			},
		}
	})
}

func observed(t *testing.T, c *Cluster) *live.Snapshot {
	t.Helper()
	s, err := c.Observe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// One node of 8. a takes 4 for an hour, b wants 8 and waits for it, c (4 GPUs, 30 min) is back-filled, d (4 GPUs, 2 h)
// is not.
func TestLaterJobsAreBackfilledIfTheyEndInTime(t *testing.T) {
	c := New(Machines(1, 8)...)
	for _, j := range []traces.Job{
		{ID: "a", GPUs: 4, Work: time.Hour, Estimate: time.Hour},
		{ID: "b", GPUs: 8, Work: time.Hour, Estimate: time.Hour},
		{ID: "d", GPUs: 4, Work: 2 * time.Hour, Estimate: 2 * time.Hour},
		{ID: "c", GPUs: 4, Work: 30 * time.Minute, Estimate: 30 * time.Minute},
	} {
		c.Submit(j)
	}
	c.Advance(5 * time.Hour)
	for id, want := range map[string]time.Duration{"a": 0, "c": 0, "b": time.Hour, "d": 2 * time.Hour} {
		i := slices.IndexFunc(c.History(), func(j live.Job) bool { return j.ID == id })
		if got := c.History()[i].Start.Sub(Epoch); got != want {
			t.Errorf("%s started after %v, want %v", id, got, want)
		}
	}
}

func TestJobsOfANodeThatGoesDownWaitAgain(t *testing.T) {
	c := New(Machines(2, 8)...)
	c.Submit(traces.Job{ID: "a", GPUs: 8, Work: time.Hour})
	c.Submit(traces.Job{ID: "b", GPUs: 8, Work: time.Hour, Submit: time.Minute})
	c.Advance(2 * time.Minute)
	c.SetDown("g0", "drained")
	s := observed(t, c)
	if a, b := s.Job("a"), s.Job("b"); a.State != live.Waiting || a.Restarts != 1 || b.State != live.Running {
		t.Errorf("a: %+v, b: %+v, want a to wait again", a, b)
	}
	c.SetDown("g0", "")
	c.Advance(0)
	if a := observed(t, c).Job("a"); a.State != live.Running || a.Start != Epoch.Add(2*time.Minute) {
		t.Errorf("a: %+v, want it to run again", a)
	}
}

func TestFaultsAreThoseAskedFor(t *testing.T) {
	ctx := context.Background()
	c := New(Machines(1, 8)...)
	c.Submit(traces.Job{ID: "a", GPUs: 8, Work: time.Hour})
	c.Submit(traces.Job{ID: "b", GPUs: 8, Work: time.Hour})
	c.Submit(traces.Job{ID: "c", GPUs: 8, Work: time.Hour})
	c.Advance(0)

	c.Unreachable(1, 2)
	rank := func(id string) live.Action { return live.Action{Op: live.RankJob, Job: id, Score: 3} }
	r := c.Act(ctx, []live.Action{rank("b"), rank("c"), rank("c")})
	if r[0].Err != nil || !errors.Is(r[1].Err, live.ErrUnreachable) || !errors.Is(r[2].Err, live.ErrUnreachable) {
		t.Errorf("%v, want one done and two unreachable", r)
	}
	s := observed(t, c)
	if s.Job("b").Rank != 3 || s.Job("c").Rank != 0 {
		t.Errorf("%+v", s.Jobs)
	}

	c.Stale(1)
	c.Advance(time.Hour)
	if old := observed(t, c); old.At != s.At || old.Job("a") == nil {
		t.Errorf("the stale snapshot is of %v with %+v", old.At, old.Jobs)
	}
	if now := observed(t, c); now.At != c.Now() || now.Job("a") != nil || len(now.Ended) != 1 {
		t.Errorf("the next one is of %v with %+v", now.At, now.Jobs)
	}

	c.Deny(live.HoldJob)
	if r := c.Act(ctx, []live.Action{{Op: live.HoldJob, Job: "c"}, rank("c")}); !errors.Is(r[0].Err, live.ErrDenied) ||
		r[1].Err != nil {
		t.Errorf("%v, want the hold denied alone", r)
	}
	if caps, err := c.Can(ctx); err != nil || caps.Gate == "" || caps.Rank != "" {
		t.Errorf("%+v, %v", caps, err)
	}
	c.Limit(live.Caps{Rank: "there is no queue"})
	if r := c.Act(ctx, []live.Action{rank("c")}); !errors.Is(r[0].Err, live.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", r)
	}
	if got, want := c.Log()[0], "rank b 3"; got != want {
		t.Errorf("log %q, want %q first", got, want)
	}
}
