package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/client"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
)

// atHome returns the result of an evaluation whose external policies fn plays in this process, without a server.
func atHome(timeout time.Duration, fn func(ctx context.Context, f server.Factory) error,
	names ...string) *arena.External {
	return &arena.External{Names: names, Timeout: timeout, Serve: func(ctx context.Context, f server.Factory) error {
		// As a server's clients, the policies may play on for a while after the last window.
		if err := fn(context.WithoutCancel(ctx), f); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}}
}

// evalRun compares few policies on four windows.
func evalRun() config.Config {
	cfg := tinyRun("ppo")
	cfg.Eval.Policies, cfg.Eval.Whole = []string{"sjf@slots", "fifo+skip"}, false
	cfg.Eval.Protocol = config.OnWindows
	return cfg
}

func open(ctx context.Context, f server.Factory, policy string, n int) (*server.Made, error) {
	return f.Make(ctx, arena.EvalEnv, wire.Map{{Key: "policy", Value: policy}}, n)
}

// playRule plays n episodes with the actions of rule.
func playRule(ctx context.Context, e env.Env, rule string, episodes int) error {
	ts := env.NewTimeStep(e.Spec())
	for range episodes {
		if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
			return err
		}
		if err := playOn(ctx, e, rule, ts, -1); err != nil {
			return err
		}
	}
	return nil
}

// playOn plays n steps, or to the end if n is negative.
func playOn(ctx context.Context, e env.Env, rule string, ts *env.TimeStep, n int) error {
	for ; n != 0 && !ts.Kind.Last(); n-- {
		a, err := e.(server.Caller).Call("heuristic", wire.Map{{Key: "rule", Value: rule}})
		if err != nil {
			return err
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{int32(a.(int64))}}, ts); err != nil {
			return err
		}
	}
	return nil
}

func closeAll(m *server.Made) (err error) {
	for _, e := range m.Envs {
		err = errors.Join(err, e.Close())
	}
	return err
}

// row finds a policy's row.
func row(t *testing.T, r *report.Report, name string) *report.PolicyReport {
	t.Helper()
	for i := range r.Policies {
		if r.Policies[i].Name == name {
			return &r.Policies[i]
		}
	}
	t.Fatalf("there is no row %s", name)
	return nil
}

// sameRow compares the row called name with that of sjf@slots.
func sameRow(t *testing.T, r *report.Report, name string) {
	t.Helper()
	got, want := row(t, r, name), row(t, r, "sjf@slots")
	if got.Kind != "external" || got.Missing != "" || got.Metrics == nil ||
		fmt.Sprint(*got.Metrics) != fmt.Sprint(*want.Metrics) {
		t.Errorf("%s: %+v, want the row of sjf@slots: %+v", name, got, want)
	}
}

// A client that plays SJF over a connection gets exactly the result of sjf@slots.
func TestAnExternalPolicyGetsTheRowOfItsEqual(t *testing.T) {
	addr := make(chan string, 1)
	cfg := evalRun()
	cfg.Eval.Whole = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	played := make(chan error, 1)
	go func() { played <- playRemotely(ctx, addr, "remote sjf", cfg.Eval.Windows) }()
	games, all := 0, 0
	r, err := arena.Evaluate(ctx, cfg, arena.EvalOptions{
		Workers: 1, Game: func(done, of int) { games, all = done, of },
		External: &arena.External{Names: []string{"remote sjf"}, Timeout: 30 * time.Second,
			Serve: func(ctx context.Context, f server.Factory) error {
				c := server.DefaultConfig()
				c.DrainTimeout = 5 * time.Second
				s, err := server.New(c, f, slog.New(slog.NewTextHandler(io.Discard, nil)))
				if err != nil {
					return err
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return err
				}
				addr <- l.Addr().String()
				return s.Serve(ctx, l)
			}},
	})
	if err := <-played; err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	sameRow(t, r, "remote sjf")
	if games != all || all != 3*cfg.Eval.Windows+2 {
		t.Errorf("%d of %d games, want %d", games, all, 3*cfg.Eval.Windows+2)
	}
	// It is what the comparison is about, on the same windows as the others.
	pairs := ""
	for _, p := range r.Paired {
		pairs += p.A + "/" + p.B + " "
		if p.B == "sjf@slots" && (p.Difference != 0 || p.WinRate != 0.5) {
			t.Errorf("against its equal: %+v", p)
		}
	}
	if want := strings.Repeat("remote sjf/sjf@slots ", 2) + strings.Repeat("remote sjf/fifo+skip ", 2); pairs != want {
		t.Errorf("pairs %s, want %s", pairs, want)
	}
	if len(r.Whole.Policies) != 2 {
		t.Errorf("the whole part was played by %d policies, want those that are here", len(r.Whole.Policies))
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "agent vs it") ||
		!strings.Contains(table.String(), "remote sjf is faster") {
		t.Errorf("%v, %s", err, table.String())
	}
}

func playRemotely(ctx context.Context, addr <-chan string, policy string, windows int) error {
	var at string
	select {
	case at = <-addr:
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := client.Dial(ctx, client.Config{URL: "ws://" + at})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // the session ends with the server at the latest
	if _, err := c.Open(ctx, "JobSelect-v1", nil); err == nil || !strings.Contains(err.Error(), "eval") {
		return fmt.Errorf("another environment: %v", err)
	}
	e, err := c.Open(ctx, arena.EvalEnv, map[string]any{"policy": policy})
	if err != nil {
		return err
	}
	if n := e.Meta().Get("windows"); n != int64(windows) {
		return fmt.Errorf("meta.windows is %v, want %d", n, windows)
	}
	ts := env.NewTimeStep(e.Spec())
	for i := range windows {
		if err := e.Reset(ctx, env.Episode{Seed: uint64(1000 * i), Window: -1}, ts); err != nil {
			return err
		}
		for !ts.Kind.Last() {
			a, err := e.Call(ctx, "heuristic", map[string]any{"rule": "sjf"})
			if err != nil {
				return err
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{int32(a.(int64))}}, ts); err != nil {
				return err
			}
		}
	}
	return e.Close()
}

// Every window counts once in any order of play: begun again, left and continued by another client, in several rows at
// once, with rows that continue after the last window.
func TestEveryWindowCountsOnceHoweverItIsPlayed(t *testing.T) {
	for name, play := range map[string]func(ctx context.Context, f server.Factory) error{
		"a window is begun again": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 1)
			if err != nil {
				return err
			}
			ts := env.NewTimeStep(m.Envs[0].Spec())
			for range 3 {
				if err := m.Envs[0].Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
					return err
				}
				if err := playOn(ctx, m.Envs[0], "fifo", ts, 5); err != nil {
					return err
				}
			}
			return errors.Join(playRule(ctx, m.Envs[0], "sjf", 4), closeAll(m))
		},
		"a client leaves and another goes on": func(ctx context.Context, f server.Factory) error {
			gone, err := open(ctx, f, "x", 1)
			if err != nil {
				return err
			}
			if err := playRule(ctx, gone.Envs[0], "sjf", 1); err != nil {
				return err
			}
			ts := env.NewTimeStep(gone.Envs[0].Spec())
			if err := gone.Envs[0].Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
				return err
			}
			m, err := open(ctx, f, "x", 1) // the first is not closed yet: its connection was lost
			if err != nil {
				return err
			}
			if left := m.Meta.(map[string]any)["windows"]; left != 3 {
				return fmt.Errorf("%v windows are left, want 3", left)
			}
			return errors.Join(playRule(ctx, m.Envs[0], "sjf", 3), closeAll(gone), closeAll(m))
		},
		"rows at once": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 3)
			if err != nil {
				return err
			}
			return playRows(ctx, m.Envs)
		},
		"more rows than windows": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 7)
			if err != nil {
				return err
			}
			return playRows(ctx, m.Envs)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := arena.Evaluate(t.Context(), evalRun(),
				arena.EvalOptions{Workers: 1, External: atHome(30*time.Second, play, "x")})
			if err != nil {
				t.Fatal(err)
			}
			sameRow(t, r, "x")
		})
	}
}

// playRows plays several rows until eight episodes have ended; the end of each episode begins the next one.
func playRows(ctx context.Context, envs []env.Env) error {
	v, err := vec.New(vec.Config{Autoreset: vec.SameStep}, envs...)
	if err != nil {
		return err
	}
	b, a := env.NewBatch(v.Spec(), v.Len()), env.NewActions(v.Spec(), v.Len())
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		return err
	}
	for ended := 0; ended < 8; ended += len(b.FinalRows) {
		for i, e := range envs {
			x, err := e.(server.Caller).Call("heuristic", wire.Map{{Key: "rule", Value: "sjf"}})
			if err != nil {
				return err
			}
			a.Disc[i] = int32(x.(int64))
		}
		if err := v.Step(ctx, nil, a, b); err != nil {
			return err
		}
	}
	return v.Close()
}

// An unfinished policy gets a row without numbers; the others are compared as if it did not exist.
func TestAPolicyThatDoesNotFinishIsMissing(t *testing.T) {
	cfg := evalRun()
	play := func(ctx context.Context, f server.Factory) error {
		for _, p := range []struct {
			policy   string
			episodes int
		}{{"half", 2}, {"done", 4}} {
			m, err := open(ctx, f, p.policy, 1)
			if err != nil {
				return err
			}
			if err := errors.Join(playRule(ctx, m.Envs[0], "sjf", p.episodes), closeAll(m)); err != nil {
				return err
			}
		}
		return nil
	}
	r, text := evaluate(t, cfg, arena.EvalOptions{External: atHome(50*time.Millisecond, play, "half", "never", "done")})
	sameRow(t, r, "done")
	for name, want := range map[string]string{"half": "finished 2 of 4 windows", "never": "finished 0 of 4 windows"} {
		if p := row(t, r, name); p.Missing != want || p.Metrics != nil || p.Kind != "external" {
			t.Errorf("%s: %+v, want %q", name, p, want)
		}
	}
	if !strings.Contains(text, `{"name":"half","kind":"external","missing":"finished 2 of 4 windows"}`) {
		t.Errorf("the document: %s", text)
	}
	for _, p := range r.Paired {
		if p.A != "done" || p.B == "half" || p.B == "never" {
			t.Errorf("%s is compared with %s", p.A, p.B)
		}
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil ||
		!strings.Contains(table.String(), "half missing: finished 2 of 4 windows\n") {
		t.Errorf("%v, %s", err, table.String())
	}
	cfg.Eval.Policies = nil
	r, _ = evaluate(t, cfg, arena.EvalOptions{External: atHome(time.Millisecond, func(context.Context, server.Factory) error { return nil }, "nobody")})
	table.Reset()
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "nobody missing") ||
		len(r.Paired) != 0 {
		t.Errorf("%v, %s", err, table.String())
	}
}

func TestOpeningAnEvaluationChecksItsArguments(t *testing.T) {
	play := func(ctx context.Context, f server.Factory) error {
		var errs []error
		check := func(err error, code wire.Code, want string) {
			var e *wire.Error
			if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Error(), want) {
				errs = append(errs, fmt.Errorf("got %v, want %s with %q", err, code, want))
			}
		}
		kwargs := func(key string, v any) wire.Map { return wire.Map{{Key: key, Value: v}} }
		_, err := f.Make(ctx, "JobSelect-v1", nil, 1)
		check(err, wire.UnknownEnv, "eval")
		_, err = f.Make(ctx, arena.EvalEnv, kwargs("policy", "zz"), 1)
		check(err, wire.BadKwargs, `"zz"; want one of a, b`)
		_, err = f.Make(ctx, arena.EvalEnv, nil, 1)
		check(err, wire.BadKwargs, "one of a, b")
		_, err = f.Make(ctx, arena.EvalEnv, kwargs("policy", int64(1)), 1)
		check(err, wire.BadKwargs, "a string")
		_, err = f.Make(ctx, arena.EvalEnv, kwargs("window", int64(1)), 1)
		check(err, wire.BadKwargs, `"window"; want policy`)
		m, err := open(ctx, f, "a", 1)
		if err != nil {
			return err
		}
		e := m.Envs[0]
		if l := f.List(); len(l) != 1 || l[0].ID != arena.EvalEnv || l[0].SHA != m.SHA || len(m.SHA) != 64 ||
			fmt.Sprintf("%+v", l[0].Spec) != fmt.Sprintf("%+v", e.Spec()) {
			errs = append(errs, fmt.Errorf("listed: %+v", l))
		}
		if _, ok := e.(env.Snapshotter); ok {
			errs = append(errs, errors.New("windows can be saved and played again"))
		}
		ts := env.NewTimeStep(e.Spec())
		for _, ep := range []env.Episode{{Split: "train", Window: -1}, {Window: 2}, {Task: []float64{1}, Window: -1}} {
			if err := e.Reset(ctx, ep, ts); !errors.Is(err, env.ErrEpisode) {
				errs = append(errs, fmt.Errorf("%+v: %v", ep, err))
			}
		}
		if err := errors.Join(playRule(ctx, e, "sjf", 4), closeAll(m)); err != nil {
			return err
		}
		if err := e.Reset(ctx, env.Episode{Window: -1}, ts); !errors.Is(err, env.ErrClosed) {
			errs = append(errs, fmt.Errorf("after Close: %v", err))
		}
		_, err = open(ctx, f, "a", 1)
		check(err, wire.BadKwargs, "policy a has played all its windows")
		b, err := open(ctx, f, "b", 1)
		if err != nil {
			return err
		}
		return errors.Join(append(errs, playRule(ctx, b.Envs[0], "sjf", 4), closeAll(b))...)
	}
	r, err := arena.Evaluate(t.Context(), evalRun(),
		arena.EvalOptions{Workers: 1, External: atHome(30*time.Second, play, "a", "b")})
	if err != nil {
		t.Fatal(err)
	}
	sameRow(t, r, "a")
	sameRow(t, r, "b")
}

func TestAnEvaluationEndsWhenItsServerFails(t *testing.T) {
	boom := errors.New("boom")
	for name, serve := range map[string]func(context.Context, server.Factory) error{
		"boom":             func(context.Context, server.Factory) error { return boom },
		"server":           func(context.Context, server.Factory) error { return nil },
		"context canceled": nil,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		x := &arena.External{Names: []string{"x"}, Timeout: time.Hour, Serve: serve}
		if serve == nil {
			x.Serve = func(ctx context.Context, _ server.Factory) error {
				cancel()
				<-ctx.Done()
				return nil
			}
		}
		if _, err := arena.Evaluate(ctx, evalRun(), arena.EvalOptions{Workers: 1, External: x}); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func TestExternalPoliciesAreNamedApart(t *testing.T) {
	for want, x := range map[string]arena.External{
		"sjf@slots is named twice": {Names: []string{"sjf@slots"}, Timeout: time.Second},
		"names that differ":        {Names: []string{"a", "a"}, Timeout: time.Second},
		"printable":                {Names: []string{"a\n"}, Timeout: time.Second},
		"external_timeout":         {Names: []string{"a"}},
		"the name of a policy":     {Timeout: time.Second},
	} {
		_, err := arena.Evaluate(t.Context(), evalRun(), arena.EvalOptions{Workers: 1, External: &x})
		refused(t, want, err, want)
	}
	if n := len(fault.All((&arena.External{}).Validate())); n != 2 {
		t.Errorf("%d faults of nothing, want 2", n)
	}
}
