package server

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
)

// ticket is what a client needs to resume its session.
type ticket struct{ session, token string }

func ticketOf(welcome wire.Map) ticket {
	s, _ := welcome.Get("session").(string)
	k, _ := welcome.Get("resume").(string)
	return ticket{s, k}
}

// asking returns the field resume of hello. last has alternating handles and ids.
func (k ticket) asking(last ...any) wire.Map {
	l := wire.Map{}
	for i := 0; i < len(last); i += 2 {
		l = append(l, wire.Pair{Key: fmt.Sprint(last[i]), Value: last[i+1]})
	}
	return m("session", k.session, "token", k.token, "last", l)
}

// back connects again as the client with the ticket.
func (h *host) back(k ticket, next uint32, last ...any) *peer {
	h.t.Helper()
	p := h.connect()
	p.next = next
	w := p.hello("resume", k.asking(last...))
	if ticketOf(w) != k {
		h.t.Fatalf("welcome %v, want session and token as before", w)
	}
	return p
}

func (h *host) parkedOnes() string { return h.metric("clustergym_sessions_parked", "") }

func TestALostSessionGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(2)
	p.must("step", "h", hd, "a", act(0, 2))
	p.drop()
	eventually(t, "parked", func() bool { return h.parkedOnes() == "1" })
	if got := h.metric("clustergym_sessions", ""); got != "0" {
		t.Errorf("%s sessions with a connection", got)
	}
	p = h.back(k, p.next, hd, p.next-1)
	// Nothing is sent again: the next message answers the next request.
	if got := shown(t, p.must("step", "h", hd, "a", act(0, 2))); got != 2 {
		t.Errorf("step %v, want 2", got)
	}
	if got := h.metric("clustergym_resumes_total", ""); got != "1" {
		t.Errorf("%s resumes", got)
	}
}

func TestAReplyThatWasNotReceivedIsSentAgainAndItsRequestNotExecutedTwice(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	acked := p.next - 1
	first := p.ask("step", "h", hd, "a", act(0, 1))
	second := p.ask("step", "h", hd, "a", act(0, 1))
	eventually(t, "both executed", func() bool { return h.metric("clustergym_steps_total", "") == "2" })
	p.drop()
	p = h.back(k, p.next, hd, acked)
	for i, id := range []uint32{first, second} {
		if v := p.recv(); v.Get("re") != int64(id) || shown(t, v) != float64(i+1) {
			t.Fatalf("%v, want the reply to %d", v, id)
		}
	}
	// Repeating them nevertheless returns the kept replies.
	for i, id := range []uint32{first, second} {
		p.next = id
		if v := p.must("step", "h", hd, "a", act(0, 1)); shown(t, v) != float64(i+1) {
			t.Fatalf("request %d was executed twice: %v", id, v)
		}
	}
	if got := shown(t, p.must("step", "h", hd, "a", act(0, 1))); got != 3 {
		t.Errorf("step %v, want 3", got)
	}
	// A request from after the resume is not a repetition.
	p.next--
	p.fails(wire.BadRequest, "step", "h", hd, "a", act(0, 1))
}

func TestARequestThatNeverArrivedIsExecutedWhenItIsRepeated(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	p.drop() // as if the request p.next had been lost
	p = h.back(k, p.next, hd, p.next-1)
	if got := shown(t, p.must("step", "h", hd, "a", act(0, 1))); got != 1 {
		t.Errorf("step %v, want 1", got)
	}
}

func TestARequestStillExecutedAtAResumeIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	g := newGate()
	h.hooks.one = g.wait
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	acked := p.next - 1
	p.ask("step", "h", hd, "a", act(1, 1))
	p.ask("step", "h", hd, "a", act(0, 1))
	p.must("ping") // the requests have arrived
	p.drop()
	p = h.back(k, acked+1, hd, acked, 0, p.next-1)
	p.ask("step", "h", hd, "a", act(1, 1))
	p.ask("step", "h", hd, "a", act(0, 1))
	p.next++       // the ping's
	p.must("ping") // the repetitions have arrived
	g.open()
	for i := range uint32(2) {
		if v := p.recv(); v.Get("re") != int64(acked+1+i) || shown(t, v) != float64(i+1) {
			t.Fatalf("reply %d: %v", i, v)
		}
	}
	if got := shown(t, p.must("step", "h", hd, "a", act(0, 1))); got != 3 {
		t.Errorf("step %v, want 3", got)
	}
}

func TestOnlyTheLastRepliesAreKept(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	for range 6 {
		p.must("step", "h", hd, "a", act(0, 1))
	}
	last := p.next - 1
	p.drop()
	p = h.back(k, last-4, hd, last)
	p.fails(wire.BadRequest, "step", "h", hd, "a", act(0, 1))
	for id := last - 3; id <= last; id++ {
		if v := p.must("step", "h", hd, "a", act(0, 1)); v.Get("re") != int64(id) {
			t.Fatalf("%v, want the reply to %d", v, id)
		}
	}
}

func TestRepliesOfClosedHandlesAndOfNoneAreKeptToo(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	k := ticketOf(p.hello())
	open := p.ask("open", "env", "Walk-v1")
	p.ask("reset", "h", 1)
	p.ask("close", "h", 1)
	fail := p.ask("open", "env", "Nowhere-v0")
	for range 4 {
		p.recv()
	}
	p.ask("step", "h", 77)
	p.recv()
	ping := p.ask("ping", "t", "x")
	p.recv()
	p.drop()
	// The client says that it has received nothing.
	p = h.back(k, p.next)
	for i, op := range []string{"open", "reset", "close", "error", "error", "ping"} {
		if v := p.recv(); v.Get("op") != op || v.Get("re") != int64(int(open)+i) {
			t.Fatalf("%v, want the reply to %s", v, op)
		}
	}
	p.next = fail
	p.fails(wire.UnknownEnv, "open", "env", "Nowhere-v0")
	p.next = ping
	p.must("ping", "t", "y")
	p.drop()
	// It has received the replies without a handle, up to that of the failed open.
	p = h.back(k, p.next, 0, fail, 1, open+2)
	for i, op := range []string{"error", "ping"} {
		if v := p.recv(); v.Get("op") != op || v.Get("re") != int64(int(fail)+1+i) {
			t.Fatalf("%v, want the reply to %s", v, op)
		}
	}
	p.must("ping")
}

func TestABusyRequestIsBusyAgain(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	g := newGate()
	h.hooks.one = g.wait
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	acked := p.next - 1
	for range 4 {
		p.ask("step", "h", hd, "a", act(1, 1))
	}
	p.fails(wire.Busy, "step", "h", hd, "a", act(0, 1))
	p.drop()
	p = h.back(k, p.next-1, hd, acked)
	p.fails(wire.Busy, "step", "h", hd, "a", act(0, 1))
	g.open()
	for i := range 4 {
		if v := p.recv(); shown(t, v) != float64(i+1) {
			t.Fatalf("%v, want step %d", v, i+1)
		}
	}
}

func TestAResumeNeedsTheRightTokenAndAllRefusalsReadTheSame(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Tokens = []Token{{RoleEnv, "one"}, {RoleAdmin, "two"}}
	h := serve(t, cfg)
	p := h.connect()
	k := ticketOf(p.hello("auth", "one"))
	none := ticketOf(func() wire.Map {
		q := h.connect()
		return q.hello("auth", "one", "feat", []any{})
	}())
	refused := func(auth string, r wire.Map) string {
		t.Helper()
		q := h.connect()
		q.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "feat", all, "auth", auth, "resume", r))
		return q.closedWith(wire.CloseExpired)
	}
	want := refused("one", m("session", "feedfeedfeedfeed", "token", k.token, "last", m()))
	for name, got := range map[string]string{
		"wrong token":       refused("one", m("session", k.session, "token", "00000000000000000000000000000000")),
		"empty token":       refused("one", m("session", k.session)),
		"empty":             refused("one", m()),
		"not to be resumed": refused("one", none.asking()),
		"somebody else's":   refused("two", k.asking()),
		"ended": func() string {
			p.must("bye")
			p.closedWith(wire.CloseBye)
			return refused("one",
				k.asking())
		}(),
		"the session's no id": refused("one", m("session", "", "token", "")),
	} {
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestASessionIsKeptOnlyForItsWindow(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.ResumeWindow = 20 * time.Millisecond
	h := serve(t, cfg)
	p := h.connect()
	k := ticketOf(p.hello())
	p.open(3)
	p.drop()
	eventually(t, "it has ended", func() bool { return h.sessionsLeft() == 0 && h.hooks.closedEnvs() == 3 })
	q := h.connect()
	q.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "feat", all, "resume", k.asking()))
	q.closedWith(wire.CloseExpired)
}

func TestASessionIsNotKeptAfterAnOrderlyEnd(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	for name, end := range map[string]func(p *peer){
		"close 1000": func(p *peer) {
			_ = p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(patience))
		},
		"a text message": func(p *peer) { _ = p.ws.WriteMessage(websocket.TextMessage, []byte("hello")) },
		"a websocket frame that must not be": func(p *peer) {
			_, _ = p.ws.NetConn().Write([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
		},
	} {
		p := h.client()
		p.open(1)
		end(p)
		eventually(t, name+": no session is left", func() bool { return h.sessionsLeft() == 0 })
	}
	// The session survives other close codes.
	p := h.client()
	_ = p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1001, ""), time.Now().Add(patience))
	eventually(t, "parked", func() bool { return h.parkedOnes() == "1" })
}

func TestAResumeTakesOverFromAConnectionThatStillIs(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	q := h.back(k, p.next, hd, p.next-1)
	p.closedWith(wire.CloseTakenOver)
	if got := shown(t, q.must("step", "h", hd, "a", act(0, 1))); got != 1 {
		t.Errorf("step %v, want 1", got)
	}
}

func TestManyTakeOversAtOnceLeaveOne(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	const n = 8
	peers := make([]*peer, n)
	var wg sync.WaitGroup
	for i := range n {
		peers[i] = h.connect()
	}
	for i, q := range peers {
		wg.Go(func() {
			w := wire.NewWriter(wire.Ext)
			w.Value(m("op", "hello", "id", 1, "proto", []any{1, 1}, "feat", all, "resume", k.asking(hd, p.next-1)))
			if err := q.raw(w.Bytes()); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	p.closedWith(wire.CloseTakenOver)
	var answered, over atomic.Int64
	for i, q := range peers {
		wg.Go(func() {
			v, err := q.read()
			answered.Add(1)
			if websocket.IsCloseError(err, wire.CloseTakenOver) {
				over.Add(1)
				return // even before its welcome
			}
			if err != nil || v.Get("op") != "welcome" {
				t.Errorf("client %d: %v, %v", i, v, err)
				return
			}
			_ = q.ws.SetReadDeadline(time.Time{})
			if _, _, err = q.ws.ReadMessage(); websocket.IsCloseError(err, wire.CloseTakenOver) {
				over.Add(1)
			}
		})
	}
	// The one that stays may get its welcome after the others have been taken over.
	eventually(t, "all but one are taken over", func() bool { return answered.Load() == n && over.Load() == n-1 })
	if got := h.sessionsLeft(); got != 1 {
		t.Errorf("%d sessions, want 1", got)
	}
	for _, q := range peers {
		q.drop()
	}
	wg.Wait()
	if got := over.Load(); got != n-1 {
		t.Errorf("%d connections of %d were taken over", got, n)
	}
}

func TestAResumeKeepsTheSessionsEncoding(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	k := ticketOf(p.hello("enc", []any{"mpnp"}))
	p.drop()
	q := h.connect()
	q.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "enc", []any{"ext"}, "resume", k.asking()))
	q.closedWith(wire.CloseNoVersion)
	j, _, err := h.dial(wire.SubJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	j.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "resume", k.asking()))
	j.closedWith(wire.CloseNoVersion)
	q = h.connect()
	if w := q.hello("enc", []any{"ext", "mpnp"}, "resume", k.asking()); w.Get("enc") != "mpnp" {
		t.Errorf("enc %v, want mpnp as before", w.Get("enc"))
	}
}

func TestAtTheLimitTheOldestParkedSessionMakesRoom(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxSessions = 3
	h := serve(t, cfg)
	var k [3]ticket
	var p [3]*peer
	for i := range p {
		p[i] = h.connect()
		k[i] = ticketOf(p[i].hello())
	}
	full := h.connect()
	full.send(m("op", "hello", "id", 1, "proto", []any{1, 1}))
	full.closedWith(wire.CloseCapacity)
	for i, n := range []int{1, 0} {
		p[n].drop()
		eventually(t, "parked", func() bool { return h.parkedOnes() == strconv.Itoa(i+1) })
		time.Sleep(time.Millisecond) // so that one is older
	}
	h.client()
	q := h.connect()
	q.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "resume", k[1].asking()))
	q.closedWith(wire.CloseExpired)
	h.back(k[0], 2)
	p[2].must("ping")
	if got := h.sessionsLeft(); got != 3 {
		t.Errorf("%d sessions, want 3", got)
	}
}

// However many say hello and open nothing, a session that waits with its environments keeps its place.
func TestEmptyHellosPushOutNoSessionThatWaits(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]bool{"they stay": false, "they leave": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := quick()
			cfg.MaxSessions = 4
			h := serve(t, cfg)
			p := h.connect()
			k := ticketOf(p.hello())
			hd := p.must("open", "env", "Walk-v1").Get("h").(int64)
			p.must("reset", "h", hd)
			p.drop()
			eventually(t, "parked", func() bool { return h.parkedOnes() == "1" })
			var others []*peer
			for range 20 {
				o := h.connect()
				o.hello("feat", []any{"resume"})
				others = append(others, o)
				if leave {
					o.drop()
				}
			}
			if !leave {
				if got := others[0].closedWith(wire.CloseCapacity); got != needless {
					t.Errorf("closed with %q", got)
				}
				others[len(others)-1].must("ping")
			}
			q := h.back(k, 10, "0", 2, "1", 3)
			q.must("step", "h", hd, "a", act(0, 1))
			if got := h.sessionsLeft(); got > cfg.MaxSessions {
				t.Errorf("%d sessions, want at most %d", got, cfg.MaxSessions)
			}
		})
	}
}

// Where all sessions have environments, the one that has waited longest makes room, as nothing else can.
func TestSessionsWithEnvironmentsMakeRoomLast(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxSessions = 2
	h := serve(t, cfg)
	p, q := h.connect(), h.connect()
	k := ticketOf(p.hello())
	p.must("open", "env", "Walk-v1")
	q.hello()
	q.must("open", "env", "Walk-v1")
	p.drop()
	eventually(t, "parked", func() bool { return h.parkedOnes() == "1" })
	h.client().must("ping")
	r := h.connect()
	r.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "resume", k.asking()))
	r.closedWith(wire.CloseExpired)
	q.must("ping")
}

// The session stays locked until the client that was closed asks for it again, so that the end of the old connection is
// still under way.
func TestASessionThatIsNotKeptCannotBeResumedWhileItsConnectionEnds(t *testing.T) {
	t.Parallel()
	text := func(p *peer) error { return p.ws.WriteMessage(websocket.TextMessage, []byte("{}")) }
	for _, c := range []struct {
		name string
		code int
		do   func(p *peer) error
	}{
		{"three unreadable messages", wire.CloseProtocol, func(p *peer) error {
			for range maxBad {
				if err := p.raw([]byte{0xc1}); err != nil {
					return err
				}
			}
			return nil
		}},
		{"bits that nobody agreed on", wire.CloseProtocol, func(p *peer) error {
			_, err := p.ws.NetConn().Write([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
			return err
		}},
		{"a message of the wrong type", wire.CloseWrongType, text},
		{"a message that is too large", wire.CloseTooLarge, func(p *peer) error { return p.raw(make([]byte, 65<<10)) }},
		{"an orderly end", wire.CloseBye, func(p *peer) error {
			return p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(wire.CloseBye, ""),
				time.Now().Add(patience))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := quick()
			cfg.MaxFrameIn = 64 << 10
			h := serve(t, cfg)
			for range 8 {
				p, q := h.connect(), h.connect()
				k := ticketOf(p.hello())
				h.mu.Lock()
				s := h.sessions[k.session]
				h.mu.Unlock()
				func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					if err := c.do(p); err != nil {
						t.Fatal(err)
					}
					p.closedWith(c.code)
					q.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "feat", all, "resume", k.asking()))
					time.Sleep(time.Millisecond) // it needs some time to reach the lock
				}()
				q.closedWith(wire.CloseExpired)
			}
		})
	}
}
