package server

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
)

// laneOf returns the lane of a handle in the server's only session.
func (h *host) laneOf(hd int64) *lane {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lanes[uint32(hd)]
	}
	h.t.Fatal("there is no session")
	return nil
}

// warm makes steps until the reader would execute the next request to a handle itself.
func (p *peer) warm(h *host, hd int64, n int) {
	p.t.Helper()
	l := h.laneOf(hd)
	eventually(p.t, "a step was brief", func() bool {
		p.must("step", "h", hd, "a", act(0, n))
		l.turn.Lock() // waits until the goroutine that wrote the reply has finished
		defer l.turn.Unlock()
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		return l.brief
	})
}

// inlined waits until the reader executes a call itself.
func (h *host) inlined(l *lane) {
	h.t.Helper()
	eventually(h.t, "a call is under way", func() bool {
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		if l.call.running && !l.call.inline {
			h.t.Error("it is not executed by the reader")
		}
		return l.call.running
	})
}

func TestPingsAndACloseAreAnsweredWhileTheReaderExecutesAStep(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	g := newGate()
	h.hooks.one = g.wait
	p := h.client()
	hd := p.open(1)
	p.warm(h, hd, 1)
	p.ask("step", "h", hd, "a", act(1, 1))
	h.inlined(h.laneOf(hd))
	if v := p.must("ping"); v.Get("qlen") != int64(1) { // of the protocol
		t.Errorf("%v, want a queue of 1", v)
	}
	pong := make(chan string, 1)
	p.ws.SetPongHandler(func(data string) error {
		pong <- data
		return nil
	})
	end := time.Now().Add(patience)
	if err := p.ws.WriteControl(websocket.PingMessage, []byte("there?"), end); err != nil { // of RFC 6455
		t.Fatal(err)
	}
	p.must("ping") // pongs are seen while something is read
	if got := <-pong; got != "there?" {
		t.Errorf("pong %q", got)
	}
	if err := p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(wire.CloseBye, ""), end); err != nil {
		t.Fatal(err)
	}
	p.closedWith(wire.CloseBye)
	eventually(t, "the session has ended", func() bool { return h.sessionsLeft() == 0 })
	eventually(t, "its environment is closed, for its call was told to end",
		func() bool { return h.hooks.closedEnvs() == 1 })
}

func TestHandlesStepBesideEachOtherWhenTheReaderExecutesOne(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	g := newGate()
	var inside atomic.Int32
	h.hooks.one = func(ctx context.Context) error {
		inside.Add(1)
		return g.wait(ctx)
	}
	p := h.client()
	a, b := p.open(1), p.open(1)
	p.warm(h, b, 1)
	p.warm(h, a, 1)
	first := p.ask("step", "h", a, "a", act(1, 1))
	h.inlined(h.laneOf(a))
	p.must("step", "h", b, "a", act(0, 1))
	p.ask("step", "h", b, "a", act(1, 1))
	eventually(t, "both are under way", func() bool { return inside.Load() == 2 })
	// A second request to the first handle waits for its turn.
	next := []uint32{p.ask("step", "h", a, "a", act(0, 1)), p.ask("jump", "h", a), p.ask("close", "h", a)}
	p.must("ping")
	g.open()
	want := append([]uint32{first}, next...)
	for range len(want) + 1 {
		v := p.recv()
		if id := uint32(v.Get("re").(int64)); id == first+1+1 {
			continue // b's
		} else if id != want[0] {
			t.Fatalf("reply to %d, want %d", id, want[0])
		}
		want = want[1:]
	}
}

// Steps that last about as long as patient make the readers change at every possible moment.
func TestNoMessageIsLostWhenReadersChange(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxInflight = 1024
	h := serve(t, cfg)
	var calls atomic.Int64
	h.hooks.one = func(context.Context) error {
		time.Sleep(patient * time.Duration(calls.Add(1)%8) / 4)
		return nil
	}
	p := h.client()
	hs := []int64{p.open(1), p.open(1)}
	lanes := []*lane{h.laneOf(hs[0]), h.laneOf(hs[1])}
	c := lanes[0].s.conn
	const rounds, most = 400, 12
	want := map[any]int64{} // the handle of a request
	var sent []uint32
	steps := map[int64]int{}
	for i := range rounds {
		// Alone, so that the reader may execute it; every sixth round several at once.
		burst := 1
		if i%6 == 5 {
			burst = most
		}
		for j := range burst {
			hd := hs[(i+j)%2]
			id := p.ask("step", "h", hd, "a", act(int64(i/2)%2, 1))
			want[int64(id)] = hd
			sent = append(sent, id)
			if j%4 == 3 {
				sent = append(sent, p.ask("ping"))
				want[int64(sent[len(sent)-1])] = 0
			}
		}
		last := map[int64]int64{}
		for len(want) > 0 {
			v := p.recv()
			id := v.Get("re").(int64)
			hd, asked := want[id]
			if !asked {
				t.Fatalf("round %d: %v answers nothing that waits", i, v)
			}
			delete(want, id)
			if id < last[hd] {
				t.Fatalf("round %d: the reply to %d comes after that to %d, of the same handle", i, id, last[hd])
			}
			last[hd] = id
			if hd != 0 {
				steps[hd]++
				if got := shown(t, v); int(got) != steps[hd]%6 { // five steps and the reset after them
					t.Fatalf("round %d: step %v of handle %d, want %d", i, got, hd, steps[hd]%6)
				}
			}
		}
	}
	c.reading.mu.Lock()
	readers := c.reading.n
	c.reading.mu.Unlock()
	if readers == 0 {
		t.Error("the reader has never been relieved: this tests nothing")
	}
	t.Logf("%d requests, %d readers", len(sent), readers)
}

func TestACallOfTheReaderThatDoesNotComeBackIsLeftBehind(t *testing.T) {
	t.Parallel()
	h := serve(t, impatient())
	g := newGate()
	h.hooks.one = g.deaf
	p := h.client()
	hd := p.open(1)
	p.warm(h, hd, 1)
	p.ask("step", "h", hd, "a", act(1, 1))
	h.inlined(h.laneOf(hd))
	if v := p.recv(); wire.ErrorOf(v).Code != wire.Timeout {
		t.Fatalf("%v, want timeout", v)
	}
	if e := p.fails(wire.EnvFault, "step", "h", hd, "a", act(0, 1)); !e.Retry {
		t.Error("env_fault, and yet not to be tried again")
	}
	g.open()
	eventually(t, "a reset succeeds", func() bool { return p.do("reset", "h", hd).Get("op") == "reset" })
	if got := shown(t, p.must("step", "h", hd, "a", act(0, 1))); got != 1 {
		t.Errorf("step %v, want 1", got)
	}
	p.must("close", "h", hd)
	eventually(t, "it is closed once", func() bool { return h.hooks.closedEnvs() == 1 })
}

func TestAConnectionEndsAlthoughItsFormerReaderDoesNotComeBack(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	g := newGate()
	h.hooks.one = g.deaf
	p := h.connect()
	k := ticketOf(p.hello())
	hd := p.open(1)
	p.warm(h, hd, 1)
	acked := p.next - 1
	id := p.ask("step", "h", hd, "a", act(1, 1))
	h.inlined(h.laneOf(hd))
	p.drop()
	eventually(t, "no connection is left", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.conns) == 0
	})
	q := h.back(k, p.next, hd, acked)
	q.must("ping")
	g.open() // the effect of the step is not lost
	if v := q.recv(); v.Get("re") != int64(id) || v.Get("op") != "step" {
		t.Errorf("%v, want the reply to %d", v, id)
	}
}
