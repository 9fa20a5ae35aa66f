package steer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
)

// wall has a wall clock that can be set, and a monotonic clock that cannot.
type wall struct {
	inside time.Duration
	ahead  time.Duration // of the clock on the wall
}

func (w *wall) now() time.Time       { return livetest.Epoch.Add(w.inside + w.ahead) }
func (w *wall) clock() time.Duration { return w.inside }
func (w *wall) pass(d time.Duration) { w.inside += d }
func (w *wall) lease(f string) *steer.Lease {
	return &steer.Lease{File: f, Term: time.Minute, Now: w.now, Clock: w.clock}
}

// ranked returns a cluster in which jobs wait that have ranks and are held.
func ranked(t *testing.T) (c *livetest.Cluster, left func() (held, ranks int)) {
	t.Helper()
	c = livetest.New(livetest.Machines(2, 8)...)
	queue(c, 60)
	c.Advance(10 * time.Minute)
	s := seen(t, c)
	for i := range s.Jobs {
		if s.Jobs[i].State == live.Waiting {
			c.Act(t.Context(),
				[]live.Action{{Op: live.RankJob, Job: s.Jobs[i].ID, Score: int64(1 + i)}, {Op: live.HoldJob, Job: s.Jobs[i].ID}})
		}
	}
	left = func() (held, ranks int) {
		s := seen(t, c)
		for i := range s.Jobs {
			if j := &s.Jobs[i]; j.State == live.Waiting && j.Ours {
				held++
			}
			if j := &s.Jobs[i]; j.State == live.Waiting && j.Rank != 0 {
				ranks++
			}
		}
		return held, ranks
	}
	if held, ranks := left(); held < 10 || ranks < 10 {
		t.Fatalf("%d are held, %d have ranks", held, ranks)
	}
	return c, left
}

// However the clock of the machine is set, a guard lets go what a dead program held, once it has seen no renewal for
// the term; and nothing that a living one holds.
func TestAGuardKeepsItsOwnTime(t *testing.T) {
	for _, step := range []time.Duration{-365 * 24 * time.Hour, -time.Hour, -50 * time.Second, 0, 50 * time.Second,
		time.Hour, 365 * 24 * time.Hour} {
		for _, dies := range []bool{true, false} {
			for _, at := range []time.Duration{0, 10 * time.Second, 100 * time.Second} { // of the step
				t.Run(fmt.Sprint(step, dies, at), func(t *testing.T) {
					c, left := ranked(t)
					w := new(wall)
					file := filepath.Join(t.TempDir(), "lease")
					steers := w.lease(file)
					if err := steers.Take("a"); err != nil {
						t.Fatal(err)
					}
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					death, stepped, released := 2*time.Minute, false, time.Duration(0)
					err := steer.Guard(ctx, w.lease(file), c, func(ctx context.Context, d time.Duration) error {
						w.pass(d)
						c.Advance(time.Millisecond)
						if !stepped && w.inside >= at {
							stepped, w.ahead = true, step
						}
						if !dies || w.inside < death {
							if err := steers.Renew(); err != nil {
								t.Fatalf("after %v: %v", w.inside, err)
							}
							if held, _ := left(); held == 0 {
								t.Fatalf("a living program's jobs are released after %v", w.inside)
							}
						}
						if held, _ := left(); held == 0 && released == 0 {
							released = w.inside
						}
						if w.inside > 10*time.Minute {
							stop()
						}
						return ctx.Err()
					})
					if err != nil {
						t.Fatal(err)
					}
					if held, _ := left(); dies && (held > 0 || released > death+90*time.Second) {
						t.Errorf("%d are held; they were released after %v, and the program died at %v", held, released, death)
					}
				})
			}
		}
	}
}

// A renewal with a time in the future does not count, neither for the guard nor for the next program.
func TestARenewalInTheFutureIsNone(t *testing.T) {
	c, left := ranked(t)
	w := new(wall)
	file := filepath.Join(t.TempDir(), "lease")
	if err := w.lease(file).Take("a"); err != nil {
		t.Fatal(err)
	}
	looks := 0
	if err := steer.Guard(t.Context(), w.lease(file), c, func(ctx context.Context, d time.Duration) error {
		w.pass(d)
		if looks++; looks < 9 { // later and later
			at := w.now().Add(time.Duration(looks) * time.Hour)
			if err := os.Chtimes(file, at, at); err != nil {
				t.Fatal(err)
			}
		}
		if looks > 20 {
			t.Fatal("the guard waits for the future")
		}
		return ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	if held, _ := left(); held > 0 {
		t.Error(held)
	}
	if err := w.lease(file).Take("a"); err != nil {
		t.Fatal(err)
	}
	w.ahead = -time.Hour
	if err := w.lease(file).Take("b"); err != nil {
		t.Errorf("a lease of the future: %v", err)
	}
	if err := w.lease(file).Take("c"); !errors.Is(err, steer.ErrLease) ||
		!strings.Contains(err.Error(), "another program (b)") {
		t.Errorf("a lease of now: %v", err)
	}
}

// A guard that stays keeps its own time, too: the clock of what stores the lease may be set.
func TestAGuardThatStaysKeepsItsOwnTime(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		c, left := ranked(t)
		w := new(wall)
		store := &kept{now: w.now}
		steers := &steer.Lease{Term: time.Minute, Now: w.now, Clock: w.clock, Store: store}
		if err := steers.Take("a"); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		guard := &steer.Lease{Term: time.Minute, Now: w.now, Clock: w.clock, Store: store, Ranks: true}
		if err := steer.Watch(ctx, guard, c, nil, func(ctx context.Context, d time.Duration) error {
			w.pass(d)
			c.Advance(time.Millisecond)
			if w.inside > time.Minute {
				w.ahead = step
			}
			held, ranks := left()
			switch {
			case w.inside < 3*time.Minute:
				if err := steers.Renew(); err != nil || held == 0 || ranks == 0 {
					t.Fatalf("step %v: %v, %d held after %v", step, err, held, w.inside)
				}
			case w.inside > 5*time.Minute:
				if held > 0 || ranks > 0 {
					t.Errorf("step %v: %d are held and %d ranked two minutes after the program died", step, held, ranks)
				}
				stop()
			}
			return ctx.Err()
		}, func(string) {}); err != nil {
			t.Fatal(err)
		}
		stop()
	}
}

// A lease that goes without a word, or becomes something else, is not renewed: the guard releases all.
func TestAGuardWithoutALeaseReleases(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"removed": os.Remove,
		"a folder": func(file string) error {
			return errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "in it"), 0o700))
		},
		"emptied": func(file string) error { return os.Truncate(file, 0) },
		"large":   func(file string) error { return os.WriteFile(file, make([]byte, 1<<20), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			c, left := ranked(t)
			w := new(wall)
			file := filepath.Join(t.TempDir(), "lease")
			if err := w.lease(file).Take("a"); err != nil {
				t.Fatal(err)
			}
			looks := 0
			_ = steer.Guard(t.Context(), w.lease(file), c, func(ctx context.Context, d time.Duration) error { //nolint:errcheck // a folder stays
				w.pass(d)
				if looks++; looks == 2 {
					if err := spoil(file); err != nil {
						t.Fatal(err)
					}
				}
				if looks > 40 {
					t.Fatal("the guard waits")
				}
				return ctx.Err()
			})
			if held, ranks := left(); held > 0 || ranks == 0 {
				t.Errorf("%d are held, %d have ranks", held, ranks)
			}
		})
	}
}

// A guard of ranks takes them back.
func TestAGuardTakesRanksBack(t *testing.T) {
	c, left := ranked(t)
	w := new(wall)
	file := filepath.Join(t.TempDir(), "lease")
	if err := w.lease(file).Take("a"); err != nil {
		t.Fatal(err)
	}
	guard := w.lease(file)
	guard.Ranks = true
	if err := steer.Guard(t.Context(), guard, c,
		func(ctx context.Context, d time.Duration) error { w.pass(d); return ctx.Err() }); err != nil {
		t.Fatal(err)
	}
	if held, ranks := left(); held > 0 || ranks > 0 {
		t.Errorf("%d are held, %d have ranks", held, ranks)
	}
}

// Of two programs that rank, the second is refused with a sentence that names the first; at the end of the first its
// ranks stay unless they are to be taken back, and the lease is free.
func TestTwoThatRank(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	queue(c, 40)
	c.Advance(10 * time.Minute)
	file := filepath.Join(t.TempDir(), "lease")
	first := &steer.Lease{File: file, Term: time.Minute, Now: c.Now}
	if err := first.Take("process 7 on login1"); err != nil {
		t.Fatal(err)
	}
	cfg := moved(c, steer.Rank, "sjf+skip", 3)
	cfg.Lease, cfg.Token = &steer.Lease{File: file, Term: time.Minute, Now: c.Now}, "process 8 on login2"
	if err := steer.Run(t.Context(), cfg); !errors.Is(err, steer.ErrLease) ||
		!strings.Contains(err.Error(), "process 7 on login1") || len(c.Log()) > 0 {
		t.Fatalf("%v, %v", err, c.Log())
	}
	if err := first.End(); err != nil {
		t.Fatal(err)
	}
	watched := 0
	var notes []string
	cfg.Note = func(text string) { notes = append(notes, text) }
	cfg.Unleased = "no second program would be seen"
	cfg.Guarded = func() error {
		watched++
		return errors.New("the guard has ended")
	}
	if err := steer.Run(t.Context(), cfg); err != nil || len(c.Log()) == 0 || watched == 0 {
		t.Fatal(err, c.Log(), watched)
	}
	if len(notes) != 2 || notes[0] != cfg.Unleased || !strings.Contains(notes[1], "the guard has ended") {
		t.Errorf("%q", notes)
	}
	ranks := 0
	s := seen(t, c)
	for i := range s.Jobs {
		if s.Jobs[i].Rank > 0 {
			ranks++
		}
	}
	if ranks == 0 {
		t.Error("the ranks are gone after an end in order")
	}
	if err := first.Take("again"); err != nil {
		t.Error(err)
	}
}

// deaf takes every release and changes nothing.
type deaf struct{ *livetest.Cluster }

func (deaf) Act(_ context.Context, actions []live.Action) []live.Result {
	return make([]live.Result, len(actions))
}

// A cluster that takes releases and shows the jobs as before ends release-all with a sentence that has no holes.
func TestReleasesThatChangeNothing(t *testing.T) {
	c, _ := ranked(t)
	var waited time.Duration
	err := steer.ReleaseAll(t.Context(), deaf{c},
		steer.Releasing{Ranks: true, Wait: func(_ context.Context, d time.Duration) error {
			waited += d
			return nil
		}})
	if err == nil || strings.Contains(err.Error(), "%!") || !strings.Contains(err.Error(), "release ") ||
		strings.Contains(err.Error(), "\n") || waited < 10*time.Second {
		t.Errorf("%v after %v", err, waited)
	}
}

// A full disk does not keep a lease from ending.
func TestALeaseEndsOnAFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "full")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, strings.Repeat("x", 250)) // there is no room for the name of another file
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Skip(err)
	}
	l := new(wall).lease(file)
	if err := l.End(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
