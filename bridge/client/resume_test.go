package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/bridge/client"
	"clustergym/bridge/server"
	"clustergym/env"
)

// bothWays plays an episode in a local and in a remote environment, calls between before each step, and compares all
// bits.
func bothWays(t *testing.T, away env.Env, seed uint64, between func(step int)) {
	t.Helper()
	home := newDrift()
	x, y := env.NewTimeStep(home.Spec()), env.NewTimeStep(home.Spec())
	ep := env.Episode{Seed: seed, Window: -1}
	if err := errors.Join(home.Reset(ctx, ep, x), away.Reset(ctx, ep, y)); err != nil {
		t.Fatal(err)
	}
	ch, a := make(chooser, 1), env.NewActions(home.Spec(), 1)
	for step := 0; !x.Kind.Last(); step++ {
		ch.choose(home.Spec(), x.Mask, a)
		between(step)
		if err := errors.Join(home.Step(ctx, a.Row(0), x), away.Step(ctx, a.Row(0), y)); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if bits(x) != bits(y) {
			t.Fatalf("step %d:\n%s at home\n%s", step, bits(y), bits(x))
		}
	}
}

func TestEveryStepHappensOnceWhenConnectionsAreLost(t *testing.T) {
	p := newProxy(t, serve(t, nil))
	e := open(t, dial(t, p.addr, nil), driftID, nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	bothWays(t, e, 11, func(step int) {
		switch step % 5 {
		case 1: // nothing is under way
			p.cut()
		case 2: // the reply is lost
			lost := p.swallowed.Load()
			p.mute.Store(true)
			wg.Add(1)
			go func() {
				defer wg.Done()
				for end := time.Now().Add(5 * time.Second); p.swallowed.Load() == lost && time.Now().Before(end); {
					time.Sleep(100 * time.Microsecond)
				}
				p.mute.Store(false)
				p.cut()
			}()
		case 3: // the request is lost
			p.deaf.Store(true)
			wg.Add(1)
			go func() {
				defer wg.Done()
				time.Sleep(10 * time.Millisecond)
				p.deaf.Store(false)
				p.cut()
			}()
		}
	})
	if n := p.connections(); n < 10 {
		t.Errorf("%d connections only: nothing was cut", n)
	}
}

func TestSeveralHandlesSurviveALostConnection(t *testing.T) {
	p := newProxy(t, serve(t, nil))
	c := dial(t, p.addr, nil)
	var wg sync.WaitGroup
	for k := range 4 {
		e := open(t, c, driftID, map[string]any{"slow": 2})
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 2 {
				bothWays(t, e, uint64(10*k+i), func(int) {})
			}
		}()
	}
	for range 8 {
		time.Sleep(12 * time.Millisecond)
		p.cut()
	}
	wg.Wait()
}

func TestALostSessionSaysWhy(t *testing.T) {
	p := newProxy(t, serve(t, func(cfg *server.Config) { cfg.ResumeWindow = 300 * time.Millisecond }))
	c := dial(t, p.addr, nil)
	e := open(t, c, driftID, nil)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	p.refuse.Store(true)
	p.cut()
	before := bits(ts)
	err := e.Step(ctx, env.Action{Disc: []int32{0, 0}, Cont: []float32{0, 0}}, ts)
	if !errors.Is(err, client.ErrLost) || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("error %v, want that the session is lost, and for how long it was tried", err)
	}
	if bits(ts) != before {
		t.Error("the error changed the time step")
	}
	if _, err := c.Open(ctx, driftID, nil); !errors.Is(err, client.ErrLost) {
		t.Errorf("Open: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("Close of what is lost: %v", err)
	}
}

func TestASessionThatTheServerHasForgottenIsLost(t *testing.T) {
	// The server has room for one session: while the client is away, another client takes it.
	addr := serve(t, func(cfg *server.Config) { cfg.MaxSessions = 1 })
	p := newProxy(t, addr)
	c := dial(t, p.addr, nil)
	e := open(t, c, driftID, nil)
	p.refuse.Store(true)
	p.cut()
	var other *client.Client
	eventually(t, "no place is free", func() (ok bool) {
		var err error
		other, err = client.Dial(ctx, client.Config{URL: "ws://" + addr})
		return err == nil
	})
	p.refuse.Store(false)
	err := e.Reset(ctx, env.Episode{Window: -1}, env.NewTimeStep(e.Spec()))
	if !errors.Is(err, client.ErrLost) || !strings.Contains(err.Error(), "4410") {
		t.Errorf("error %v, want that the session is lost, by code 4410", err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

func TestWithoutResumeALostConnectionIsTheEnd(t *testing.T) {
	p := newProxy(t, serve(t, nil))
	c := dial(t, p.addr, func(cfg *client.Config) { cfg.Resume = -1 })
	e := open(t, c, driftID, nil)
	p.cut()
	if err := e.Reset(ctx, env.Episode{Window: -1}, env.NewTimeStep(e.Spec())); !errors.Is(err, client.ErrLost) {
		t.Errorf("error %v, want %v", err, client.ErrLost)
	}
}

// The client notices a server from which nothing comes any more, although the connection is still open.
func TestASilentServerIsTakenForGone(t *testing.T) {
	p := newProxy(t, serve(t, nil))
	c := dial(t, p.addr, func(cfg *client.Config) { cfg.KeepAlive = 500 * time.Millisecond })
	e := open(t, c, driftID, nil)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // more than three times KeepAlive: a quiet client keeps the connection
	if n := p.connections(); n != 1 {
		t.Errorf("%d connections, want the first to stand", n)
	}
	p.mu.Lock()
	stale := p.pairs
	p.pairs = nil // these connections stay open, and silent
	p.mu.Unlock()
	p.mute.Store(true)
	eventually(t, "the connection is not given up", func() bool { return p.connections() > 1 })
	p.mute.Store(false)
	p.cut()
	bothWays(t, e, 5, func(int) {})
	for _, pair := range stale {
		pair[0].Close()
		pair[1].Close()
	}
}

func TestACancelledContextEndsEveryWait(t *testing.T) {
	p := newProxy(t, serve(t, nil))
	c := dial(t, p.addr, nil)
	e := open(t, c, driftID, nil)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	p.refuse.Store(true)
	p.cut()
	for _, call := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"Open", func(ctx context.Context) error { _, err := c.Open(ctx, driftID, nil); return err }},
		{"Call", func(ctx context.Context) error { _, err := e.Call(ctx, "get_task", nil); return err }},
		{"Step", func(ctx context.Context) error {
			return e.Step(ctx, env.Action{Disc: []int32{0, 0}, Cont: []float32{0, 0}}, ts)
		}},
		{"Reset", func(ctx context.Context) error { return e.Reset(ctx, env.Episode{Window: -1}, ts) }},
	} {
		limited, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if err := call.do(limited); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want %v", call.what, err, context.DeadlineExceeded)
		}
		cancel()
	}
	p.refuse.Store(false)
	// A call that was not sent had no effect, and the environment stays usable.
	bothWays(t, e, 3, func(int) {})
}

func TestACallGivenUpOnItsWayKeepsItsReply(t *testing.T) {
	c, g := dial(t, serve(t, nil), nil), newGate(t)
	e := open(t, c, driftID, map[string]any{"gate": g.number})
	home := newDrift()
	ep := env.Episode{Seed: 21, Window: -1}
	x, y := env.NewTimeStep(home.Spec()), env.NewTimeStep(home.Spec())
	if err := errors.Join(home.Reset(ctx, ep, x), e.Reset(ctx, ep, y)); err != nil {
		t.Fatal(err)
	}
	ch, a := make(chooser, 1), env.NewActions(home.Spec(), 1)
	for step := range 6 {
		ch.choose(home.Spec(), x.Mask, a)
		if err := home.Step(ctx, a.Row(0), x); err != nil {
			t.Fatal(err)
		}
		before := bits(y)
		g.shut()
		limited, cancel := g.givenUp()
		if err := e.Step(limited, a.Row(0), y); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
		if bits(y) != before {
			t.Fatal("the error changed the time step")
		}
		// Another action cannot take its place.
		other := env.Action{Disc: []int32{a.Disc[0], 1 - a.Disc[1]}, Cont: a.Cont}
		if err := e.Step(ctx, other, y); !errors.Is(err, client.ErrPending) || !errors.Is(err, env.ErrResetNeeded) {
			t.Fatalf("another step: %v, want %v", err, client.ErrPending)
		}
		if _, err := e.AppendSnapshot(nil); !errors.Is(err, client.ErrPending) {
			t.Fatalf("AppendSnapshot: %v, want %v", err, client.ErrPending)
		}
		g.open()
		if err := e.Step(ctx, a.Row(0), y); err != nil {
			t.Fatal(err)
		}
		if bits(x) != bits(y) {
			t.Fatalf("step %d:\n%s at home\n%s", step, bits(y), bits(x))
		}
	}
	// A reset drops what is under way.
	ch.choose(home.Spec(), x.Mask, a)
	g.shut()
	limited, cancel := g.givenUp()
	if err := e.Step(limited, a.Row(0), y); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	cancel()
	g.open()
	bothWays(t, e, 22, func(int) {})
}
