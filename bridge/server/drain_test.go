package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
)

// drained reads the event that the server is ending.
func (p *peer) drained() {
	p.t.Helper()
	if v := p.recv(); v.Get("re") != int64(0) || v.Get("op") != "drain" {
		p.t.Fatalf("%v, want a drain event", v)
	}
}

func TestADrainingServerLetsSessionsFinish(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.DrainTimeout = patience
	h := serve(t, cfg)
	waiting := h.connect() // no hello yet
	parked := h.connect()
	k := ticketOf(parked.hello())
	parked.open(1)
	parked.drop()
	eventually(t, "parked", func() bool { return h.parkedOnes() == "1" })
	p := h.client()
	hd := p.open(1)
	if status, _ := h.get("/readyz", ""); status != http.StatusOK {
		t.Errorf("readyz is %d before", status)
	}
	h.stop()
	p.drained()
	if status, _ := h.get("/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("readyz is %d while draining", status)
	}
	if status, _ := h.get("/healthz", ""); status != http.StatusOK {
		t.Errorf("healthz is %d while draining", status)
	}
	p.must("step", "h", hd, "a", act(0, 1))
	p.must("reset", "h", hd)
	p.fails(wire.Draining, "open", "env", "Walk-v1")
	h.connect().closedWith(wire.CloseNotNow)
	waiting.send(m("op", "hello", "id", 1, "proto", []any{1, 1}))
	waiting.closedWith(wire.CloseNotNow)
	h.connect().closedWith(wire.CloseNotNow) // even a client that has a ticket
	if k.token == "" || h.sessionsLeft() != 1 {
		t.Errorf("%d sessions, want only the one that is connected", h.sessionsLeft())
	}
	select {
	case <-h.done:
		t.Fatal("it ended before its last session")
	default:
	}
	p.must("close", "h", hd)
	p.must("bye")
	p.closedWith(wire.CloseBye)
	p.ws.Close()
	h.wait()
}

func TestASessionThatIsLostWhileDrainingEnds(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.DrainTimeout = patience
	h := serve(t, cfg)
	p := h.client()
	p.open(1)
	h.stop()
	p.drained()
	p.drop()
	h.wait()
	if got := h.hooks.closedEnvs(); got != 1 {
		t.Errorf("%d environments closed, want 1", got)
	}
}

func TestAfterTheDrainTimeoutTheRestIsClosed(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.DrainTimeout = 50 * time.Millisecond
	h := serve(t, cfg)
	g := newGate()
	h.hooks.one = g.wait
	p := h.client()
	hd := p.open(1)
	p.ask("step", "h", hd, "a", act(1, 1)) // ends with its context
	silent := h.connect()
	eventually(t, "both are known", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.conns) == 2
	})
	h.stop()
	p.drained()
	p.closedWith(wire.CloseDraining)
	silent.closedWith(wire.CloseDraining)
	h.wait()
	if got := h.hooks.closedEnvs(); got != 1 {
		t.Errorf("%d environments closed, want 1", got)
	}
}

func TestAnEnvironmentThatDoesNotComeBackDoesNotHoldTheServerForEver(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits five seconds for an environment that hangs; it runs without -short")
	}
	h := serve(t, quick())
	g := newGate()
	defer g.open()
	inside := make(chan struct{})
	h.hooks.one = func(ctx context.Context) error {
		close(inside)
		return g.deaf(ctx)
	}
	p := h.client()
	hd := p.open(1)
	p.ask("step", "h", hd, "a", act(1, 1))
	<-inside // else the server may end before the call has begun
	h.stop()
	h.wait()
	if h.err == nil || !strings.Contains(h.err.Error(), "1 environments were left behind") {
		t.Errorf("Serve: %v, want that something was left behind", h.err)
	}
	h.err = nil
}

func TestAnAdminMayAskToDrain(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Tokens = []Token{{RoleEnv, "player"}, {RoleAdmin, "boss"}}
	h := serve(t, cfg)
	for token, want := range map[string]int{"": http.StatusUnauthorized, "player": http.StatusForbidden} {
		if status, _ := h.page(http.MethodPost, "/v1/drain", token); status != want {
			t.Errorf("token %q: %d, want %d", token, status, want)
		}
	}
	if status, _ := h.get("/readyz", ""); status != http.StatusOK {
		t.Fatalf("readyz is %d", status)
	}
	if status, _ := h.page(http.MethodPost, "/v1/drain", "boss"); status != http.StatusAccepted {
		t.Fatalf("drain is %d", status)
	}
	h.wait()
	if _, _, err := websocket.DefaultDialer.Dial("ws://"+h.addr+"/v1/ws", nil); err == nil {
		t.Error("it still listens")
	}
}

func TestWithoutTokensNobodyMayAskToDrain(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	if status, _ := h.page(http.MethodPost, "/v1/drain", ""); status != http.StatusForbidden {
		t.Errorf("drain is %d, want 403", status)
	}
}

func TestServeRunsOnce(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	h.stop()
	h.wait()
	if err := h.Serve(t.Context(), nopListener{}); err == nil {
		t.Error("it served twice")
	}
}
