package steer_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/traces"
)

// A job for which the cluster refuses something is left to it, and tried again later, less and less often.
func TestARefusedJobIsTriedAgain(t *testing.T) {
	for _, mode := range []string{steer.Rank, steer.Gate} {
		c := livetest.New(livetest.Machines(1, 8)...)
		queue(c, 40)
		c.Submit(traces.Job{ID: "odd", Submit: 595 * time.Second, Work: time.Minute, Estimate: time.Hour, GPUs: 8,
			GPUMilli: 1000})
		c.Advance(10 * time.Minute)
		c.Refuse("odd", fmt.Errorf("%w: it has a lock", live.ErrDenied))
		cfg := moved(c, mode, "sjf+skip", 60) // ten minutes
		var notes []string
		cfg.Note = func(text string) { notes = append(notes, text) }
		asked := func() (n int) {
			for _, a := range c.Log() {
				if strings.Contains(a, " odd") {
					n++
				}
			}
			return n
		}
		if s, err := c.Observe(t.Context()); err != nil || s.Job("odd") == nil || s.Job("odd").State != live.Waiting {
			t.Fatalf("the job was to wait: %v", err)
		}
		if err := steer.Run(t.Context(), cfg); err != nil {
			t.Fatal(mode, err)
		}
		if n := asked(); n < 2 || n > 5 { // at 0, 1, 3 and 7 minutes
			t.Errorf("%s: the cluster was asked %d times for what it refuses: %v", mode, n, notes)
		}
		if len(notes) < 2 || !strings.Contains(notes[0], "it has a lock") ||
			!strings.Contains(notes[0], "tried again in 1m") {
			t.Errorf("%s: it was said %q", mode, notes)
		}
	}
}

// A guard that cannot release a job says so, less and less often, and ends when it can.
func TestAGuardSaysWhatIsRefused(t *testing.T) {
	c := livetest.New(livetest.Machines(1, 8)...)
	queue(c, 20)
	c.Advance(10 * time.Minute)
	s, err := c.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Jobs, func(j live.Job) bool { return j.State == live.Waiting })
	id := s.Jobs[i].ID
	if r := c.Act(t.Context(), []live.Action{{Op: live.HoldJob, Job: id}}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	c.Refuse(id, fmt.Errorf("%w: no", live.ErrDenied))
	l := &steer.Lease{File: filepath.Join(t.TempDir(), "lease"), Term: time.Minute, Now: c.Now}
	if err := l.Take("a"); err != nil {
		t.Fatal(err)
	}
	var notes []string
	l.Note = func(text string) { notes = append(notes, text) }
	from := c.Now()
	if err := steer.Guard(t.Context(), l, c, func(ctx context.Context, d time.Duration) error {
		if c.Advance(d); c.Now().Sub(from) > 12*time.Hour {
			c.Refuse(id, nil)
		}
		return ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	if len(notes) < 5 || len(notes) > 12 || !strings.Contains(notes[0], "was not renewed for 1m0s") ||
		!strings.Contains(notes[1], "release "+id) {
		t.Errorf("%d notes: %q", len(notes), notes)
	}
}

// A job that was let go to nodes, which the cluster does not take back, keeps nothing else from being released; it is
// named, and nobody tries for ever.
func TestWhatIsTiedKeepsNothingElseHeld(t *testing.T) {
	tied := fmt.Errorf("%w: it waits for node g0", live.ErrTied)
	begin := func() (c *livetest.Cluster, held func() int) {
		c = livetest.New(livetest.Machines(2, 8)...)
		queue(c, 60)
		c.Advance(10 * time.Minute)
		s := seen(t, c)
		n := 0
		for i := range s.Jobs {
			if id := s.Jobs[i].ID; s.Jobs[i].State == live.Waiting {
				a := live.Action{Op: live.HoldJob, Job: id}
				if n++; n == 1 {
					a = live.Action{Op: live.StartJob, Job: id, Nodes: []string{"g0"}}
				}
				if r := c.Act(t.Context(), []live.Action{a}); r[0].Err != nil {
					t.Fatal(r[0].Err)
				}
				if n == 1 {
					c.Refuse(id, tied)
				}
			}
		}
		return c, func() (n int) {
			s := seen(t, c)
			for i := range s.Jobs {
				if s.Jobs[i].Ours {
					n++
				}
			}
			return n
		}
	}
	check := func(what string, c *livetest.Cluster, held func() int, said string) {
		t.Helper()
		if n := held(); n > 0 || strings.Count(said, "it cannot be taken back: it waits for node g0") != 1 {
			t.Errorf("%s: %d jobs are held, said %q", what, n, said)
		}
	}
	c, held := begin()
	if held() < 10 {
		t.Fatalf("%d jobs are held", held())
	}
	err := steer.ReleaseAll(t.Context(), c,
		steer.Releasing{Wait: func(context.Context, time.Duration) error { return nil }})
	if !errors.Is(err, live.ErrTied) {
		t.Errorf("%v, want ErrTied", err)
	}
	check("release-all", c, held, fmt.Sprint(err))

	c, held = begin()
	var notes []string
	l := &steer.Lease{File: filepath.Join(t.TempDir(), "lease"), Term: time.Minute, Now: c.Now,
		Note: func(text string) { notes = append(notes, text) }}
	if err := l.Take("a"); err != nil {
		t.Fatal(err)
	}
	if err := steer.Guard(t.Context(), l, c,
		func(ctx context.Context, d time.Duration) error { c.Advance(d); return ctx.Err() }); err != nil {
		t.Error(err)
	}
	check("a guard", c, held, strings.Join(notes, "\n"))

	c, held = begin()
	notes = nil
	stays, stop := context.WithCancel(t.Context())
	defer stop()
	looks := 0
	l = &steer.Lease{Store: &kept{now: c.Now}, Term: time.Minute, Now: c.Now}
	if err := steer.Watch(stays, l, c, nil, func(ctx context.Context, _ time.Duration) error {
		if looks++; looks == 20 {
			stop()
		}
		c.Advance(10 * time.Second)
		return ctx.Err()
	}, func(text string) { notes = append(notes, text) }); err != nil {
		t.Error(err)
	}
	if n := held(); n > 0 || len(notes) == 0 || !strings.Contains(notes[0], "nothing is held back") {
		t.Errorf("a guard that stays: %d jobs are held, said %q", n, notes)
	}
}

func seen(t *testing.T, c *livetest.Cluster) *live.Snapshot {
	t.Helper()
	s, err := c.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is still under way is tried again, and keeps nobody from going on.
func TestWhatIsNotReleasedYetIsTriedAgain(t *testing.T) {
	c := livetest.New(livetest.Machines(1, 8)...)
	queue(c, 60)
	c.Advance(10 * time.Minute)
	s := seen(t, c)
	i := slices.IndexFunc(s.Jobs, func(j live.Job) bool { return j.State == live.Waiting })
	id := s.Jobs[i].ID
	if r := c.Act(t.Context(), []live.Action{{Op: live.HoldJob, Job: id}}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	c.Refuse(id, live.ErrNotYet)
	waits := 0
	if err := steer.ReleaseAll(t.Context(), c, steer.Releasing{Wait: func(context.Context, time.Duration) error {
		if waits++; waits == 3 {
			c.Refuse(id, nil)
		}
		return nil
	}}); err != nil || waits != 3 {
		t.Errorf("%v after %d waits, want none after 3", err, waits)
	}
}

// Jobs that the policy cannot be asked about are named once, with the reason, never held, and keep no GPUs free.
func TestJobsThatDoNotFitAreNamed(t *testing.T) {
	nodes := livetest.Machines(2, 8)
	nodes[1].GPUType = "V100"
	for _, mode := range []string{steer.Shadow, steer.Rank, steer.Gate} {
		c := livetest.New(nodes...)
		queue(c, 30)
		for id, j := range map[string]traces.Job{"wide": {GPUs: 17}, "kind": {GPUs: 2, GPUTypes: []string{"H100"}},
			"many": {GPUs: 9, GPUTypes: []string{"V100"}}, "fine": {GPUs: 8, GPUTypes: []string{"V100"}}} {
			j.ID, j.Work, j.Estimate, j.GPUMilli = id, time.Minute, time.Hour, 1000
			c.Submit(j)
		}
		cfg := moved(c, mode, "sjf+skip", 2000)
		var notes []string
		cfg.Note = func(text string) { notes = append(notes, text) }
		if err := steer.Run(t.Context(), cfg); err != nil {
			t.Fatal(mode, err)
		}
		all := strings.Join(notes, "\n")
		for _, want := range []string{"wide wants 17 GPUs, and the cluster has 16",
			"kind wants GPUs of type H100, and the cluster has A100, V100",
			"many wants 9 GPUs of type V100, and the cluster has 8"} {
			if strings.Count(all, want) != 1 {
				t.Errorf("%s: %q is said %d times in %q", mode, want, strings.Count(all, want), notes)
			}
		}
		if strings.Contains(all, "fine") {
			t.Errorf("%s: %q", mode, notes)
		}
		for _, a := range c.Log() {
			if mode == steer.Gate && (strings.Contains(a, "wide") || strings.Contains(a, "kind") ||
				strings.Contains(a, "many")) {
				t.Errorf("asked for %s", a)
			}
		}
		for _, j := range c.History() {
			if odd := j.ID == "wide" || j.ID == "kind" || j.ID == "many"; odd == (j.State == live.Ended) {
				t.Errorf("%s: job %s is %v", mode, j.ID, j.State)
			}
		}
	}
}

// other is a cluster that shows other nodes from some moment on.
type other struct {
	*livetest.Cluster
	change func(s *live.Snapshot)
}

func (o *other) Observe(ctx context.Context) (*live.Snapshot, error) {
	s, err := o.Cluster.Observe(ctx)
	if err == nil && o.change != nil {
		o.change(s)
		s.Sort()
	}
	return s, err
}

// A node that goes and comes back is down meanwhile. A new one, with which the policy does not fit any more, ends steer
// with both reasons, and nothing stays held.
func TestNodesThatComeAndGo(t *testing.T) {
	for _, mode := range []string{steer.Shadow, steer.Rank, steer.Gate} {
		for _, fresh := range []bool{false, true} {
			c := livetest.New(livetest.Machines(2, 8)...)
			queue(c, 40)
			o := &other{Cluster: c}
			cfg := moved(c, mode, "sjf+skip", 400)
			cfg.Cluster = o
			open := cfg.Open
			cfg.Open = func(l mirror.Layout, s *live.Snapshot) (*steer.Policy, error) {
				if len(l.Nodes) != 2 {
					return nil, errors.New("it was trained on 2 nodes")
				}
				return open(l, s)
			}
			n := 0
			cfg.Wait = func(ctx context.Context, d time.Duration) error {
				c.Advance(d)
				switch n++; {
				case n == 30 && fresh:
					o.change = func(s *live.Snapshot) {
						s.Nodes = append(s.Nodes, live.Node{Name: "g9", GPUs: 8})
					}
				case n == 30:
					c.SetDown("g1", "gone")
					o.change = func(s *live.Snapshot) {
						s.Nodes = slices.DeleteFunc(s.Nodes, func(n live.Node) bool { return n.Name == "g1" })
					}
				case n == 60:
					c.SetDown("g1", "")
					o.change = nil
				}
				return ctx.Err()
			}
			err := steer.Run(t.Context(), cfg)
			switch {
			case fresh && (err == nil || !strings.Contains(err.Error(), "node g9 is new") ||
				!strings.Contains(err.Error(), "it was trained on 2 nodes")):
				t.Errorf("%s: a new node: %v", mode, err)
			case !fresh && err != nil:
				t.Errorf("%s: a node has gone and come back: %v", mode, err)
			}
			s, err := c.Observe(t.Context())
			if err != nil || slices.ContainsFunc(s.Jobs,
				func(j live.Job) bool { return j.Ours || j.Freed && j.State == live.Waiting }) {
				t.Errorf("%s, new: %v: jobs are held after the end, %v", mode, fresh, err)
			}
		}
	}
}
