package benchmark

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/bridge/server"
	"clustergym/env/bridge/wire"
	"clustergym/experiments/arena"
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

// Two programs that play rules over the bridge are two runs of one row, with the values of the rules, whether the metric is the
// simulator's or the environment's own. The row has the hash of what they play with.
func TestProgramsAreRunsOfARow(t *testing.T) {
	v := Current()
	for _, c := range []struct{ task, a, b string }{{"gpupick-proximity-exact", "optimal", "pack"}, {"queuerank-users-causal", "sjf", "fifo"}} {
		tasks, err := v.Match(c.task)
		if err != nil {
			t.Fatal(err)
		}
		model := filepath.Join(t.TempDir(), "model")
		var hashes []string
		for _, weights := range []string{"1", "2"} {
			if err := os.WriteFile(model, []byte(weights), 0o600); err != nil {
				t.Fatal(err)
			}
			p := &Policy{Name: "programs", Kind: KindExternal, Files: []string{model}, External: &arena.External{
				Names: []string{"one", "two"}, Timeout: time.Minute, Serve: func(ctx context.Context, f server.Factory) error {
					err := errors.Join(playAs(context.WithoutCancel(ctx), f, "one", c.a), playAs(context.WithoutCancel(ctx), f, "two", c.b))
					if err == nil {
						<-ctx.Done()
					}
					return err
				},
			}}
			r, err := v.Play(t.Context(), p, Options{Dir: t.TempDir(), Tasks: tasks})
			if err != nil {
				t.Fatal(err)
			}
			hashes = append(hashes, r.Hash)
			for i, name := range []string{c.a, c.b} {
				want, err := v.Play(t.Context(), rule(name, name+"@slots"), Options{Dir: t.TempDir(), Tasks: tasks})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Tasks[0].Values) != 2 || !reflect.DeepEqual(r.Tasks[0].Values[i], want.Tasks[0].Values[0]) {
					t.Errorf("%s: program %d has other values than %s@slots", c.task, i+1, name)
				}
			}
		}
		if hashes[0] == hashes[1] {
			t.Errorf("%s: two models have one hash", c.task)
		}
	}
}
