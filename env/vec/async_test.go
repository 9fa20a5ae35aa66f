package vec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/vec"
)

// rowBits is everything that a call wrote to row i, and what stands of it in the Final columns.
func rowBits(s env.Spec, b *env.Batch, i int) string {
	o, m, n := s.ObsLen(), s.MaskLen(), len(s.Info)
	out := fmt.Sprintf("%v %x %v %x %v %x", b.Kind[i], b.Reward[i], b.Elapsed[i], b.Obs[i*o:(i+1)*o], b.Mask[i*m:(i+1)*m], b.Info[i*n:(i+1)*n])
	if k := slices.Index(b.FinalRows, i); k >= 0 {
		out += fmt.Sprintf(" | %x %v %x", b.FinalObs[k*o:(k+1)*o], b.FinalMask[k*m:(k+1)*m], b.FinalInfo[k*n:(k+1)*n])
	}
	return out
}

// trajectories plays every row for so many steps. With least 0 rows are stepped together, else sent as soon as they
// were received.
func trajectories(t *testing.T, cfg vec.Config, id string, rows, steps, least int) [][]string {
	v := newVec(t, cfg, envs(t, id, rows)...)
	v.Seed(7)
	s := v.Spec()
	b, a, c := env.NewBatch(s, rows), env.NewActions(s, rows), choosers(rows)
	out := make([][]string, rows)
	note := func(rows []int) {
		for _, i := range rows {
			out[i] = append(out[i], rowBits(s, b, i))
		}
	}
	all := make([]int, rows)
	for i := range all {
		all[i] = i
	}
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	note(all)
	// The rows that have steps to go, and of these the ones at home.
	left, home := slices.Repeat([]int{steps}, rows), all
	for len(home) > 0 || v.Pending() > 0 {
		var chosen []int
		for _, i := range home {
			if left[i] > 0 {
				left[i]--
				chosen = append(chosen, i)
				c.one(s, b, a, i)
			}
		}
		if least == 0 {
			if len(chosen) == 0 {
				break
			}
			if err := v.Step(ctx, chosen, a, b); err != nil {
				t.Fatal(err)
			}
			home = chosen
		} else {
			if len(chosen) > 0 {
				if err := v.Send(chosen, a); err != nil {
					t.Fatal(err)
				}
			}
			if v.Pending() == 0 {
				break
			}
			got, err := v.Recv(ctx, least, b)
			if err != nil {
				t.Fatal(err)
			}
			home = slices.Clone(got)
		}
		note(home)
	}
	return out
}

// one writes a legal action for row i.
func (c chooser) one(s env.Spec, b *env.Batch, a *env.Actions, i int) {
	m := s.MaskLen()
	row := env.Batch{Mask: b.Mask[i*m : (i+1)*m]}
	alone := chooser{c[i]}
	act := env.Actions{Disc: a.Disc[i : i+1]}
	alone.choose(s, &row, &act)
	c[i] = alone[0]
}

func TestARowSentIsARowStepped(t *testing.T) {
	const rows, steps = 7, 110
	for _, mode := range []vec.Autoreset{vec.NextStep, vec.SameStep} {
		for _, id := range []string{"InvalidAction-v1", "ProbeDeadStep-v1"} {
			want := trajectories(t, vec.Config{Workers: 1, Autoreset: mode}, id, rows, steps, 0)
			for _, c := range []struct{ workers, least int }{{1, 1}, {8, 1}, {3, rows}, {0, 100}} {
				got := trajectories(t, vec.Config{Workers: c.workers, Autoreset: mode}, id, rows, steps, c.least)
				for i := range rows {
					if len(got[i]) != steps+1 || len(want[i]) != steps+1 {
						t.Fatalf("row %d has %d and %d time steps, want %d", i, len(got[i]), len(want[i]), steps+1)
					}
					if k := firstDifference(got[i], want[i]); k >= 0 {
						t.Fatalf("%v, %s, %d workers, %d at once: step %d of row %d is\n%s, stepped\n%s", mode, id, c.workers, c.least, k, i, got[i][k], want[i][k])
					}
				}
			}
		}
	}
}

// gate is an environment whose steps wait to be let through.
type gate struct {
	env.Env
	open   chan struct{}
	inside atomic.Int32
	ctx    atomic.Bool // a step saw its context end
}

func (g *gate) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	g.inside.Add(1)
	defer g.inside.Add(-1)
	select {
	case <-g.open:
	case <-ctx.Done():
		g.ctx.Store(true)
		return ctx.Err()
	}
	return g.Env.Step(ctx, a, ts)
}

func gated(t *testing.T, cfg vec.Config, n int) (*vec.Vec, []*gate, *env.Batch, *env.Actions) {
	var gates []*gate
	var all []env.Env
	for _, e := range envs(t, "InvalidAction-v1", n) {
		g := &gate{Env: e, open: make(chan struct{})}
		gates, all = append(gates, g), append(all, g)
	}
	v := newVec(t, cfg, all...)
	b, a := env.NewBatch(v.Spec(), n), env.NewActions(v.Spec(), n)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	choosers(n).choose(v.Spec(), b, a)
	return v, gates, b, a
}

func TestRecvGivesTheRowsThatAreDoneFirst(t *testing.T) {
	v, gates, b, a := gated(t, vec.Config{Workers: 4}, 4)
	if err := v.Send(nil, a); err != nil {
		t.Fatal(err)
	}
	close(gates[2].open)
	close(gates[0].open)
	rows, err := v.Recv(ctx, 2, b)
	if err != nil || !slices.Equal(rows, []int{0, 2}) || v.Pending() != 2 || v.Out(0) || !v.Out(1) {
		t.Fatalf("rows %v, error %v, %d are out", rows, err, v.Pending())
	}
	// Nothing else is done: a context ends the wait, and no row is lost.
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	if rows, err := v.Recv(short, 1, b); rows != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("rows %v, error %v", rows, err)
	}
	// Rows at home can be stepped and reset meanwhile; those that are out cannot be named.
	if err := v.Step(ctx, []int{2}, a, b); err != nil && !errors.Is(err, env.ErrIllegalAction) {
		t.Fatal(err)
	}
	if err := v.Reset(ctx, []int{0}, nil, b); err != nil {
		t.Fatal(err)
	}
	var re *vec.RowError
	for what, err := range map[string]error{
		"Step": v.Step(ctx, []int{2, 3}, a, b), "Reset": v.Reset(ctx, []int{1}, nil, b), "Send": v.Send([]int{1}, a),
		"SetTask": v.SetTask(1, nil), "Continue": v.Continue(ctx, []int{1}, make([]env.Episode, 1), b),
		"RestoreRows": v.RestoreRows(nil, []int{1}, b), "AppendSnapshot": func() error { _, err := v.AppendSnapshot(nil); return err }(),
	} {
		if !errors.Is(err, vec.ErrOut) || !errors.As(err, &re) {
			t.Errorf("%s of a row that is out: %v", what, err)
		}
	}
	close(gates[1].open)
	close(gates[3].open)
	if rows, err := v.Recv(ctx, 7, b); err != nil || !slices.Equal(rows, []int{1, 3}) || v.Pending() != 0 {
		t.Fatalf("asked for more than are out: rows %v, error %v, %d are out", rows, err, v.Pending())
	}
	if _, err := v.Recv(ctx, 1, b); !errors.Is(err, vec.ErrNotPending) {
		t.Errorf("nothing is out: %v", err)
	}
}

func TestSendChecksBeforeItSends(t *testing.T) {
	v, _, _, a := gated(t, vec.Config{}, 3)
	short := env.NewActions(v.Spec(), 2)
	for what, err := range map[string]error{
		"actions of 2 rows": v.Send(nil, short), "row 3 of 3": v.Send([]int{0, 3}, a), "row 1 is asked for twice": v.Send([]int{1, 1}, a),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q", err, what)
		}
	}
	if v.Pending() != 0 || v.Out(0) || v.Out(1) {
		t.Error("something was sent")
	}
}

func TestActionsAreCopiedWhenSent(t *testing.T) {
	v, gates, b, a := gated(t, vec.Config{}, 1)
	if err := v.Send(nil, a); err != nil {
		t.Fatal(err)
	}
	a.Disc[0] = -1
	close(gates[0].open)
	if _, err := v.Recv(ctx, 1, b); err != nil {
		t.Error(err)
	}
}

func TestFailuresComeWithTheirRows(t *testing.T) {
	v, gates, b, a := gated(t, vec.Config{Workers: 2}, 3)
	for _, g := range gates {
		close(g.open)
	}
	a.Disc[1] = -1
	if err := v.Send(nil, a); err != nil {
		t.Fatal(err)
	}
	before := rowBits(v.Spec(), b, 1)
	rows, err := v.Recv(ctx, 3, b)
	var re *vec.RowError
	if len(rows) != 3 || !errors.As(err, &re) || re.Row != 1 || !errors.Is(err, env.ErrIllegalAction) {
		t.Fatalf("rows %v, error %v", rows, err)
	}
	if rowBits(v.Spec(), b, 1) != before || b.Kind[0] != env.Mid || b.Kind[2] != env.Mid {
		t.Error("a row that failed was written, or one that did not was not")
	}
}

func TestCloseWaitsForWhatIsOut(t *testing.T) {
	before := runtime.NumGoroutine()
	v, gates, b, a := gated(t, vec.Config{Workers: 2}, 4)
	if err := v.Send(nil, a); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	for i, g := range gates {
		if g.inside.Load() != 0 {
			t.Errorf("environment %d is still stepping after Close", i)
		}
	}
	if !gates[0].ctx.Load() {
		t.Error("a step's context did not end with Close")
	}
	if err := v.Send(nil, a); !errors.Is(err, env.ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
	if _, err := v.Recv(ctx, 1, b); !errors.Is(err, env.ErrClosed) {
		t.Errorf("Recv after Close: %v", err)
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestSeedingWhileRowsAreOutIsABug(t *testing.T) {
	v, gates, b, a := gated(t, vec.Config{}, 1)
	if err := v.Send(nil, a); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Seed came back while a row is out")
			}
		}()
		v.Seed(1)
	}()
	close(gates[0].open)
	if _, err := v.Recv(ctx, 1, b); err != nil {
		t.Error(err)
	}
}

func TestSendAndRecvDoNotAllocate(t *testing.T) {
	for _, mode := range []vec.Autoreset{vec.NextStep, vec.SameStep} {
		v := newVec(t, vec.Config{Workers: 2, Autoreset: mode}, envs(t, "ProbeDeadStep-v1", 8)...)
		b, a := env.NewBatch(v.Spec(), 8), env.NewActions(v.Spec(), 8)
		if err := v.Reset(ctx, nil, nil, b); err != nil {
			t.Fatal(err)
		}
		both := func() {
			if err := v.Send(nil, a); err != nil {
				t.Fatal(err)
			}
			for v.Pending() > 0 {
				if _, err := v.Recv(ctx, 3, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		both()
		if n := testing.AllocsPerRun(200, both); n != 0 {
			t.Errorf("%v: %v allocations", mode, n)
		}
	}
}

func TestRowsAreSavedAndRestoredOneByOne(t *testing.T) {
	const rows = 6
	for _, id := range []string{"InvalidAction-v1", "ProbeDeadStep-v1"} {
		v := newVec(t, vec.Config{Autoreset: vec.NextStep}, envs(t, id, rows)...)
		v.Seed(3)
		s := v.Spec()
		b, a, c := env.NewBatch(s, rows), env.NewActions(s, rows), choosers(rows)
		step := func(v *vec.Vec, b *env.Batch, rows ...int) {
			t.Helper()
			for _, i := range rows {
				c.one(s, b, a, i)
			}
			if err := v.Step(ctx, rows, a, b); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.Reset(ctx, []int{1, 3, 5}, nil, b); err != nil {
			t.Fatal(err)
		}
		for range 7 {
			step(v, b, 1, 3)
		}
		blob, err := v.AppendRows(nil, []int{3, 0, 1}) // row 0 has never been reset
		if err != nil {
			t.Fatal(err)
		}
		saved := slices.Clone(c)
		var want []string
		for range 40 {
			step(v, b, 1, 3)
			want = append(want, rowBits(s, b, 3)+rowBits(s, b, 1))
		}
		// Into other rows of another Vec, and of another mode: 3 goes on in 1 and 1 in 2.
		for _, mode := range []vec.Autoreset{vec.NextStep, vec.Disabled} {
			w := newVec(t, vec.Config{Autoreset: mode}, envs(t, id, rows)...)
			wb := env.NewBatch(s, rows)
			if err := w.Reset(ctx, nil, nil, wb); err != nil {
				t.Fatal(err)
			}
			other := rowBits(s, wb, 4)
			if err := w.RestoreRows(blob, []int{1, 0, 2}, wb); err != nil {
				t.Fatal(err)
			}
			if rowBits(s, wb, 4) != other {
				t.Error("a row that was not asked for has changed")
			}
			if err := w.Step(ctx, []int{0}, a, wb); !errors.Is(err, env.ErrResetNeeded) {
				t.Errorf("a row restored from one without an episode: %v", err)
			}
			if again, err := w.AppendRows(nil, []int{1, 0, 2}); err != nil || mode == vec.NextStep && !bytes.Equal(again, blob) {
				t.Errorf("saved again, the bytes differ (error %v)", err)
			}
			if mode == vec.Disabled {
				continue
			}
			c[1], c[2] = saved[3], saved[1]
			wa := env.NewActions(s, rows)
			for k := range want {
				c.one(s, wb, wa, 1)
				c.one(s, wb, wa, 2)
				if err := w.Step(ctx, []int{1, 2}, wa, wb); err != nil {
					t.Fatal(err)
				}
				if got := rowBits(s, wb, 1) + rowBits(s, wb, 2); got != want[k] {
					t.Fatalf("%s: step %d after the restored one gives\n%s, want\n%s", id, k, got, want[k])
				}
			}
		}
		for n, into := range [][]int{{1, 2}, {0, 1, 2, 3}} {
			if err := v.RestoreRows(blob, into, b); !errors.Is(err, env.ErrSnapshot) {
				t.Errorf("%d: a snapshot of 3 rows into %d: %v", n, len(into), err)
			}
		}
	}
}

// A row that waits for its next episode has no place in SameStep.
func TestAnEndedRowDoesNotGoIntoSameStep(t *testing.T) {
	v := newVec(t, vec.Config{Autoreset: vec.Disabled}, envs(t, "ProbeConstant-v1", 1)...)
	b, a := env.NewBatch(v.Spec(), 1), env.NewActions(v.Spec(), 1)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	running, err := v.AppendRows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for !b.Kind[0].Last() {
		if err := v.Step(ctx, nil, a, b); err != nil {
			t.Fatal(err)
		}
	}
	ended, err := v.AppendRows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newVec(t, vec.Config{Autoreset: vec.SameStep}, envs(t, "ProbeConstant-v1", 1)...)
	if err := w.RestoreRows(ended, nil, b); !errors.Is(err, env.ErrSnapshot) || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("error %v", err)
	}
	if err := w.RestoreRows(running, nil, b); err != nil {
		t.Errorf("a row whose episode goes on: %v", err)
	}
}

func TestContinueGoesOnWithTheStream(t *testing.T) {
	e := &episodes{Env: envs(t, "ProbeConstant-v1", 1)[0]}
	v := newVec(t, vec.Config{}, e)
	b := env.NewBatch(v.Spec(), 1)
	v.Seed(40)
	for _, ep := range []env.Episode{{Seed: 1, Window: 5}, {Window: 2, Split: "test", Task: []float64{7}}} {
		if err := v.Continue(ctx, nil, []env.Episode{ep}, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint([]env.Episode{
		{Seed: 40, Window: 5},
		{Seed: env.EpisodeSeed(40, 1), Window: 2, Split: "test", Task: []float64{7}},
		{Seed: env.EpisodeSeed(40, 2), Window: -1, Task: []float64{7}},
	})
	if got := fmt.Sprint(e.seen); got != want {
		t.Errorf("episodes %v, want %v", got, want)
	}
	if err := v.Continue(ctx, nil, nil, b); err == nil {
		t.Error("no episode for a row is accepted")
	}
}

// episodes notes what its environment is reset to, without asking for what it lacks.
type episodes struct {
	env.Env
	seen []env.Episode
}

func (e *episodes) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	seen := ep
	seen.Task = slices.Clone(ep.Task)
	e.seen = append(e.seen, seen)
	return e.Env.Reset(ctx, env.Episode{Seed: ep.Seed, Window: -1}, ts)
}

func TestADroppedRowNeedsAReset(t *testing.T) {
	v := newVec(t, vec.Config{}, envs(t, "InvalidAction-v1", 2)...)
	b, a := env.NewBatch(v.Spec(), 2), env.NewActions(v.Spec(), 2)
	v.Seed(5)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	v.Drop(1)
	choosers(2).choose(v.Spec(), b, a)
	var re *vec.RowError
	if err := v.Step(ctx, nil, a, b); !errors.As(err, &re) || re.Row != 1 || !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("error %v", err)
	}
	if err := v.Reset(ctx, []int{1}, nil, b); err != nil {
		t.Fatal(err)
	}
	if seed, k := v.Episode(1); seed != 6 || k != 1 {
		t.Errorf("the row is at episode %d of the stream of %d, want 1 of 6", k, seed)
	}
}

func BenchmarkSendRecv(b *testing.B) {
	v := newVec(b, vec.Config{Workers: 2, Autoreset: vec.SameStep}, envs(b, "ProbeDeadStep-v1", 64)...)
	batch, a := env.NewBatch(v.Spec(), 64), env.NewActions(v.Spec(), 64)
	if err := v.Reset(ctx, nil, nil, batch); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Send(nil, a); err != nil {
			b.Fatal(err)
		}
		if _, err := v.Recv(ctx, 64, batch); err != nil {
			b.Fatal(err)
		}
	}
}
