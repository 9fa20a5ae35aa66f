package client_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"clustergym/bridge/client"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/control"
)

var ctx = context.Background()

// factory makes the problems of package control, and drift.
type factory struct{}

func (factory) List() []server.Listing {
	var all []server.Listing
	for _, id := range append(control.IDs(), driftID) {
		e, err := local(id)
		if err != nil {
			panic(err)
		}
		all = append(all, server.Listing{ID: id, Spec: e.Spec()})
	}
	return all
}

func local(id string) (env.Env, error) {
	if id == driftID {
		return newDrift(), nil
	}
	return control.New(id)
}

func (factory) Make(_ context.Context, id string, kwargs wire.Map, n int) (*server.Made, error) {
	made := &server.Made{Meta: map[string]any{"colour": "red"}, SHA: "abc"}
	for _, p := range kwargs {
		if p.Key != "slow" && p.Key != "gate" || id != driftID {
			return nil, wire.Errorf(wire.BadKwargs, "%s has no kwarg %q", id, p.Key)
		}
	}
	slow, e := kwargs.Int("slow", 0, 0, 10_000)
	if e != nil {
		return nil, e
	}
	number, e := kwargs.Int("gate", 0, 0, 1<<30)
	if e != nil {
		return nil, e
	}
	for range n {
		e, err := local(id)
		if err != nil {
			return nil, wire.Errorf(wire.UnknownEnv, "%v", err)
		}
		if d, ok := e.(*drift); ok {
			d.slow = time.Duration(slow) * time.Millisecond
			if g, ok := gates.Load(int(number)); ok {
				d.gate = g.(*gate)
			}
		}
		made.Envs = append(made.Envs, e)
	}
	return made, nil
}

// serve runs a server until the test ends and returns its address.
func serve(t testing.TB, change func(*server.Config)) string {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.DrainTimeout = time.Second
	if change != nil {
		change(&cfg)
	}
	s, err := server.New(cfg, factory{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := s.Serve(run, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return l.Addr().String()
}

// dial begins a session that ends with the test.
func dial(t testing.TB, addr string, change func(*client.Config)) *client.Client {
	t.Helper()
	cfg := client.Config{URL: "ws://" + addr, Timeout: 10 * time.Second}
	if change != nil {
		change(&cfg)
	}
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

func open(t testing.TB, c *client.Client, id string, kwargs map[string]any) *client.Env {
	t.Helper()
	e, err := c.Open(ctx, id, kwargs)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
