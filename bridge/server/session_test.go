package server

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
)

func TestADialogueFromHelloToBye(t *testing.T) {
	t.Parallel()
	for _, sub := range []string{wire.SubMsgpack, wire.SubJSON} {
		h := serve(t, quick())
		p, _, err := h.dial(sub, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.hello()
		p.must("open", "env", "Walk-v1", "n", 2)
		if got := shown(t, p.must("reset", "h", 1, "seed", 3)); got != 0 {
			t.Errorf("%s: reset shows step %v", sub, got)
		}
		if got := shown(t, p.must("step", "h", 1, "a", act(0, 2))); got != 1 {
			t.Errorf("%s: step shows step %v", sub, got)
		}
		if v := p.must("ping", "t", 3.5); v.Get("t") != 3.5 || v.Get("qlen") != int64(0) {
			t.Errorf("%s: ping: %v", sub, v)
		}
		p.must("close", "h", 1)
		p.must("close", "h", 1)
		p.fails(wire.BadHandle, "step", "h", 1, "a", act(0, 2))
		if got := h.hooks.closedEnvs(); got != 2 {
			t.Errorf("%s: %d environments closed, want 2", sub, got)
		}
		p.must("bye")
		p.closedWith(wire.CloseBye)
		eventually(t, "no session", func() bool { return h.sessionsLeft() == 0 })
	}
}

func TestTheWelcomeSaysWhatWasAgreedOn(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Version, cfg.Commit, cfg.MaxEnvs, cfg.IdleTimeout = "1.2.3", "abc", 7, 90*time.Second
	h := serve(t, cfg)
	w := h.connect().hello("feat", []any{"async", "telepathy", "resume"}, "enc", []any{"packed", "mpnp", "ext"},
		"something", "else")
	if w.Get("proto") != int64(1) || w.Get("enc") != "mpnp" {
		t.Errorf("proto %v, enc %v", w.Get("proto"), w.Get("enc"))
	}
	feat, e := w.Strs("feat", nil)
	if e != nil || !slices.Equal(feat, []string{"async", "resume"}) {
		t.Errorf("feat %v", feat)
	}
	srv, _ := w.Get("server").(wire.Map)
	if srv.Get("name") != "clustergym" || srv.Get("version") != "1.2.3" || srv.Get("commit") != "abc" {
		t.Errorf("server %v", srv)
	}
	if s, _ := w.Get("session").(string); s == "" {
		t.Error("no session")
	}
	if s, _ := w.Get("resume").(string); len(s) != 32 {
		t.Errorf("resume %q, want 128 bits in hexadecimal", s)
	}
	limits, _ := w.Get("limits").(wire.Map)
	for key, want := range map[string]any{
		"frame_in": int64(16 << 20), "frame_out": int64(64 << 20), "envs": int64(7), "handles": int64(64),
		"inflight": int64(4),
		"sessions": int64(256), "idle_s": 90.0, "resume_s": 120.0, "step_s": 60.0, "ping_s": 30.0,
	} {
		if got := limits.Get(key); got != want {
			t.Errorf("limit %s is %v (%T), want %v", key, got, got, want)
		}
	}
}

func TestResumeIsGrantedOnlyWhereItIsAskedForAndOffered(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	if w := h.connect().hello("feat", []any{"async"}); w.Has("resume") {
		t.Errorf("nobody asked: %v", w)
	}
	cfg := quick()
	cfg.ResumeWindow = 0
	h = serve(t, cfg)
	w := h.connect().hello()
	if feat, _ := w.Strs("feat", nil); w.Has("resume") || slices.Contains(feat, "resume") {
		t.Errorf("it is switched off: %v", w)
	}
}

func TestABadHelloIsClosedWithWhatToDo(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	good := m("op", "hello", "id", 1, "proto", []any{1, 1}, "enc", []any{"ext"})
	for name, c := range map[string]struct {
		m    wire.Map
		code int
	}{
		"another op":            {with(good, "op", "step"), wire.CloseBadHello},
		"another id":            {with(good, "id", 2), wire.CloseBadHello},
		"no id":                 {m("op", "hello"), wire.CloseBadHello},
		"a negative id":         {with(good, "id", -1), wire.CloseBadHello},
		"no version":            {m("op", "hello", "id", 1), wire.CloseBadHello},
		"one version":           {with(good, "proto", []any{1}), wire.CloseBadHello},
		"versions as text":      {with(good, "proto", "1"), wire.CloseBadHello},
		"versions upside down":  {with(good, "proto", []any{2, 1}), wire.CloseBadHello},
		"only later versions":   {with(good, "proto", []any{2, 9}), wire.CloseNoVersion},
		"only former versions":  {with(good, "proto", []any{0, 0}), wire.CloseNoVersion},
		"encodings as text":     {with(good, "enc", "ext"), wire.CloseBadHello},
		"no encoding in common": {with(good, "enc", []any{"packed", "json"}), wire.CloseNoVersion},
		"features as text":      {with(good, "feat", "async"), wire.CloseBadHello},
		"resume as text":        {with(good, "resume", "x"), wire.CloseBadHello},
		"resume of bad handles": {with(good, "resume", m("session", "a", "token", "b", "last", m("x", 1))),
			wire.CloseBadHello},
		"resume of bad ids": {with(good, "resume", m("session", "a", "token", "b", "last", m("1", "x"))),
			wire.CloseBadHello},
		"a long wrong op": {with(good, "op", "ä"+string(make([]byte, 9000))), wire.CloseBadHello},
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			p := h.connect()
			p.send(c.m)
			p.closedWith(c.code)
		})
	}
	h.t = t
	p := h.connect()
	if err := p.raw([]byte{0xc1}); err != nil {
		t.Fatal(err)
	}
	p.closedWith(wire.CloseBadHello)
	if got := h.sessionsLeft(); got != 0 {
		t.Errorf("%d sessions began", got)
	}
}

func TestAnUnreadableMessageIsToldAndTheThirdInARowEndsIt(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.client()
	bad := func() {
		t.Helper()
		if err := p.raw([]byte{0x81, 0xa1}); err != nil {
			t.Fatal(err)
		}
		if v := p.recv(); v.Get("re") != int64(0) || wire.ErrorOf(v).Code != wire.BadFrame {
			t.Fatalf("an unreadable message is answered by %v", v)
		}
	}
	bad()
	bad()
	p.must("ping")
	bad()
	bad()
	p.must("ping")
	bad()
	bad()
	bad()
	p.closedWith(wire.CloseProtocol)
	eventually(t, "no session, for it is not kept", func() bool { return h.sessionsLeft() == 0 })
}

func TestRequestsThatMakeNoSenseAreRefusedOneByOne(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.client("feat", []any{})
	hd := p.open(1)
	for name, c := range map[string]struct {
		code wire.Code
		op   string
		more []any
	}{
		"unknown op":          {wire.UnknownOp, "jump", nil},
		"unknown op, handle":  {wire.UnknownOp, "jump", []any{"h", hd}},
		"empty op":            {wire.BadRequest, "", nil},
		"hello again":         {wire.BadRequest, "hello", nil},
		"no handle":           {wire.BadRequest, "step", nil},
		"handle 0":            {wire.BadRequest, "step", []any{"h", 0}},
		"handle as text":      {wire.BadRequest, "step", []any{"h", "1"}},
		"unknown handle":      {wire.BadHandle, "step", []any{"h", 99}},
		"close never opened":  {wire.BadHandle, "close", []any{"h", 99}},
		"send, not agreed":    {wire.Unsupported, "send", []any{"h", hd, "a", act(0, 1)}},
		"recv, not agreed":    {wire.Unsupported, "recv", []any{"h", hd}},
		"render, not agreed":  {wire.Unsupported, "render", []any{"h", hd}},
		"snapshot not agreed": {wire.Unsupported, "snapshot", []any{"h", hd}},
		"restore not agreed":  {wire.Unsupported, "restore", []any{"h", hd}},
		"unknown environment": {wire.UnknownEnv, "open", []any{"env", "Nowhere-v0"}},
		"no environment":      {wire.BadRequest, "open", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			p.fails(c.code, c.op, c.more...)
		})
	}
	p.t = t
	p.send(m("op", 5, "id", p.next))
	p.next++
	if v := p.recv(); wire.ErrorOf(v).Code != wire.BadRequest || v.Get("re") != int64(p.next-1) {
		t.Errorf("an op that is a number: %v", v)
	}
	p.must("step", "h", hd, "a", act(0, 1))
}

func TestIDsMustGrow(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.client()
	hd := p.open(1)
	for name, c := range map[string]struct {
		id any
		re int64
	}{
		"none": {nil, 0}, "text": {"7", 0}, "zero": {0, 0}, "negative": {-3, 0}, "too large": {int64(1) << 32, 0},
		"a former one": {2, 2}, "the last one": {3, 3},
	} {
		v := m("op", "step", "h", hd, "a", act(0, 1))
		if c.id != nil {
			v = append(v, wire.Pair{Key: "id", Value: c.id})
		}
		p.send(v)
		if got := p.recv(); got.Get("re") != c.re || wire.ErrorOf(got).Code != wire.BadRequest {
			t.Errorf("%s: %v", name, got)
		}
	}
	p.next = 1000
	if got := shown(t, p.must("step", "h", hd, "a", act(0, 1))); got != 1 {
		t.Errorf("a refused request had an effect: step %v", got)
	}
	p.next = 1<<32 - 1
	p.must("ping")
}

// gate lets environments wait until a test opens it.
type gate struct{ c chan struct{} }

func newGate() gate { return gate{make(chan struct{})} }

func (g gate) open() { close(g.c) }

// wait is a hook that waits, and gives up with its context.
func (g gate) wait(ctx context.Context) error {
	select {
	case <-g.c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deaf is a hook that waits and ignores its context.
func (g gate) deaf(context.Context) error {
	select {
	case <-g.c:
		return nil
	case <-time.After(patience):
		return errors.New("the test forgot to open the gate")
	}
}

func TestHandlesWorkBesideEachOtherEachInOrder(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	g := newGate()
	h.hooks.one = g.wait
	p := h.client()
	a, b := p.open(1), p.open(1)
	var want []int64
	want = append(want, int64(p.ask("step", "h", a, "a", act(1, 1))), int64(p.ask("step", "h", a, "a", act(0, 1))))
	// The error of the third request comes in its turn.
	want = append(want, int64(p.ask("jump", "h", a)), int64(p.ask("step", "h", a, "a", act(0, 1))))
	for range 3 {
		p.must("step", "h", b, "a", act(0, 1))
	}
	if v := p.must("ping"); v.Get("qlen") != int64(4) {
		t.Errorf("ping: %v, want a queue of 4", v)
	}
	g.open()
	for _, id := range want {
		if v := p.recv(); v.Get("re") != id {
			t.Fatalf("reply to %v, want %d", v.Get("re"), id)
		}
	}
}

func TestTooManyRequestsAreBusyAndHaveNoEffect(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	g := newGate()
	h.hooks.one = g.wait
	p := h.client()
	hd := p.open(1)
	first := p.ask("step", "h", hd, "a", act(1, 1))
	for range 3 {
		p.ask("step", "h", hd, "a", act(0, 1))
	}
	for range 5 {
		if e := p.fails(wire.Busy, "step", "h", hd, "a", act(0, 1)); !e.Retry {
			t.Error("busy, and yet not to be tried again")
		}
	}
	g.open()
	for i := range uint32(4) {
		if v := p.recv(); v.Get("re") != int64(first+i) || shown(t, v) != float64(i+1) {
			t.Fatalf("reply %d: %v", i, v)
		}
	}
	if got := shown(t, p.must("step", "h", hd, "a", act(0, 1))); got != 5 {
		t.Errorf("step %v, want 5", got)
	}
}

func TestOpensAreLimitedToo(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxHandles, cfg.MaxEnvs = 5, 3
	h := serve(t, cfg)
	g := newGate()
	h.hooks.making = g.wait
	p := h.client()
	for range 4 {
		p.ask("open", "env", "Walk-v1")
	}
	p.fails(wire.Busy, "open", "env", "Walk-v1")
	g.open()
	for range 4 {
		if v := p.recv(); v.Get("op") != "open" {
			t.Fatalf("%v", v)
		}
	}
	p.fails(wire.Capacity, "open", "env", "Walk-v1", "n", 4)
	v := p.must("open", "env", "Walk-v1", "n", 3)
	if e := p.fails(wire.Capacity, "open", "env", "Walk-v1"); !e.Retry {
		t.Error("no handle is free, and yet it is not to be tried again")
	}
	p.must("close", "h", v.Get("h"))
	p.must("open", "env", "Walk-v1")
	if got := h.metric("clustergym_handles", ""); got != "5" {
		t.Errorf("%s handles", got)
	}
	if got := h.metric("clustergym_envs", ""); got != "5" {
		t.Errorf("%s environments", got)
	}
}

func TestRequestsMayFollowAnOpenBeforeItsReply(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.client()
	p.ask("open", "env", "Walk-v1")
	p.ask("reset", "h", 1)
	p.ask("step", "h", 1, "a", act(0, 1))
	p.ask("close", "h", 1)
	for i, op := range []string{"open", "reset", "step", "close"} {
		if v := p.recv(); v.Get("op") != op || v.Get("re") != int64(2+i) {
			t.Fatalf("%v, want the reply to %s", v, op)
		}
	}
	// If an open fails, the requests to its handle fail too.
	p.ask("open", "env", "Nowhere-v0")
	p.ask("reset", "h", 2)
	p.ask("close", "h", 2)
	for i, want := range []wire.Code{wire.UnknownEnv, wire.BadHandle, ""} {
		v := p.recv()
		if v.Get("re") != int64(6+i) || want != "" && wire.ErrorOf(v).Code != want || want == "" && v.Get("op") != "close" {
			t.Fatalf("%v, want %q", v, want)
		}
	}
	p.must("close", "h", 2)
}

func TestByeWaitsForWhatIsUnanswered(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	g := newGate()
	h.hooks.one = g.wait
	p := h.client()
	hd := p.open(1)
	step := p.ask("step", "h", hd, "a", act(1, 1))
	bye := p.ask("bye")
	if e := p.fails(wire.BadRequest, "open", "env", "Walk-v1"); e.Msg == "" {
		t.Error("no message")
	}
	g.open()
	if v := p.recv(); v.Get("re") != int64(step) || v.Get("op") != "step" {
		t.Fatalf("%v, want the step's reply", v)
	}
	if v := p.recv(); v.Get("re") != int64(bye) || v.Get("op") != "bye" {
		t.Fatalf("%v, want bye", v)
	}
	p.closedWith(wire.CloseBye)
	eventually(t, "the environment is closed", func() bool { return h.hooks.closedEnvs() == 1 })
}

func TestTwoClientsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	a, b := h.client(), h.client()
	ha, hb := a.open(1), b.open(1)
	for i := 1; i <= 5; i++ {
		if got := shown(t, a.must("step", "h", ha, "a", act(0, 1))); got != float64(i) {
			t.Fatalf("a is at step %v, want %d", got, i)
		}
	}
	if got := shown(t, b.must("step", "h", hb, "a", act(0, 1))); got != 1 {
		t.Errorf("b is at step %v, want 1", got)
	}
	b.fails(wire.BadHandle, "step", "h", 2, "a", act(0, 1))
	a.drop()
	b.must("step", "h", hb, "a", act(0, 1))
}

func TestTheServerPingsAndAnswersPings(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.PingInterval, cfg.IdleTimeout = 5*time.Millisecond, 4*time.Second
	h := serve(t, cfg)
	p := h.client("feat", []any{})
	pings, pongs := 0, 0
	answer := p.ws.PingHandler()
	p.ws.SetPingHandler(func(data string) error { pings++; return answer(data) })
	p.ws.SetPongHandler(func(string) error { pongs++; return nil })
	if err := p.ws.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// For longer than the idle time this client sends only pongs.
	_ = p.ws.SetReadDeadline(time.Now().Add(cfg.IdleTimeout + time.Second))
	if _, _, err := p.ws.ReadMessage(); err == nil || websocket.IsUnexpectedCloseError(err) {
		t.Fatalf("the server ends it: %v", err)
	}
	if pings < 3 || pongs != 1 {
		t.Errorf("%d pings and %d pongs", pings, pongs)
	}
}

// A client that answers no ping, because it learns for a while or has a poor library, is alive as long as it sends
// anything within the idle time.
func TestAMissingPongEndsNothing(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.PingInterval, cfg.IdleTimeout = time.Millisecond, patience
	h := serve(t, cfg)
	p := h.client("feat", []any{})
	hd := p.open(1)
	pings := 0
	p.ws.SetPingHandler(func(string) error { pings++; return nil })
	for i := 0; pings < 100; i++ {
		time.Sleep(20 * time.Millisecond) // it reads nothing
		p.must("reset", "h", hd)
		p.must("step", "h", hd, "a", act(0, 1))
		if i > 2000 {
			t.Fatalf("%d pings", pings)
		}
	}
	if got := h.metric("clustergym_sessions_reaped_total", ""); got != "0" {
		t.Errorf("%s reaped", got)
	}
}
