package handle

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/wire"
)

func TestAPanicInOneEnvironmentIsItsOwnFault(t *testing.T) {
	for _, mode := range []string{"next_step", "same_step", "disabled"} {
		for _, workers := range []int{1, 4} {
			var log bytes.Buffer
			d := newDriver(t, toys(func(k int, e *toy) {
				if k == 1 {
					e.panicAt = 2
				}
			}))
			d.lim.Workers = workers
			d.o.Log = slog.New(slog.NewTextHandler(&log, nil))
			d.open("Toy-v3", field("n", 3), field("info", "all"), field("autoreset", mode))
			d.do(wire.OpReset, field("seed", 10))
			d.pass(3, 1)
			m := d.do(wire.OpStep, field("a", i64s(2, 2, 2)))
			is(t, "the others answer", at(m, "obs", "aa"), 10, 2, 0, 0, 12, 2)
			is(t, "r", m.Get("r"), 2, 0, 2)
			is(t, "te", m.Get("te"), 0, 0, 0)
			is(t, "tr", m.Get("tr"), 0, 0, 0)
			is(t, "_discount", at(m, "info", "_discount"), 1, 0, 1)
			list, _ := m.Get("fault").([]any)
			if len(list) != 1 {
				t.Fatalf("%s: fault %v", mode, m.Get("fault"))
			}
			f := list[0].(wire.Map)
			msg, _ := f.Str("msg", "")
			got := regexp.MustCompile(
				`^the environment panicked in step: see fault ([0-9a-f]{12}) in the server's log$`).FindStringSubmatch(msg)
			if f.Get("code") != "env_fault" || !reflect.DeepEqual(f.Get("env"), []any{int64(1)}) || got == nil {
				t.Fatalf("%s: fault %v", mode, f)
			}
			for _, want := range []string{got[1], "the toy is broken", "Toy-v3", "index=1", "guard.go"} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %q: %s", want, log.String())
				}
			}
			// It refuses everything until it is reset. A request that names it is refused before anything is done.
			for _, op := range []string{wire.OpStep, wire.OpMasks, wire.OpRender, wire.OpSnapshot} {
				e := d.fails(wire.EnvFault, op, field("a", i64s(0, 0, 0)))
				if !reflect.DeepEqual(e.Env, []int{1}) {
					t.Errorf("%s: environments %v", op, e.Env)
				}
			}
			is(t, "obs", at(d.do(wire.OpStep, field("a", i64s(0, 0)), field("ids", []int{0, 2})), "obs", "aa"), 10, 3, 12, 3)
			theToy(d, 1).panicAt = 0
			is(t, "obs", at(d.do(wire.OpReset, field("ids", []int{1}), field("seed", 50)), "obs", "aa"), 51, 0)
			is(t, "obs", at(d.pass(3, 1), "obs", "aa"), 10, 4, 51, 1, 12, 4)
		}
	}
}

func TestWhereEveryEnvironmentFailsTheReplyIsAnError(t *testing.T) {
	d := newDriver(t, toys(func(_ int, e *toy) { e.panicAt = 1 }))
	d.open("Toy-v3")
	d.do(wire.OpReset, field("seed", 0))
	e := d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(0)))
	if !reflect.DeepEqual(e.Env, []int{0}) || !strings.HasPrefix(e.Msg, "the environment panicked in step") ||
		e.Want != "a reset of it" {
		t.Errorf("%v of %v", e.Error(), e.Env)
	}
}

func TestAnEnvironmentThatFailsIsAFaultToo(t *testing.T) {
	d := newDriver(t, toys(func(k int, e *toy) {
		if k == 0 {
			e.failAt = 1
		}
	}))
	d.open("Toy-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 0))
	m := d.do(wire.OpStep, field("a", i64s(0, 0)))
	f := m.Get("fault").([]any)[0].(wire.Map)
	if f.Get("msg") != "the environment failed: the toy has failed" || !reflect.DeepEqual(f.Get("env"), []any{int64(0)}) {
		t.Errorf("fault %v", f)
	}
	if e := d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(0, 0))); !reflect.DeepEqual(e.Env, []int{0}) {
		t.Errorf("environments %v", e.Env)
	}
	d.do(wire.OpReset, field("ids", []int{0}))
	if m := d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{1})); m.Has("fault") {
		t.Error("a fault is told twice")
	}
}

// After an abandoned request the state of its environments is unknown.
func TestAPoisonedHandleNeedsAResetOfEveryRow(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3))
	d.do(wire.OpReset, field("seed", 10))
	d.pass(3, 2)
	blob := d.do(wire.OpSnapshot, field("ids", []int{2})).Get("blob")
	d.h.Poison()
	if e := d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(0, 0, 0))); !reflect.DeepEqual(e.Env, []int{0, 1, 2}) {
		t.Errorf("environments %v", e.Env)
	}
	d.do(wire.OpReset, field("ids", []int{0}))
	d.do(wire.OpRestore, field("ids", []int{2}), field("blob", blob))
	m := d.do(wire.OpStep, field("a", i64s(0, 0)), field("ids", []int{0, 2}))
	is(t, "obs", numbers(at(m, "obs", "aa"))[2:], 12, 3)
	if e := d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(0, 0, 0))); !reflect.DeepEqual(e.Env, []int{1}) {
		t.Errorf("environments %v", e.Env)
	}
}

func TestATimeThatEndsIsReturnedAsSuch(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	for _, op := range []string{wire.OpStep, wire.OpReset} {
		req := d.frame(op, wire.Map{field("a", i64s(0, 0))})
		d.w.Reset()
		if err := d.h.Do(ctx, op, d.re, req, d.w); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// A panic in the server's own code ends a request, not the server.
func TestAPanicOfTheServerIsAnError(t *testing.T) {
	f := toys(nil)
	f.meta = make(chan int) // no value that a reply can carry
	d := newDriver(t, f)
	if _, err := d.tryOpen(wire.Map{field("env", "Toy-v3")}); err == nil || err.Code != wire.Internal {
		t.Errorf("error %v", err)
	}
}
