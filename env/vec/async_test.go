package vec_test

import (
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

// rowBits returns everything that a call wrote to row i, including its Final columns.
func rowBits(s env.Spec, b *env.Batch, i int) string {
	o, m, n := s.ObsLen(), s.MaskLen(), len(s.Info)
	out := fmt.Sprintf("%v %x %v %x %v %x", b.Kind[i], b.Reward[i], b.Elapsed[i], b.Obs[i*o:(i+1)*o], b.Mask[i*m:(i+1)*m],
		b.Info[i*n:(i+1)*n])
	if k := slices.Index(b.FinalRows, i); k >= 0 {
		out += fmt.Sprintf(" | %x %v %x", b.FinalObs[k*o:(k+1)*o], b.FinalMask[k*m:(k+1)*m], b.FinalInfo[k*n:(k+1)*n])
	}
	return out
}

// trajectories plays every row for the given number of steps. If least is 0, all rows are stepped together; otherwise
// each is sent again as soon as it was received.
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
	// The rows that have steps left, and those of them that are not out.
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
						t.Fatalf("%v, %s, %d workers, %d at once: step %d of row %d is\n%s, stepped\n%s", mode, id, c.workers, c.least, k,
							i, got[i][k], want[i][k])
					}
				}
			}
		}
	}
}

// gate is an environment whose steps block until the test lets them through.
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
	// Nothing else is done, so the context ends the wait, and no row is lost.
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	if rows, err := v.Recv(short, 1, b); rows != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("rows %v, error %v", rows, err)
	}
	// Rows that are not out can be stepped and reset meanwhile; those that are out cannot be named.
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
		"RestoreRows":    v.RestoreRows(nil, []int{1}, b),
		"AppendSnapshot": func() error { _, err := v.AppendSnapshot(nil); return err }(),
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
		"actions of 2 rows": v.Send(nil,
			short), "row 3 of 3": v.Send([]int{0, 3}, a), "row 1 is asked for twice": v.Send([]int{1, 1}, a),
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
