package arena

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/lab/config"
	"clustergym/traces"
)

// tiny is an evaluation on small windows.
func tiny(t *testing.T, policies string) *config.Config {
	t.Helper()
	cfg := config.For(jobselect.V1)
	for _, set := range []string{"trace.synth.jobs=2000", "env.window=16", "env.warm=16", "env.load=3", "eval.windows=3",
		"eval.whole=false", "eval.seeds=2", "eval.policies=[" + policies + "]"} {
		if err := cfg.Set(set); err != nil {
			t.Fatal(err)
		}
	}
	return &cfg
}

// Games have the same results in any order, on any number of workers, and in a runner that has played before.
func TestGamesHaveTheSameResultsInAnyOrder(t *testing.T) {
	cfg := tiny(t, "fifo+skip, random+skip, sjf@slots, random@slots")
	w, err := NewScenario(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.testing(t.Context(), cfg, &EvalOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	r.entire = true
	play := func(games []game) map[game]string {
		var mu sync.Mutex
		got := map[game]string{}
		err := r.run(t.Context(), games, func(g game, x result) {
			mu.Lock()
			defer mu.Unlock()
			got[g] = fmt.Sprintf("%+v", x)
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	games := r.games()
	// Two policies draw: they play each of 3 windows twice, and all four play the whole part.
	if len(games) != 3+6+3+6+4 || len(games) != r.counts() {
		t.Fatalf("%d games, %d are counted", len(games), r.counts())
	}
	straight := play(games)
	slices.Reverse(games)
	r.workers = 3
	if got := play(games); !reflect.DeepEqual(got, straight) {
		t.Errorf("backwards %v, want %v", got, straight)
	}
	same := true
	for i := range r.episodes {
		same = same && straight[game{3, 0, i}] == straight[game{3, 1, i}]
	}
	if same {
		t.Error("a policy that draws plays every window twice in the same way")
	}
}

func TestProgressCountsEveryGameOnce(t *testing.T) {
	cfg := tiny(t, "fifo+skip, random@slots")
	var seen []int
	_, err := Evaluate(t.Context(), *cfg, EvalOptions{Workers: 2, Game: func(done, all int) {
		if seen = append(seen, done); all != 9 {
			t.Errorf("%d games in all, want 9", all)
		}
	}})
	if err != nil || !slices.Equal(seen, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("counted %v: %v", seen, err)
	}
}

func TestACancelledRunnerStops(t *testing.T) {
	cfg := tiny(t, "fifo+skip, sjf+skip")
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	_, err := Evaluate(ctx, *cfg, EvalOptions{Workers: 1, Game: func(int, int) { n++; stop() }})
	if ctx.Err() == nil || err == nil || n != 1 {
		t.Errorf("%d games after it was cancelled, %v", n, err)
	}
}

// Windows of a study come in order, and the error names the window.
func TestEachWindowIsPlayedOnce(t *testing.T) {
	cfg := tiny(t, "fifo+skip")
	w, err := NewScenario(cfg)
	if err != nil {
		t.Fatal(err)
	}
	open := func(sched.Arena) (func(i int) (int, error), error) {
		return func(i int) (int, error) { return i * i, nil }, nil
	}
	got, err := EachWindow(t.Context(), w, traces.Test, 5, 3, open)
	if err != nil || !slices.Equal(got, []int{0, 1, 4, 9, 16}) {
		t.Errorf("%v, %v", got, err)
	}
	_, err = EachWindow(t.Context(), w, traces.Test, 5, 3, func(sched.Arena) (func(i int) (int, error), error) {
		return func(i int) (int, error) {
			if i > 1 {
				return 0, context.DeadlineExceeded
			}
			return 0, nil
		}, nil
	})
	if err == nil || err.Error() != "window 2: context deadline exceeded" {
		t.Errorf("error %v", err)
	}
}
