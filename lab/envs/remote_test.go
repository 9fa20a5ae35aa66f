package envs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"clustergym/bridge/client"
	"clustergym/bridge/conformance"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/env/jobselect"
	"clustergym/internal/rng"
)

// serveRegistry serves the environments of r until the test ends, and returns the URL.
func serveRegistry(t *testing.T, r *Registry) string {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.DrainTimeout, cfg.MaxSessions, cfg.MaxHandles = time.Second, 16, 16
	s, err := server.New(cfg, NewFactory(r), slog.New(slog.DiscardHandler))
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

// asMap returns kwargs in the form of a client.
func asMap(m wire.Map) map[string]any {
	out := map[string]any{}
	for _, p := range m {
		out[p.Key] = p.Value
	}
	return out
}

// Over a connection, the scheduling environment has the same contract and the same bits.
func TestRemoteJobSelectIsTheOneAtHome(t *testing.T) {
	r := registry(t, nil)
	c, err := client.Dial(t.Context(), client.Config{URL: serveRegistry(t, r), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it is always nil
	away := func() *client.Env {
		e, err := c.Open(t.Context(), jobselect.V1, asMap(smallKwargs()))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	t.Run("contract", func(t *testing.T) {
		envtest.Run(t, func() env.Env { return away() }, envtest.Episodes(1), envtest.Cap(200))
	})
	home, e := makeEnvs(t, r, jobselect.V1, smallKwargs(), 1).Envs[0], away()
	s, far := home.Spec(), e.Spec()
	if math.IsNaN(s.Solved) && math.IsNaN(far.Solved) {
		s.Solved, far.Solved = 0, 0
	}
	if !reflect.DeepEqual(s, far) {
		t.Errorf("spec %+v, at home %+v", far, s)
	}
	x, y := env.NewTimeStep(s), env.NewTimeStep(s)
	for _, ep := range []env.Episode{
		{Seed: 4, Window: -1}, {Seed: 5, Window: 0}, {Seed: 6, Window: 1, Split: env.SplitTest},
		{Seed: 7, Window: -1, Split: env.SplitValidation},
	} {
		if err := errors.Join(home.Reset(t.Context(), ep, x), e.Reset(t.Context(), ep, y)); err != nil {
			t.Fatal(err)
		}
		for step := uint64(0); ; step++ {
			if a, b := bitsOf(x), bitsOf(y); a != b {
				t.Fatalf("%+v, step %d:\n%s, at home\n%s", ep, step, b, a)
			}
			if x.Kind.Last() {
				break
			}
			a := env.Action{Disc: []int32{0}}
			for k := rng.At(ep.Seed, step) % uint64(len(x.Mask)); ; k = (k + 1) % uint64(len(x.Mask)) {
				if x.Mask[k] {
					a.Disc[0] = int32(k)
					break
				}
			}
			if err := errors.Join(home.Step(t.Context(), a, x), e.Step(t.Context(), a, y)); err != nil {
				t.Fatal(err)
			}
		}
		var picture, there bytes.Buffer
		if err := errors.Join(home.(env.Renderer).Render(&picture, "ansi"), e.Render(&there, "ansi")); err != nil ||
			picture.String() != there.String() {
			t.Errorf("the picture is\n%s at home\n%s (error %v)", there.String(), picture.String(), err)
		}
		here, far := env.NewFrame(), env.NewFrame()
		if err := errors.Join(home.(env.Painter).Paint(here), e.Paint(far)); err != nil || !bytes.Equal(here.Pix, far.Pix) {
			t.Errorf("the pixels differ from those at home (error %v)", err)
		}
	}
	if err := e.Reset(t.Context(), env.Episode{Window: 1 << 20}, y); !errors.Is(err, env.ErrEpisode) {
		t.Errorf("a window that is not there: %v, want %v", err, env.ErrEpisode)
	}
}

// bitsOf returns a time step as text in which NaN equals itself.
func bitsOf(ts *env.TimeStep) string {
	info := make([]uint64, len(ts.Info))
	for i, v := range ts.Info {
		if info[i] = math.Float64bits(v); math.IsNaN(v) {
			info[i] = 1
		}
	}
	return fmt.Sprintf("%v %x %d %x %v %x", ts.Kind, math.Float64bits(ts.Reward), ts.Elapsed, ts.Obs, ts.Mask, info)
}

// A server of the registry obeys the protocol with a scheduling environment.
func TestTheServedRegistryKeepsTheProtocol(t *testing.T) {
	conformance.Run(t,
		conformance.Target{URL: serveRegistry(t, registry(t, nil)), Env: jobselect.V1, Kwargs: asMap(smallKwargs())})
}
