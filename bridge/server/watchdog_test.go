package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/wire"
)

// impatient returns a configuration whose requests may take 2 s, which is ample for requests that are not meant to be
// late, even on a slow machine.
func impatient() Config {
	cfg := quick()
	cfg.StepTimeout = 2 * time.Second
	return cfg
}

func TestAStepThatTakesTooLongIsAnsweredAndSpoilsTheHandleUntilReset(t *testing.T) {
	t.Parallel()
	h := serve(t, impatient())
	g := newGate()
	h.hooks.one = g.wait // gives up with its context
	p := h.client()
	hd := p.open(2)
	if e := p.fails(wire.Timeout, "step", "h", hd, "a", act(1, 2)); !strings.Contains(e.Msg, "2s") {
		t.Errorf("it does not say what was too long: %s", e.Msg)
	}
	eventually(t, "the handle answers env_fault for itself", func() bool {
		return !p.fails(wire.EnvFault, "step", "h", hd, "a", act(0, 2)).Retry
	})
	p.must("reset", "h", hd, "seed", 3)
	if got := shown(t, p.must("step", "h", hd, "a", act(0, 2))); got != 1 {
		t.Errorf("step %v, want 1", got)
	}
	if got := h.metric(`clustergym_errors_total{code="timeout"}`, ""); got != "1" {
		t.Errorf("%s timeouts counted", got)
	}
}

func TestACallThatDoesNotComeBackBlocksNothingElse(t *testing.T) {
	t.Parallel()
	h := serve(t, impatient())
	g := newGate()
	h.hooks.one = g.deaf
	p := h.client()
	stuck, other := p.open(1), p.open(1)
	p.ask("step", "h", stuck, "a", act(1, 1))
	p.ask("reset", "h", stuck)
	p.must("step", "h", other, "a", act(0, 1))
	if v := p.recv(); wire.ErrorOf(v).Code != wire.Timeout {
		t.Fatalf("%v, want timeout", v)
	}
	if v := p.recv(); wire.ErrorOf(v).Code != wire.EnvFault || !wire.ErrorOf(v).Retry {
		t.Fatalf("%v, want env_fault, to be tried again", v)
	}
	p.fails(wire.UnknownOp, "jump", "h", stuck)
	p.must("step", "h", other, "a", act(0, 1))
	g.open()
	// The late step is discarded: the environments need a reset, which works again.
	eventually(t, "a reset succeeds", func() bool { return p.do("reset", "h", stuck).Get("op") == "reset" })
	if got := shown(t, p.must("step", "h", stuck, "a", act(0, 1))); got != 1 {
		t.Errorf("step %v, want 1", got)
	}
}

func TestAStuckHandleCanBeClosed(t *testing.T) {
	t.Parallel()
	h := serve(t, impatient())
	g := newGate()
	h.hooks.one = g.deaf
	p := h.client()
	hd := p.open(3)
	p.fails(wire.Timeout, "step", "h", hd, "a", act(1, 3))
	p.must("close", "h", hd)
	p.fails(wire.BadHandle, "step", "h", hd, "a", act(0, 3))
	if got := h.hooks.closedEnvs(); got != 0 {
		t.Errorf("%d environments closed while their call runs", got)
	}
	g.open()
	eventually(t, "all are closed", func() bool { return h.hooks.closedEnvs() == 3 })
	eventually(t, "none is counted", func() bool { return h.metric("clustergym_envs", "") == "0" })
}

func TestACloseThatTakesTooLongIsAnsweredAllTheSame(t *testing.T) {
	t.Parallel()
	h := serve(t, impatient())
	g := newGate()
	h.hooks.closing = func() { _ = g.deaf(t.Context()) }
	p := h.client()
	hd, other := p.open(1), p.open(1)
	p.ask("close", "h", hd)
	p.must("step", "h", other, "a", act(0, 1))
	if v := p.recv(); v.Get("op") != "close" {
		t.Fatalf("%v, want the reply to close", v)
	}
	p.must("close", "h", hd)
	p.fails(wire.BadHandle, "step", "h", hd, "a", act(0, 1))
	g.open()
	eventually(t, "it is closed",
		func() bool { return h.hooks.closedEnvs() == 1 && h.metric("clustergym_envs", "") == "1" })
}

func TestASessionWithAStuckHandleCanEnd(t *testing.T) {
	t.Parallel()
	h := serve(t, impatient())
	g := newGate()
	h.hooks.one = g.deaf
	p := h.client("feat", []any{})
	hd := p.open(2)
	p.fails(wire.Timeout, "step", "h", hd, "a", act(1, 2))
	q := h.client("feat", []any{})
	early := q.open(1)
	q.ask("step", "h", early, "a", act(1, 1)) // ends before its time is over
	p.drop()
	q.drop()
	eventually(t, "no session is left", func() bool { return h.sessionsLeft() == 0 })
	g.open()
	eventually(t, "all are closed", func() bool { return h.hooks.closedEnvs() == 3 })
}

func TestAnOpenThatTakesTooLongOpensNothing(t *testing.T) {
	t.Parallel()
	h := serve(t, impatient())
	g := newGate()
	h.hooks.making = g.deaf
	p := h.client()
	p.ask("open", "env", "Walk-v1", "n", 2)
	p.ask("reset", "h", 1)
	if v := p.recv(); wire.ErrorOf(v).Code != wire.Timeout {
		t.Fatalf("%v, want timeout", v)
	}
	if v := p.recv(); wire.ErrorOf(v).Code != wire.BadHandle {
		t.Fatalf("%v, want bad_handle", v)
	}
	p.fails(wire.BadHandle, "reset", "h", 1)
	g.open()
	eventually(t, "what it made is closed", func() bool { return h.hooks.closedEnvs() == 2 })
	h.hooks.making = nil
	p.open(1)
}

func TestATimeoutIsKeptForAResume(t *testing.T) {
	t.Parallel()
	h := serve(t, impatient())
	g := newGate()
	h.hooks.one = g.deaf
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	acked := p.next - 1
	late := p.ask("step", "h", hd, "a", act(1, 1))
	eventually(t, "it has timed out",
		func() bool { return h.metric(`clustergym_errors_total{code="timeout"}`, "") == "1" })
	p.drop()
	p = h.back(k, p.next, hd, acked)
	if v := p.recv(); v.Get("re") != int64(late) || wire.ErrorOf(v).Code != wire.Timeout {
		t.Fatalf("%v, want timeout for %d", v, late)
	}
	g.open()
	eventually(t, "a reset succeeds", func() bool { return p.do("reset", "h", hd).Get("op") == "reset" })
	p.next = late
	p.fails(wire.Timeout, "step", "h", hd, "a", act(1, 1))
}

func TestManyRequestsJustInTimeAndJustTooLateAreAnsweredOnceEach(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.StepTimeout = 2 * time.Millisecond
	h := serve(t, cfg)
	calls := 0
	h.hooks.one = func(context.Context) error {
		calls++
		time.Sleep(time.Duration(calls%30) * 100 * time.Microsecond) // about the limit
		return nil
	}
	p := h.client()
	var hd int64
	eventually(t, "an open is in time", func() bool {
		v := p.do("open", "env", "Walk-v1", "n", 1)
		hd, _ = v.Get("h").(int64)
		return v.Get("op") == "open"
	})
	eventually(t, "a reset is in time", func() bool { return p.do("reset", "h", hd, "seed", 7).Get("op") == "reset" })
	ok, late := 0, 0
	for range 300 {
		switch v := p.do("step", "h", hd, "a", act(1, 1)); {
		case v.Get("op") == "step":
			ok++
		case wire.ErrorOf(v).Code == wire.Timeout:
			late++
		case wire.ErrorOf(v).Code == wire.EnvFault:
			p.do("reset", "h", hd, "seed", 5)
		default:
			t.Fatalf("%v", v)
		}
	}
	t.Logf("%d in time, %d too late", ok, late)
	if late == 0 {
		t.Error("nothing was ever too late")
	}
}

func TestAPanicIsToldWithoutItsDetailsAndEndsNothing(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	h.hooks.one = func(context.Context) error { panic("secret of the house") }
	h.hooks.making = func(context.Context) error { panic("secret of the maker") }
	p := h.client()
	v := p.do("open", "env", "Walk-v1")
	if e := wire.ErrorOf(v); v.Get("op") != "error" || strings.Contains(e.Error(), "secret") {
		t.Fatalf("%v", v)
	}
	h.hooks.making = func(context.Context) error { return errors.New("secret of the disk") }
	if e := p.fails(wire.Internal, "open", "env", "Walk-v1"); strings.Contains(e.Error(), "secret") {
		t.Fatalf("%v", e)
	}
	h.hooks.making = nil
	hd := p.open(1)
	v = p.do("step", "h", hd, "a", act(1, 1))
	if strings.Contains(wire.ErrorOf(v).Error(), "secret") {
		t.Fatalf("%v", v)
	}
	p.fails(wire.EnvFault, "step", "h", hd, "a", act(0, 1))
	p.must("reset", "h", hd)
	p.must("step", "h", hd, "a", act(0, 1))
	h.stop()
	h.wait()
	for _, what := range []string{"secret of the house", "secret of the maker", "secret of the disk"} {
		if !strings.Contains(h.log.String(), what) {
			t.Errorf("the log does not tell the %s", what)
		}
	}
}
