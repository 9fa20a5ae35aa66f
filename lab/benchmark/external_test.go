package benchmark

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/envs"
	"clustergym/traces"
)

// playAs plays all windows of the policy called name by a rule, as a program over the bridge would.
func playAs(ctx context.Context, f server.Factory, name, rule string) (err error) {
	m, err := f.Make(ctx, arena.EvalEnv, wire.Map{{Key: "policy", Value: name}}, 1)
	if err != nil {
		return err
	}
	defer m.Account.Release()
	e := m.Envs[0]
	defer func() { err = errors.Join(err, e.Close()) }()
	ts := env.NewTimeStep(e.Spec())
	for range m.Meta.(map[string]any)["windows"].(int) {
		if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
			return err
		}
		for !ts.Kind.Last() {
			a, err := e.(server.Caller).Call("heuristic", wire.Map{{Key: "rule", Value: rule}})
			if err != nil {
				return err
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{int32(a.(int64))}}, ts); err != nil {
				return err
			}
		}
	}
	return nil
}

// Two programs that play rules over the bridge are two runs of one row, with the values of the rules, whether the
// metric is the simulator's or the environment's own. The row has the hash of what they play with.
func TestProgramsAreRunsOfARow(t *testing.T) {
	v := Numbered(1)
	for _, c := range []struct{ task, a, b string }{{"gpupick-proximity-exact", "optimal", "pack"},
		{"queuerank-users-causal", "sjf", "fifo"}} {
		tasks, err := v.Match(c.task)
		if err != nil {
			t.Fatal(err)
		}
		model, dir := filepath.Join(t.TempDir(), "model"), t.TempDir()
		if err := os.WriteFile(model, []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := &Policy{Name: "programs", Kind: KindExternal, Files: []string{model}, External: &arena.External{
			Names: []string{"one", "two"}, Timeout: time.Minute, Serve: func(ctx context.Context, f server.Factory) error {
				err := errors.Join(playAs(context.WithoutCancel(ctx), f, "one", c.a),
					playAs(context.WithoutCancel(ctx), f, "two", c.b))
				if err == nil {
					<-ctx.Done()
				}
				return err
			},
		}}
		r, err := v.Play(t.Context(), p, Options{Dir: dir, Tasks: tasks})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{c.a, c.b} {
			want, err := v.Play(t.Context(), rule(name, name+"@slots"), Options{Dir: t.TempDir(), Tasks: tasks})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Tasks[0].Values) != 2 || !reflect.DeepEqual(r.Tasks[0].Values[i], want.Tasks[0].Values[0]) {
				t.Errorf("%s: program %d has other values than %s@slots", c.task, i+1, name)
			}
		}
		// Another model is another policy, for which the folder has no results.
		if err := os.WriteFile(model, []byte("2"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Play(t.Context(), p, Options{Dir: dir, Tasks: tasks}); err == nil ||
			!strings.Contains(err.Error(), "holds the results of another policy") {
			t.Errorf("%s: another model in the same folder: %v", c.task, err)
		}
		if r.policyHash("1") == r.policyHash("2") {
			t.Errorf("%s: two models have one hash", c.task)
		}
	}
}

// wireMap returns nested arguments as a client sends them.
func wireMap(m map[string]any) wire.Map {
	var out wire.Map
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := m[k]
		if sub, ok := v.(map[string]any); ok {
			v = wireMap(sub)
		}
		out = append(out, wire.Pair{Key: k, Value: v})
	}
	return out
}

// The arguments of show --kwargs make the environment of the task: on the training part it takes the same steps.
func TestKwargsMakeTheTasksEnvironment(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine beside those of decompression, in which no race can be; make unit runs this test")
	}
	v := Numbered(1)
	tasks, err := v.Match("preempt-dear-causal", "queuerank-gangs-exact", "gpupick-helios-128-exact",
		"delayoffer-las-causal", "dagplace-busy", "workerplace-ps")
	if err != nil {
		t.Fatal(err)
	}
	registry, err := envs.NewRegistry(envs.DefaultRegistryConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		kwargs, err := task.Kwargs()
		if err != nil {
			t.Fatal(err)
		}
		m, err := registry.Make(t.Context(), cfg.Env.ID, wireMap(kwargs), 1)
		if err != nil {
			t.Errorf("%s: %v", task.Name, err)
			continue
		}
		w, err := arena.NewScenario(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		want, err := w.About.Open(w.Settings, w.Source, traces.Training)
		if err != nil {
			t.Fatal(err)
		}
		a, b := env.NewTimeStep(m.Envs[0].Spec()), env.NewTimeStep(want.Spec())
		ep := env.Episode{Seed: 5, Window: -1}
		if err := errors.Join(m.Envs[0].Reset(t.Context(), ep, a), want.Reset(t.Context(), ep, b)); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			if !slices.Equal(a.Obs, b.Obs) || !slices.Equal(a.Mask, b.Mask) || a.Reward != b.Reward || a.Kind != b.Kind {
				t.Fatalf("%s: the environments differ", task.Name)
			}
			if a.Kind.Last() {
				break
			}
			act := env.Action{Disc: []int32{int32(slices.Index(a.Mask, true))}}
			if err := errors.Join(m.Envs[0].Step(t.Context(), act, a), want.Step(t.Context(), act, b)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(m.Envs[0].Close(), want.Close()); err != nil {
			t.Error(err)
		}
		m.Release()
	}
}

// leaves begins a window, takes a step of it, and goes.
func leaves(ctx context.Context, f server.Factory) error {
	m, err := f.Make(ctx, arena.EvalEnv, nil, 1)
	if err != nil {
		return err
	}
	defer m.Account.Release()
	e := m.Envs[0]
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
		return err
	}
	return errors.Join(e.Step(ctx, env.Action{Disc: []int32{int32(slices.Index(ts.Mask, true))}}, ts), e.Close())
}

// A program that leaves a window has no results. If it begins again, the results say so, and are no row; sealed windows
// are not begun again.
func TestAProgramHasOneTry(t *testing.T) {
	v, secret := Numbered(1), Draw()
	v.Commitment = secret.Commitment()
	tasks, err := v.Match("gpupick-proximity-exact")
	if err != nil {
		t.Fatal(err)
	}
	by := func(play func(ctx context.Context, f server.Factory) error) *Policy {
		return &Policy{Name: "program", Kind: KindExternal, External: &arena.External{
			Names: []string{"program"}, Timeout: time.Minute, Serve: func(ctx context.Context, f server.Factory) error {
				err := play(context.WithoutCancel(ctx), f)
				if err == nil {
					<-ctx.Done()
				}
				return err
			},
		}}
	}
	whole := func(ctx context.Context, f server.Factory) error { return playAs(ctx, f, "program", "optimal") }
	for _, s := range []*Secret{nil, &secret} {
		opt := Options{Dir: t.TempDir(), Tasks: tasks, Secret: s}
		if _, err := v.Play(t.Context(), by(leaves), opt); err == nil ||
			!strings.Contains(err.Error(), "policy program left window 0 before its end, and each window is played once") {
			t.Fatalf("got %v", err)
		}
		r, err := v.Play(t.Context(), by(whole), opt)
		if s != nil {
			if err == nil || !strings.Contains(err.Error(), "a program has begun its sealed windows") {
				t.Errorf("sealed windows were begun twice: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Tasks[0].Tries != 2 {
			t.Errorf("%d tries, expected 2", r.Tasks[0].Tries)
		}
		if _, err := v.NewRow(r, "", "", []string{"x"}, Program{}); err == nil ||
			!strings.Contains(err.Error(), "a row has one try") {
			t.Errorf("got %v", err)
		}
		opt.Dir = t.TempDir()
		if r, err = v.Play(t.Context(), by(whole), opt); err != nil || r.Tasks[0].Tries != 0 {
			t.Errorf("an honest program: %v", err)
		}
	}
}
