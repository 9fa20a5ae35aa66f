package conformance

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/internal/raced"
)

var (
	target = flag.String("url", "",
		"a server to test, ws://host:port or wss://host:port; without it the project's own is tested")
	token    = flag.String("token", "", "the token to show")
	envID    = flag.String("env", "InvalidAction-v1", "the environment to play: discrete actions, episodes that end")
	helloFor = flag.Duration("hello-timeout", 0, "the server's limit of the hello; 0 leaves it untested")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

// factory makes the problems of package control.
type factory struct{}

func (factory) List() []server.Listing {
	var all []server.Listing
	for _, id := range control.IDs() {
		e, err := control.New(id)
		if err != nil {
			panic(err)
		}
		all = append(all, server.Listing{ID: id, Spec: e.Spec()})
	}
	return all
}

func (factory) Make(_ context.Context, id string, kwargs wire.Map, n int) (*server.Made, error) {
	made := &server.Made{}
	for _, p := range kwargs {
		return nil, wire.Errorf(wire.BadKwargs, "no kwarg %.40q", p.Key)
	}
	for range n {
		e, err := control.New(id)
		if err != nil {
			return nil, wire.Errorf(wire.UnknownEnv, "%v", err)
		}
		if id == "InvalidAction-v1" {
			e = &rated{e.(saver)}
		}
		made.Envs = append(made.Envs, e)
	}
	return made, nil
}

// rated adds a metric to an environment of package control, which has none.
type rated struct{ saver }

type saver interface {
	env.Env
	env.Snapshotter
	env.Renderer
}

func (e *rated) Spec() env.Spec {
	s := e.saver.Spec()
	s.Info = append(slices.Clone(s.Info), env.Field{Name: "last_reward", Metric: true})
	return s
}

// rate writes the metric of ts, which the environment inside has filled.
func (e *rated) rate(ts *env.TimeStep) {
	v := &ts.Info[len(ts.Info)-1]
	if *v = math.NaN(); ts.Kind.Last() {
		*v = ts.Reward
	}
}

func (e *rated) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	err := e.saver.Reset(ctx, ep, ts)
	if err == nil {
		e.rate(ts)
	}
	return err
}

func (e *rated) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	err := e.saver.Step(ctx, a, ts)
	if err == nil {
		e.rate(ts)
	}
	return err
}

func (e *rated) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	err := e.saver.RestoreSnapshot(src, ts)
	if err == nil {
		e.rate(ts)
	}
	return err
}

// serve runs the project's server until the test ends.
func serve(t *testing.T, change func(*server.Config)) string {
	cfg := server.DefaultConfig()
	cfg.MaxSessions, cfg.MaxHandles, cfg.MaxFrameIn = 12, 12, 1<<20
	cfg.HelloTimeout, cfg.DrainTimeout = 300*time.Millisecond, time.Second
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
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := s.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return "ws://" + l.Addr().String()
}

func TestConformance(t *testing.T) {
	if *target != "" {
		Run(t, Target{URL: *target, Token: *token, Env: *envID, HelloTimeout: *helloFor})
		return
	}
	const secret = "a secret of the test"
	ids := []string{"InvalidAction-v1", "CartPole-v1"}
	if raced.On {
		ids = ids[:1]
	}
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			url := serve(t, func(cfg *server.Config) { cfg.Tokens = []server.Token{{Role: server.RoleEnv, Secret: secret}} })
			Run(t, Target{URL: url, Token: secret, Env: id, HelloTimeout: 300 * time.Millisecond})
		})
	}
	t.Run("without tokens", func(t *testing.T) {
		url := serve(t, nil)
		for _, claim := range claims[:16] {
			if err := verify(t.Context(), Target{URL: url, Env: "Bandit-v1", HelloTimeout: 300 * time.Millisecond},
				claim.check); err != nil {
				if _, skipped := err.(skip); !skipped {
					t.Error(fmt.Errorf("%s: %w", claim.name, err))
				}
			}
		}
	})
}
