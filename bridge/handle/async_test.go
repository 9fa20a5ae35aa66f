package handle

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"clustergym/bridge/wire"
)

func TestRecvAnswersWithTheFirstThatAreDone(t *testing.T) {
	hold := make(chan struct{})
	d := newDriver(t, toys(func(k int, e *toy) {
		if k == 1 {
			e.wait = hold
		}
	}))
	d.lim.Workers = 2
	d.open("Toy-v3", field("n", 3), field("recv", "any"), field("batch", 2))
	d.do(wire.OpReset, field("seed", 10))
	d.fails(wire.NotPending, wire.OpRecv)
	if m := d.do(wire.OpSend, field("a", i64s(2, 3, 0))); len(m) != 2 {
		t.Errorf("send answers %v", m)
	}
	m := d.do(wire.OpRecv)
	is(t, "ids", m.Get("ids"), 0, 2)
	is(t, "obs", at(m, "obs", "aa"), 10, 1, 12, 1)
	is(t, "r", m.Get("r"), 2, 0)
	// Rows that are out cannot be named; the others can.
	for _, op := range []string{wire.OpStep, wire.OpSend, wire.OpReset, wire.OpSnapshot, wire.OpMasks, wire.OpRender} {
		e := d.fails(wire.BadRequest, op, field("a", i64s(0, 0, 0)))
		if !reflect.DeepEqual(e.Env, []int{1}) || e.Want != "a recv first" {
			t.Errorf("%s: %v of %v", op, e.Error(), e.Env)
		}
	}
	d.do(wire.OpSend, field("a", i64s(2)), field("ids", []int{2}))
	close(hold)
	m = d.do(wire.OpRecv)
	is(t, "ids", m.Get("ids"), 1, 2)
	is(t, "obs", at(m, "obs", "aa"), 11, 1, 12, 2)
	d.fails(wire.NotPending, wire.OpRecv)
	if s := d.h.Stats(); s.Steps != 4 {
		t.Errorf("counted %+v", s)
	}
}

func TestWithoutBatchRecvWaitsForAll(t *testing.T) {
	for _, recv := range []string{"any", "all"} {
		d := newDriver(t, toys(nil))
		d.open("Toy-v3", field("n", 5), field("recv", recv))
		d.do(wire.OpReset, field("seed", 0))
		d.do(wire.OpSend, field("a", i64s(2, 2)), field("ids", []int{4, 1}))
		d.do(wire.OpSend, field("a", i64s(3)), field("ids", []int{3}))
		m := d.do(wire.OpRecv)
		is(t, "ids", m.Get("ids"), 1, 3, 4)
		is(t, "r", m.Get("r"), 2, 3, 2)
	}
}

// If a recv is abandoned, the state of its rows is unknown: they are poisoned until a reset fetches them.
func TestAfterAPoisoningAResetGetsRowsBack(t *testing.T) {
	hold := make(chan struct{})
	d := newDriver(t, toys(func(k int, e *toy) {
		if k == 1 {
			e.wait = hold
		}
	}))
	d.lim.Workers = 2
	d.open("Toy-v3", field("n", 2), field("recv", "any"))
	d.do(wire.OpReset, field("seed", 0))
	d.do(wire.OpSend, field("a", i64s(0, 0)))
	try := func(op string, fields ...wire.Pair) error {
		req := d.frame(op, fields)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		d.w.Reset()
		return d.h.Do(ctx, op, d.re, req, d.w)
	}
	if err := try(wire.OpRecv); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("recv: %v", err)
	}
	d.h.Poison()
	for _, op := range []string{wire.OpStep, wire.OpSend, wire.OpRecv, wire.OpMasks} {
		if e := d.fails(wire.EnvFault, op, field("a", i64s(0, 0))); !reflect.DeepEqual(e.Env, []int{0, 1}) {
			t.Errorf("%s: environments %v", op, e.Env)
		}
	}
	// A reset of the other row waits too, since its next result could not be told from the abandoned one.
	for _, ids := range [][]int{{0, 1}, {0}} {
		if err := try(wire.OpReset, field("ids", ids)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("reset while the call is stuck: %v", err)
		}
	}
	close(hold)
	is(t, "obs", at(d.do(wire.OpReset, field("seed", 30)), "obs", "aa"), 30, 0, 31, 0)
	d.fails(wire.NotPending, wire.OpRecv)
	is(t, "obs", at(d.pass(2, 1), "obs", "aa"), 30, 1, 31, 1)
}

func TestFaultsComeWithARecv(t *testing.T) {
	d := newDriver(t, toys(func(k int, e *toy) {
		if k == 2 {
			e.panicAt = 1
		}
	}))
	d.lim.Workers = 3
	d.open("Toy-v3", field("n", 3), field("recv", "any"))
	d.do(wire.OpReset, field("seed", 0))
	d.do(wire.OpSend, field("a", i64s(0, 0, 0)))
	m := d.do(wire.OpRecv)
	if f, _ := m.Get("fault").([]any); len(f) != 1 || !reflect.DeepEqual(f[0].(wire.Map).Get("env"), []any{int64(2)}) {
		t.Errorf("fault %v", m.Get("fault"))
	}
	is(t, "obs", at(m, "obs", "aa"), 0, 1, 1, 1, 0, 0)
	d.fails(wire.EnvFault, wire.OpSend, field("a", i64s(0, 0, 0)))
	d.do(wire.OpSend, field("a", i64s(0, 0)), field("ids", []int{1, 0}))
	is(t, "ids", d.do(wire.OpRecv).Get("ids"), 0, 1)
	d.do(wire.OpSend, field("a", i64s(0, 0)), field("ids", []int{1, 0})) // what is out at the end is waited for
}

// A recv shows the end of an episode as a step does.
func TestEpisodesEndInARecv(t *testing.T) {
	for _, mode := range []string{"next_step", "same_step"} {
		d := newDriver(t, toys(nil))
		d.lim.Workers = 2
		d.open("Toy-v3", field("n", 2), field("recv", "any"), field("batch", 1), field("autoreset", mode))
		d.do(wire.OpReset, field("seed", 0))
		lengths := map[int][]float64{}
		d.do(wire.OpSend, field("a", i64s(0, 0)))
		for range 3 * toyEnd {
			m := d.do(wire.OpRecv)
			i := int(numbers(m.Get("ids"))[0])
			info, _ := m.Sub("info")
			if mode == "same_step" {
				info, _ = at(m, "fin", "info").(wire.Map)
			}
			lengths[i] = append(lengths[i], numbers(at(info, "episode", "l"))...)
			d.do(wire.OpSend, field("a", i64s(0)), field("ids", []int{i}))
		}
		if got := append(slices.Clone(lengths[0]), lengths[1]...); len(got) < 2 || slices.Min(got) != toyEnd ||
			slices.Max(got) != toyEnd {
			t.Errorf("%s: lengths %v", mode, lengths)
		}
	}
}
