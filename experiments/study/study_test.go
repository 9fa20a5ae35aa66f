package study

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clustergym/internal/fault"
)

// toy is a study of noisy policies on graphs. Its cells count how often they are computed.
type toy struct {
	scale    float64
	computed sync.Map // key -> *atomic.Int32
	before   func(ctx context.Context, key string) error
}

func (y *toy) times(key string) int32 {
	n, _ := y.computed.LoadOrStore(key, new(atomic.Int32))
	return n.(*atomic.Int32).Load()
}

func (y *toy) study() Study {
	count := func(ctx context.Context, key string) error {
		n, _ := y.computed.LoadOrStore(key, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		if y.before != nil {
			return y.before(ctx, key)
		}
		return nil
	}
	return Study{
		Name: "toy", Title: "Toy policies", Cite: "Nobody, nowhere",
		Cells: func(p Plan) ([]Cell, error) {
			var cells []Cell
			for seed := range p.SeedsOr(3) {
				train := fmt.Sprintf("train/seed-%d", seed)
				cells = append(cells, Cell{Key: train, Input: map[string]any{"scale": y.scale, "seed": seed},
					Run: func(ctx context.Context, b *Bench) ([]Row, error) {
						if err := count(ctx, train); err != nil {
							return nil, err
						}
						return nil, os.WriteFile(filepath.Join(b.Work(), "weights"), []byte(fmt.Sprint(y.scale*float64(seed+1))), 0o600)
					}})
				eval := fmt.Sprintf("eval/seed-%d", seed)
				cells = append(cells, Cell{Key: eval, Input: seed, After: []string{train},
					Run: func(ctx context.Context, b *Bench) ([]Row, error) {
						if err := count(ctx, eval); err != nil {
							return nil, err
						}
						w, err := os.ReadFile(filepath.Join(b.WorkOf(train), "weights"))
						if err != nil {
							return nil, err
						}
						var weight float64
						if _, err := fmt.Sscan(string(w), &weight); err != nil {
							return nil, err
						}
						var rows []Row
						for g := range 4 {
							for p, policy := range []string{"learned", "random"} {
								rows = append(rows,
									Row{"makespan", map[string]string{"policy": policy, "graph": fmt.Sprint(g), "seed": fmt.Sprint(seed)},
										"makespan_s",
										float64(10*(g+1)) + float64(p)*2 + weight/10})
							}
						}
						return append(rows,
							Row{"makespan", map[string]string{"policy": "learned", "graph": "0", "seed": fmt.Sprint(seed)}, "timing_s",
								float64(time.Now().UnixNano())}), nil
					}})
			}
			return cells, nil
		},
		Tables: func(Plan) []Table {
			return []Table{{
				Name: "makespan", Title: "Makespan by policy", By: []string{"policy"},
				Order: map[string][]string{"policy": {"random", "learned"}},
				Columns: []Column{
					{Title: "makespan", Metric: "makespan_s"},
					{Title: "vs random", Metric: "makespan_s", Stat: Percent, Versus: map[string]string{"policy": "random"},
						Paper: func(l map[string]string) string { return map[string]string{"learned": "−47 %"}[l["policy"]] }},
					{Title: "learned vs it", Metric: "makespan_s", Stat: Percent, Versus: map[string]string{"policy": "learned"},
						Turned: true},
					{Title: "wins", Metric: "makespan_s", Stat: Wins, Versus: map[string]string{"policy": "random"}},
				},
				Notes: []string{"One <graph> each."},
			}}
		},
		Claims: func(Plan) []Claim {
			return []Claim{{"learned & tuned against random", "−47 %", "makespan", map[string]string{"policy": "learned"},
				"vs random"}}
		},
		Figures: func(Plan) []Figure {
			return []Figure{{Name: "makespan", Title: "Makespan", X: "makespan in s", Kind: Bars, Zero: true,
				Series: func(r *Results) []Series { return r.Bars("makespan", "makespan", nil) }}}
		},
	}
}

// results returns the bytes that must not depend on how they were computed.
func results(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"rows.csv", "results.csv", "table.txt", "index.html", "figures/makespan.svg"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "== %s\n%s", name, b)
	}
	return all.String()
}

func mustRun(t *testing.T, y *toy, dir string, workers int) *Report {
	t.Helper()
	r, err := Run(t.Context(), y.study(), Options{Dir: dir, Plan: Plan{Workers: workers}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWorkersChangeNothing(t *testing.T) {
	want := ""
	for _, workers := range []int{1, 2, 8} {
		dir := t.TempDir()
		mustRun(t, &toy{scale: 1}, dir, workers)
		got := results(t, dir)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("with %d workers:\n%s\nwith one:\n%s", workers, got, want)
		}
	}
	for _, part := range []string{"policy", "random", "−47 %", "learned & tuned", "1-",
		"== rows.csv\ntable,labels,metric,value\nmakespan,graph=0;policy=learned;seed=0,makespan_s,10.1\n"} {
		if part != "1-" && !strings.Contains(want, part) {
			t.Errorf("%q is missing in\n%s", part, want)
		}
	}
	if strings.Contains(want, "timing") {
		t.Error("what measures the machine stands among the results")
	}
	if strings.Contains(want, "<graph> each.</p>") {
		t.Error("words became markup")
	}
}

// Computed by hand: learned is 2 s faster on makespans of 10 to 40 s and 0.2 s, the mean over the three trainings.
func TestTheTableSaysWhatTheRowsSay(t *testing.T) {
	r := mustRun(t, &toy{scale: 1}, t.TempDir(), 2)
	v, _, ok := r.Results.Find("makespan", map[string]string{"policy": "learned"}, "makespan")
	if !ok || math.Abs(v.Value-25.2) > 1e-12 || v.Units != 4 || v.Runs != 3 || !(v.Low < v.Value && v.Value < v.High) {
		t.Errorf("learned: %+v, want 25.2 of 4 graphs and 3 runs", v)
	}
	v, _, ok = r.Results.Find("makespan", map[string]string{"policy": "learned"}, "vs random")
	if want := 100 * -2 / 27.2; !ok || math.Abs(v.Value-want) > 1e-12 || !(v.Low < want && want < v.High && v.High < 0) ||
		v.Paper != "−47 %" {
		t.Errorf("against random: %+v, want %v", v, want)
	}
	if v, _, _ = r.Results.Find("makespan", map[string]string{"policy": "learned"}, "wins"); v.Value != 1 || v.Low != 1 {
		t.Errorf("wins: %+v, want all", v)
	}
	if v, _, ok = r.Results.Find("makespan", map[string]string{"policy": "random"}, "vs random"); !ok ||
		!math.IsNaN(v.Value) {
		t.Errorf("random against itself: %+v, want no figure", v)
	}
	// Random is 2 s of 25.2 s slower: the same comparison in the other direction.
	if v, _, ok = r.Results.Find("makespan", map[string]string{"policy": "random"}, "learned vs it"); !ok ||
		math.Abs(v.Value-100*-2/27.2) > 1e-12 {
		t.Errorf("turned: %+v", v)
	}
	if lines := r.Results.Lines("makespan"); lines[0].Labels["policy"] != "random" {
		t.Errorf("the first line is %v, want random, as ordered", lines[0].Labels)
	}
}

func TestWhatIsKeptIsNotComputedAgain(t *testing.T) {
	dir := t.TempDir()
	y := &toy{scale: 1}
	mustRun(t, y, dir, 2)
	want := results(t, dir)
	mustRun(t, y, dir, 1)
	if got := results(t, dir); got != want {
		t.Errorf("the second report differs:\n%s\n%s", got, want)
	}
	for _, key := range []string{"train/seed-0", "eval/seed-0", "train/seed-2", "eval/seed-2"} {
		if n := y.times(key); n != 1 {
			t.Errorf("%s was computed %d times, want once", key, n)
		}
	}
}

func TestAnInterruptedRunGoesOn(t *testing.T) {
	straight := t.TempDir()
	mustRun(t, &toy{scale: 1}, straight, 1)
	for _, workers := range []int{1, 3} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		y := &toy{scale: 1}
		y.before = func(ctx context.Context, key string) error {
			if key == "eval/seed-1" {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		_, err := Run(ctx, y.study(), Options{Dir: dir, Plan: Plan{Workers: workers}})
		if !errors.Is(err, fault.ErrInterrupted) || !strings.Contains(err.Error(), "cells are kept in "+dir) {
			t.Fatalf("%d workers: %v, want fault.ErrInterrupted and what is kept", workers, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "table.txt")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an interrupted run left a table: %v", err)
		}
		y.before = nil
		mustRun(t, y, dir, workers)
		if got, want := results(t, dir), results(t, straight); got != want {
			t.Errorf("%d workers: interrupted and continued:\n%s\nstraight through:\n%s", workers, got, want)
		}
		if y.times("train/seed-1") != 1 || y.times("eval/seed-1") != 2 {
			t.Errorf("%d workers: what was finished was computed %d times, what was not %d times", workers,
				y.times("train/seed-1"), y.times("eval/seed-1"))
		}
	}
}

func TestAChangedInputComputesTheCellAndWhatReadsIt(t *testing.T) {
	dir := t.TempDir()
	y := &toy{scale: 1}
	mustRun(t, y, dir, 2)
	y.scale = 2
	y.before = func(_ context.Context, key string) error {
		if strings.HasPrefix(key, "train/") {
			if _, err := os.Stat(filepath.Join(dir, "work", key, "weights")); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the files of another input are still there: %w", err)
			}
		}
		return nil
	}
	r := mustRun(t, y, dir, 2)
	if y.times("train/seed-0") != 2 || y.times("eval/seed-0") != 2 {
		t.Errorf("computed %d and %d times, want twice", y.times("train/seed-0"), y.times("eval/seed-0"))
	}
	if v, _, _ := r.Results.Find("makespan", map[string]string{"policy": "learned"}, "makespan"); math.Abs(v.Value-25.4) >
		1e-12 {
		t.Errorf("learned %v, want 25.4", v.Value)
	}
}

func TestADamagedCellIsComputedAgain(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"half":          func(b []byte) []byte { return b[:len(b)/2] },
		"nothing":       func([]byte) []byte { return nil },
		"another value": func(b []byte) []byte { return []byte(strings.Replace(string(b), "10.1", "11.1", 1)) },
		"another digest": func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"rows_sha256": "`, `"rows_sha256": "0`, 1))
		},
		"a row that ends": func(b []byte) []byte {
			return []byte(
				strings.Replace(string(b), `"makespan_s"`, `"makespan_s`, 1))
		},
	} {
		dir := t.TempDir()
		y := &toy{scale: 1}
		mustRun(t, y, dir, 2)
		want := results(t, dir)
		file := filepath.Join(dir, "cells", "eval", "seed-0.json")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, damage(b), 0o600); err != nil {
			t.Fatal(err)
		}
		var said []string
		var mu sync.Mutex
		_, err = Run(t.Context(), y.study(), Options{Dir: dir, Plan: Plan{Workers: 2}, Say: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, fmt.Sprintf(format, args...))
		}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if y.times("eval/seed-0") != 2 || y.times("eval/seed-1") != 1 {
			t.Errorf("%s: computed %d and %d times, want 2 and 1", name, y.times("eval/seed-0"), y.times("eval/seed-1"))
		}
		if len(said) == 0 || !strings.Contains(said[0], file+" is damaged (") {
			t.Errorf("%s: it said %q", name, said)
		}
		if got := results(t, dir); got != want {
			t.Errorf("%s: the results differ", name)
		}
	}
}

func TestFilesThatAreGoneAreMadeAgainWhereTheyAreRead(t *testing.T) {
	dir := t.TempDir()
	y := &toy{scale: 1}
	mustRun(t, y, dir, 2)
	if err := os.RemoveAll(filepath.Join(dir, "work")); err != nil {
		t.Fatal(err)
	}
	mustRun(t, y, dir, 2)
	if n := y.times("train/seed-1"); n != 1 {
		t.Errorf("nobody reads the files, and they were made %d times", n)
	}
	if err := os.Remove(filepath.Join(dir, "cells", "eval", "seed-1.json")); err != nil {
		t.Fatal(err)
	}
	mustRun(t, y, dir, 2)
	if y.times("train/seed-1") != 2 || y.times("train/seed-0") != 1 {
		t.Errorf("made %d and %d times, want 2 for those that are read and 1", y.times("train/seed-1"),
			y.times("train/seed-0"))
	}
}

func TestOnlyComputesAPrefixAndWhatItReads(t *testing.T) {
	dir := t.TempDir()
	y := &toy{scale: 1}
	r, err := Run(t.Context(), y.study(), Options{Dir: dir, Plan: Plan{Workers: 2}, Only: "eval/seed-1"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Missing != 4 || y.times("train/seed-1") != 1 || y.times("eval/seed-1") != 1 || y.times("train/seed-0") != 0 {
		t.Errorf("%d cells are missing, want 4", r.Missing)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "table.txt")); !strings.Contains(string(b), "2 of 6 are computed") {
		t.Errorf("the table does not say that it is not whole:\n%s", b)
	}
	_, err = Run(t.Context(), y.study(), Options{Dir: dir, Only: "evil"})
	var input *fault.Mistake
	if !errors.As(err, &input) ||
		!strings.Contains(err.Error(), `no cell's name begins with "evil"; there are 6, such as train/seed-0`) {
		t.Errorf("got %v", err)
	}
}

func TestAFolderBelongsToOneExperimentAndOneProcess(t *testing.T) {
	dir := t.TempDir()
	y := &toy{scale: 1}
	mustRun(t, y, dir, 1)
	other := y.study()
	other.Name = "other"
	refuses(t, other, dir, "holds the experiment toy, not other")
	filled := t.TempDir()
	if err := os.WriteFile(filepath.Join(filled, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, other, filled, "is not empty and holds no experiment")
	refuses(t, other, filepath.Join(filled, "mine.txt"), "there is a file of that name")
	y = &toy{scale: 3}
	y.before = func(context.Context, string) error {
		_, err := Run(t.Context(), y.study(), Options{Dir: dir})
		var input *fault.Mistake
		if !errors.As(err, &input) || !strings.Contains(err.Error(), "another process runs an experiment in "+dir) {
			return fmt.Errorf("inside of a run, a run says %v", err)
		}
		return nil
	}
	mustRun(t, y, dir, 1)
}

func refuses(t *testing.T, s Study, dir, want string) {
	t.Helper()
	_, err := Run(t.Context(), s, Options{Dir: dir})
	var input *fault.Mistake
	if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a mistake that says %q", err, want)
	}
}

func TestAFailureNamesTheFirstCellAndKeepsTheRest(t *testing.T) {
	dir := t.TempDir()
	y := &toy{scale: 1}
	failed := errors.New("no luck")
	y.before = func(_ context.Context, key string) error {
		if key == "train/seed-1" {
			return failed
		}
		return nil
	}
	_, err := Run(t.Context(), y.study(), Options{Dir: dir, Plan: Plan{Workers: 1}})
	if !errors.Is(err, failed) || !strings.HasPrefix(err.Error(), "cell train/seed-1: ") {
		t.Errorf("got %v", err)
	}
	y.before = nil
	mustRun(t, y, dir, 1)
	if y.times("train/seed-0") != 1 {
		t.Error("what was finished before the failure was not kept")
	}
}

func TestACellAloneHasAllWorkersAndNoNeighbours(t *testing.T) {
	var busy, most atomic.Int32
	body := func(workers *atomic.Int32) func(context.Context, *Bench) ([]Row, error) {
		return func(_ context.Context, b *Bench) ([]Row, error) {
			n := busy.Add(1)
			for {
				m := most.Load()
				if n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			if workers != nil {
				workers.Store(int32(b.Workers))
				if n != 1 {
					return nil, fmt.Errorf("%d run beside it", n-1)
				}
			}
			time.Sleep(5 * time.Millisecond)
			if workers != nil && busy.Load() != 1 {
				return nil, errors.New("another one began beside it")
			}
			busy.Add(-1)
			return nil, nil
		}
	}
	var had atomic.Int32
	s := Study{Name: "alone", Tables: func(Plan) []Table { return nil }, Cells: func(Plan) ([]Cell, error) {
		var cells []Cell
		for i := range 6 {
			c := Cell{Key: fmt.Sprintf("c%d", i), Run: body(nil)}
			if i == 2 {
				c.Alone, c.Run = true, body(&had)
			}
			cells = append(cells, c)
		}
		return cells, nil
	}}
	if _, err := Run(t.Context(), s, Options{Dir: t.TempDir(), Plan: Plan{Workers: 3}}); err != nil {
		t.Fatal(err)
	}
	if had.Load() != 3 || most.Load() > 3 {
		t.Errorf("it had %d workers, want 3; %d ran side by side", had.Load(), most.Load())
	}
}

func TestExpectedFiguresAreComparedWithThoseOfNow(t *testing.T) {
	dir := t.TempDir()
	y := &toy{scale: 1}
	mustRun(t, y, dir, 1)
	b, err := os.ReadFile(filepath.Join(dir, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	s := y.study()
	s.Expected = b
	r, err := Run(t.Context(), s, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if d := r.deviation; d == nil || d.Figures == 0 || d.Equal != d.Figures || len(d.Missing) > 0 {
		t.Errorf("beside its own figures: %+v", r.deviation)
	}
	s.Expected = []byte(strings.Replace(string(b), "full,makespan,learned,makespan,makespan_s,mean,25.2,",
		"full,makespan,learned,makespan,makespan_s,mean,99,", 1))
	if r, err = Run(t.Context(), s, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if d := r.deviation; d.Inside != 1 {
		t.Errorf("a figure inside of the interval: %+v", d)
	}
	s.Expected = []byte(string(b) + "full,makespan,learned,other,makespan_s,mean,1,,,1,1,,\n")
	if r, err = Run(t.Context(), s, Options{Dir: dir}); err != nil || len(r.deviation.Missing) != 1 {
		t.Errorf("a figure that is not there: %+v %v", r.deviation, err)
	}
	s.Expected = []byte("a,b\n")
	if _, err = Run(t.Context(), s, Options{Dir: dir}); err == nil {
		t.Error("a table of something else was taken")
	}
}

// A table has 120 columns, without hidden columns and with shared labels in its title; the page and results.csv have
// all.
func TestTheTableIsShortAndTheRestIsElsewhere(t *testing.T) {
	s := (&toy{scale: 1}).study()
	tables := s.Tables
	s.Tables = func(p Plan) []Table {
		all := tables(p)
		all[0].By = []string{"policy", "nothing"}
		all[0].Columns = slices.Clone(all[0].Columns)
		for i := range all[0].Columns {
			all[0].Columns[i].Hidden = all[0].Columns[i].Title == "wins"
		}
		wide := Table{Name: "wide", Title: "Wide", From: "makespan", By: []string{"policy"}}
		for i := range 12 {
			wide.Columns = append(wide.Columns, Column{Title: fmt.Sprintf("makespan again, column %d", i), Metric: "makespan_s"})
		}
		return append(all, wide)
	}
	s.Title = strings.Repeat("A long title. ", 20)
	dir := t.TempDir()
	if _, err := Run(t.Context(), s, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text := read("table.txt")
	for line := range strings.Lines(text) {
		if len([]rune(line)) > 121 {
			t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
		}
	}
	if strings.Contains(text, "wins") || !strings.Contains(text, "index.html and results.csv have more columns.") ||
		!strings.Contains(text, "column 11") {
		t.Errorf("the table:\n%s", text)
	}
	for _, name := range []string{"index.html", "results.csv"} {
		if !strings.Contains(read(name), "wins") {
			t.Errorf("%s lacks the hidden column", name)
		}
	}
}

func TestUnitsStandOnce(t *testing.T) {
	for _, c := range []struct {
		c    Column
		want string
	}{
		{Column{Stat: Percent}, "-12.0 % [-14.0, +3.0]"}, {Column{}, "-12 [-14, 3]"},
		{Column{Format: func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }}, "-1200.0 % [-1400.0, 300.0]"},
		{Column{Format: func(v float64) string { return fmt.Sprintf("%g×", v) }}, "-12× [-14×, 3×]"},
		{Column{Stat: Percent, Bare: true}, "-12.0 %"},
	} {
		if got := c.c.Show(Value{Value: -12, Low: -14, High: 3}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
