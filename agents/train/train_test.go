package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/fault"
)

func TestAnIntervalIsCrossedWhenAMultipleIsReachedOrPassed(t *testing.T) {
	for _, c := range []struct {
		from, to, every int64
		want            bool
	}{
		{0, 3, 5, false}, {3, 6, 5, true}, {4, 5, 5, true}, {5, 8, 5, false}, {0, 5, 5, true}, {9, 21, 5, true},
		{0, 100, 0, false}, {0, 1, 1, true},
	} {
		if got := crossed(c.from, c.to, c.every); got != c.want {
			t.Errorf("from %d to %d, every %d: %v, want %v", c.from, c.to, c.every, got, c.want)
		}
	}
}

// hooks note their calls as "log 6".
func hooks(calls *[]string) Hooks {
	note := func(what string, step int64) error {
		*calls = append(*calls, fmt.Sprint(what, " ", step))
		return nil
	}
	return Hooks{
		Log:        func(r Record) error { return note("log", r.Step) },
		Evaluate:   func(step int64) error { return note("eval", step) },
		Checkpoint: func(step int64) error { return note("save", step) },
	}
}

func TestHooksAreCalledWhereIntervalsAreCrossed(t *testing.T) {
	// Three rows: the steps are 3, 6, 9, 12, 15, 18 and 21.
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{LogEvery: 5, EvalEvery: 7, CheckpointEvery: 10},
			"log 6, eval 9, log 12, save 12, log 15, eval 15, log 21, eval 21, save 21"},
		{Config{}, "log 21, save 21"},
		{Config{EvalEvery: 1000}, "log 21, eval 21, save 21"},
		{Config{LogEvery: 1, CheckpointEvery: 9},
			"log 3, log 6, log 9, save 9, log 12, log 15, log 18, save 18, log 21, save 21"},
	} {
		c.cfg.Steps, c.cfg.Envs = 20, 3
		tr, _, _ := newScripted(t, c.cfg)
		var calls []string
		if err := tr.Run(t.Context(), hooks(&calls)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(calls, ", "); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.cfg, got, c.want)
		}
		calls = nil
		if err := tr.Run(t.Context(), hooks(&calls)); err != nil || len(calls) != 0 || tr.Step() != 21 {
			t.Errorf("run again at the end: %v, calls %v, step %d", err, calls, tr.Step())
		}
	}
}

func TestProgressIsTheShareOfStepsBeforeTheIteration(t *testing.T) {
	tr, a, _ := newScripted(t, Config{Steps: 10, Envs: 4})
	var ticks []Progress
	if err := tr.Run(t.Context(), Hooks{Tick: func(p Progress) error { ticks = append(ticks, p); return nil }}); err !=
		nil {
		t.Fatal(err)
	}
	if want := []float64{0, .4, .8}; !slices.Equal(a.shares, want) {
		t.Errorf("shares %v, want %v", a.shares, want)
	}
	if len(ticks) != 3 || ticks[2].Step != 12 || ticks[2].Steps != 10 {
		t.Errorf("ticks %+v, want 3, the last at step 12 of 10", ticks)
	}
	if !a.different {
		t.Error("all rows draw the same actions")
	}
}

// Two rows run the episodes 1, 2, … each. The means of a record are over the last 100 finished episodes, however many
// came before, and those of learning over the updates since the previous record.
func TestRecordsAreMeans(t *testing.T) {
	tr, _, _ := newScripted(t, Config{Steps: 400, Envs: 2, LogEvery: 40})
	var records []Record
	if err := tr.Run(t.Context(), Hooks{Log: func(r Record) error { records = append(records, r); return nil }}); err !=
		nil {
		t.Fatal(err)
	}
	if len(records) != 10 {
		t.Fatalf("%d records, want 10", len(records))
	}
	var ended []int // numbers of finished episodes in order; both rows end theirs together
	left, number, updates := 1+1%3, 1, 0
	for i, r := range records {
		var sum [2]float64
		var n [2]int
		for step := 0; step < 20; step++ {
			if left--; left == 0 {
				ended = append(ended, number, number)
				number++
				left = 1 + number%3
			}
			if (i*20+step+1)%2 == 0 { // every second iteration learns twice
				for range 2 {
					updates++
					sum[0] += float64(updates)
					n[0]++
					if updates%2 == 0 {
						sum[1] += 100
						n[1]++
					}
				}
			}
		}
		last := ended[max(0, len(ended)-100):]
		ret, length, num, even, evens := 0.0, 0.0, 0.0, 0.0, 0.0
		for _, e := range last {
			steps := float64(1 + e%3)
			ret += float64(e) * steps
			length += steps
			num += float64(e)
			if e%2 == 0 {
				even += 10 * float64(e)
				evens++
			}
		}
		m := float64(len(last))
		want := Record{
			Step: int64(40 * (i + 1)), Episodes: int64(len(ended)), Updates: int64(updates), Return: ret / m, Length: length / m,
			Info:  []agents.Stat{{Name: "number", Value: num / m}, {Name: "even", Value: even / evens}},
			Learn: []agents.Stat{{Name: "update", Value: sum[0] / float64(n[0])}, {Name: "even", Value: sum[1] / float64(n[1])}},
		}
		if fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", want) {
			t.Errorf("record %d:\n%+v, want\n%+v", i, r, want)
		}
	}
	if len(ended) <= 100 {
		t.Fatalf("only %d episodes: the window never slid", len(ended))
	}
}

func TestBeforeTheFirstEpisodeThereIsNoMean(t *testing.T) {
	tr, _, _ := newScripted(t, Config{Steps: 1, Envs: 1})
	var got Record
	// Episode 1 has two steps.
	if err := tr.Run(t.Context(), Hooks{Log: func(r Record) error { got = r; return nil }}); err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(got.Return) || !math.IsNaN(got.Length) || len(got.Info) != 0 || len(got.Learn) != 0 ||
		got.Episodes != 0 {
		t.Errorf("got %+v, want NaN and nothing", got)
	}
}

func TestErrorsEndTheRun(t *testing.T) {
	broken := errors.New("broken")
	cfg := Config{Steps: 100, Envs: 2, LogEvery: 10, EvalEvery: 10, CheckpointEvery: 10}
	for _, c := range []struct {
		name string
		h    Hooks
		step int64
	}{
		{"tick", Hooks{Tick: func(Progress) error { return broken }}, 2},
		{"log", Hooks{Log: func(Record) error { return broken }}, 10},
		{"evaluate", Hooks{Evaluate: func(int64) error { return broken }}, 10},
		{"checkpoint", Hooks{Checkpoint: func(int64) error { return broken }}, 10},
	} {
		tr, _, _ := newScripted(t, cfg)
		if err := tr.Run(t.Context(), c.h); !errors.Is(err, broken) || tr.Step() != c.step {
			t.Errorf("%s: %v at step %d, want its error at step %d", c.name, err, tr.Step(), c.step)
		}
	}
	// The later hooks are not called any more.
	tr, _, _ := newScripted(t, cfg)
	later := 0
	h := Hooks{Evaluate: func(int64) error { return broken }, Checkpoint: func(int64) error { later++; return nil }}
	if err := tr.Run(t.Context(), h); !errors.Is(err, broken) || later != 0 {
		t.Errorf("%v, %d checkpoints after it", err, later)
	}

	for name, spoil := range map[string]func(a *scripted, own []*counting){
		"act":     func(a *scripted, _ []*counting) { a.act = func(context.Context) error { return broken } },
		"step":    func(_ *scripted, own []*counting) { own[1].fail = broken },
		"observe": func(a *scripted, _ []*counting) { a.observe = broken },
		"learn":   func(a *scripted, _ []*counting) { a.learn = broken },
	} {
		tr, a, own := newScripted(t, cfg)
		spoil(a, own)
		if err := tr.Run(t.Context(), Hooks{}); !errors.Is(err, broken) {
			t.Errorf("%s: %v, want its error", name, err)
		}
	}
}

// A context that is cancelled in the middle of an iteration ends the run only after it, and nothing inside sees
// the cancellation.
func TestCancellationCutsNoIterationInHalf(t *testing.T) {
	tr, a, _ := newScripted(t, Config{Steps: 1000, Envs: 3, LogEvery: 6})
	ctx, cancel := context.WithCancel(t.Context())
	acts := 0
	a.act = func(inner context.Context) error {
		if acts++; acts == 4 {
			cancel()
		}
		return inner.Err()
	}
	var calls []string
	if err := tr.Run(ctx, hooks(&calls)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if tr.Step() != 12 || a.observed != 4 || a.updates != 4 || !slices.Equal(calls, []string{"log 6", "log 12"}) {
		t.Errorf("step %d, %d observations, %d updates, calls %v; want 12, 4, 4, log 6 and 12", tr.Step(), a.observed,
			a.updates, calls)
	}
	if err := tr.Run(ctx, Hooks{}); !errors.Is(err, context.Canceled) || tr.Step() != 12 {
		t.Errorf("again: %v at step %d", err, tr.Step())
	}
}

func TestNewRefusesWhatDoesNotFit(t *testing.T) {
	open := func(mode vec.Autoreset) *vec.Vec {
		v, err := vec.New(vec.Config{Autoreset: mode}, &counting{}, &counting{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	good := DefaultConfig()
	good.Envs = 2
	if _, err := New(good, open(vec.SameStep), &scripted{}, 1); err != nil {
		t.Error(err)
	}
	if _, err := New(good, open(vec.NextStep), &scripted{}, 1); err == nil || !strings.Contains(err.Error(), "same_step") {
		t.Errorf("next_step: %v", err)
	}
	good.Envs = 3
	if _, err := New(good, open(vec.SameStep), &scripted{}, 1); err == nil || !strings.Contains(err.Error(), "want 3") {
		t.Errorf("three rows of two: %v", err)
	}
	bad := Config{Steps: 0, Envs: 0, LogEvery: -1, EvalEvery: -1, CheckpointEvery: -1, Keep: -1}
	var keys []string
	for _, f := range fault.All(bad.Validate()) {
		keys = append(keys, f.Key)
	}
	if want := []string{"steps", "envs", "log_every", "eval_every", "checkpoint_every", "keep"}; !slices.Equal(keys,
		want) {
		t.Errorf("faults of %v, want %v", keys, want)
	}
	if _, err := New(bad, open(vec.SameStep), &scripted{}, 1); len(fault.All(err)) != 6 {
		t.Errorf("New of a faulty configuration: %v", err)
	}
}

var _ env.Env = (*counting)(nil)
