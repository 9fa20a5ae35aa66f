package steer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
)

// kept is a lease that a cluster keeps.
type kept struct {
	text  string
	at    time.Time
	now   func() time.Time
	fails error // of every call
}

func (k *kept) Read() (age time.Duration, mark, text string, err error) {
	switch {
	case k.fails != nil:
		return 0, "", "", k.fails
	case k.text == "":
		return 0, "", "", fs.ErrNotExist
	}
	return k.now().Sub(k.at), k.at.String() + k.text, k.text, nil
}

func (k *kept) Write(text string) error {
	if k.fails == nil {
		k.text, k.at = text, k.now()
	}
	return k.fails
}

func (k *kept) Renew(text string) error {
	if k.fails == nil && k.text != text {
		return fs.ErrNotExist
	}
	return k.Write(text)
}

func (k *kept) Remove() error { return k.Write("") }

// A guard that stays releases nothing while somebody steers, and all when nobody has for longer than the term and a
// quarter, again and again; another program may take over before.
func TestAGuardThatStaysReleasesWheneverNobodySteers(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	queue(c, 60)
	c.Advance(10 * time.Minute)
	store := &kept{now: c.Now}
	held := func() (n int) {
		s, err := c.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Jobs {
			if s.Jobs[i].Ours {
				n++
			}
		}
		return n
	}
	hold := func() {
		s, err := c.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Jobs {
			if s.Jobs[i].State == live.Waiting {
				c.Act(t.Context(), []live.Action{{Op: live.HoldJob, Job: s.Jobs[i].ID}})
			}
		}
		if held() == 0 {
			t.Fatal("nothing is held")
		}
	}
	steers := &steer.Lease{Term: time.Minute, Now: c.Now, Store: store}
	if err := steers.Take("a"); err != nil {
		t.Fatal(err)
	}
	hold()
	ctx, stop := context.WithCancel(t.Context())
	looks, beats, said := 0, 0, []string{}
	watch := &steer.Lease{Term: time.Minute, Now: c.Now, Store: store}
	err := steer.Watch(ctx, watch, c, func() error { beats++; return nil },
		func(ctx context.Context, d time.Duration) error {
			looks++
			c.Advance(d)
			switch {
			case looks <= 20: // somebody steers
				if err := steers.Renew(); err != nil || held() == 0 {
					t.Fatalf("look %d: %v, %d held", looks, err, held())
				}
			case looks == 25:
				store.fails = live.ErrUnreachable
			case looks == 27:
				store.fails = nil
			case looks < 29 && held() == 0:
				t.Fatalf("look %d: nothing is held", looks)
			case looks == 35:
				if held() > 0 || !errors.Is(steers.Renew(), steer.ErrLease) {
					t.Fatalf("%d are held after the term", held())
				}
				hold() // as an owner hands jobs over
			case looks == 37 && held() > 0:
				t.Fatalf("%d are held, and nobody steers", held())
			case looks == 38:
				if err := steers.Take("b"); err != nil {
					t.Fatal(err)
				}
				if n := held(); n > 0 {
					t.Fatal(n)
				}
				stop()
			}
			return ctx.Err()
		}, func(text string) { said = append(said, text) })
	if err != nil || looks != 38 || beats != 38 ||
		!strings.Contains(fmt.Sprint(said), "cannot be reached; it is tried again") {
		t.Errorf("%v after %d looks and %d beats: %q", err, looks, beats, said)
	}
	store.fails = live.ErrDenied
	if err := steer.Watch(t.Context(), watch, c, nil, steer.Sleep, func(string) {}); !errors.Is(err, live.ErrDenied) {
		t.Errorf("a guard without rights: %v", err)
	}
}

// A lease whose store does not answer is not lost: gate writes nothing meanwhile, and goes on afterwards.
func TestAStoreThatIsAwayIsWaitedFor(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	queue(c, 40)
	c.Advance(time.Minute)
	store := &kept{now: c.Now}
	cfg := moved(c, steer.Gate, "sjf+skip", 60)
	cfg.Lease, cfg.Token = &steer.Lease{File: filepath.Join(t.TempDir(), "unused"), Term: time.Minute, Now: c.Now,
		Store: store}, "a"
	wait := cfg.Wait
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		store.fails = nil
		if age := c.Now().Sub(livetest.Epoch); age > 5*time.Minute && age < 9*time.Minute {
			store.fails = live.ErrUnreachable
		}
		return wait(ctx, d)
	}
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if store.text != "over" {
		t.Errorf("the lease says %q at the end", store.text)
	}
	c.Advance(48 * time.Hour)
	meanWait(t, c)
}
