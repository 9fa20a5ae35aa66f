package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
	"clustergym/internal/rng"
)

// TestAsClient is not a test but the client process that TestTheSlotOfAKilledClientIsFreed starts and kills.
func TestAsClient(t *testing.T) {
	addr := os.Getenv("BRIDGE_TEST_ADDR")
	if addr == "" {
		t.Skip("runs as a child of another test")
	}
	h := &host{t: t, addr: addr}
	p := h.client("feat", []any{})
	p.open(2)
	fmt.Println("open")
	time.Sleep(patience)
}

func TestTheSlotOfAKilledClientIsFreed(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxSessions = 1
	h := serve(t, cfg)
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	for range 2 {
		cmd := exec.Command(exe, "-test.run=^TestAsClient$", "-test.v")
		cmd.Env = append(os.Environ(), "BRIDGE_TEST_ADDR="+h.addr)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Skipf("no process can be started: %v", err)
		}
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "open"; {
		}
		full := h.connect()
		full.send(m("op", "hello", "id", 1, "proto", []any{1, 1}))
		full.closedWith(wire.CloseCapacity)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		eventually(t, "the slot is free", func() bool { return h.sessionsLeft() == 0 })
	}
	eventually(t, "all environments are closed", func() bool { return h.hooks.closedEnvs() == 4 })
}

func TestAClientThatSaysNothingIsClosed(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.HelloTimeout = 20 * time.Millisecond
	h := serve(t, cfg)
	h.connect().closedWith(wire.CloseHelloTimeout)
	// Neither half a message nor a ping replaces hello.
	p := h.connect()
	_, _ = p.ws.NetConn().Write([]byte{0x82, 0xfe, 0x10}) // it may have been closed already
	p.closedWith(wire.CloseHelloTimeout)
	p = h.connect()
	_ = p.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(patience))
	p.closedWith(wire.CloseHelloTimeout)
}

func TestAConnectionOnWhichNothingComesIsReaped(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.IdleTimeout, cfg.PingInterval = 3*time.Second, 10*time.Millisecond
	h := serve(t, cfg)
	p := h.client()
	p.open(2)
	// The client does not read and so sends no pongs, as on a half-open connection.
	eventually(t, "the session is gone, for it is not kept", func() bool { return h.sessionsLeft() == 0 })
	p.closedWith(wire.CloseExpired)
	if got := h.metric("clustergym_sessions_reaped_total", ""); got != "1" {
		t.Errorf("%s reaped", got)
	}
	eventually(t, "its environments are closed", func() bool { return h.hooks.closedEnvs() == 2 })
}

func TestTooLargeMessagesAreRefusedWithoutBeingHeld(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxFrameIn = 1 << 20
	h := serve(t, cfg)
	p := h.connect()
	big := m("op", "hello", "id", 1, "proto", []any{1, 1}, "ballast", make([]byte, 64<<10))
	p.send(big)
	p.closedWith(wire.CloseTooLarge)
	p = h.client()
	p.must("ping", "t", make([]byte, 1<<20-1000))
	p.ask("ping", "t", make([]byte, 1<<20))
	p.closedWith(wire.CloseTooLarge)
	eventually(t, "no session, for it is not kept", func() bool { return h.sessionsLeft() == 0 })
	// A header that announces terabytes costs nothing.
	p = h.client()
	head := binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, 1<<42)
	go func() {
		_, _ = p.ws.NetConn().Write(append(head, make([]byte, 3<<20)...)) // the server ends it at some point
	}()
	p.closedWith(wire.CloseTooLarge)
}

func TestMessagesOfTheWrongKindAreRefused(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.connect()
	_ = p.ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"hello"}`))
	p.closedWith(wire.CloseWrongType)
	p = h.client()
	_ = p.ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"ping","id":2}`))
	p.closedWith(wire.CloseWrongType)
	p, _, err := h.dial(wire.SubJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.hello()
	_ = p.ws.WriteMessage(websocket.BinaryMessage, []byte{0x80})
	p.closedWith(wire.CloseWrongType)
}

func TestBytesThatMeanNothingEndOnlyTheirOwnConnection(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	good := h.client()
	hd := good.open(1)
	src := rng.Stream(1, "bridge/server/garbage")
	junk := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(src.Uint32())
		}
		return b
	}
	for range 20 { // to the port
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(junk(200))
		_ = c.Close()
	}
	for range 20 { // after the upgrade, and after hello
		p := h.connect()
		_, _ = p.ws.NetConn().Write(junk(300))
		p.ws.Close()
		p = h.client("feat", []any{})
		_, _ = p.ws.NetConn().Write(junk(300))
		p.ws.Close()
	}
	for range 200 { // within messages
		p := h.client("feat", []any{})
		for range 3 {
			_ = p.raw(append([]byte{0x83, 0xa2, 'o', 'p'}, junk(src.IntN(40))...))
		}
		p.ws.Close()
	}
	good.must("step", "h", hd, "a", act(0, 1))
	eventually(t, "only one session is left", func() bool { return h.sessionsLeft() == 1 })
}

// mutate changes some bytes of b.
func mutate(src *rand.Rand, b []byte) []byte {
	for range 1 + src.IntN(4) {
		b[src.IntN(len(b))] = byte(src.Uint32())
	}
	return b
}

func TestDamagedRequestsAreAnsweredAndTheServerLives(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	src := rng.Stream(2, "bridge/server/garbage")
	p := h.client()
	hd := p.open(2)
	kinds := []wire.Map{
		m("op", "step", "h", hd, "a", act(0, 2)), m("op", "reset", "h", hd, "seed", []any{1, nil}, "options", m("window", 3)),
		m("op", "open", "env", "Walk-v1", "n", 2, "kwargs", m("x", 1), "info",
			[]any{"a"}), m("op", "masks", "h", hd, "ids", []any{0}),
		m("op", "restore", "h", hd, "blob", make([]byte, 60)), m("op", "call", "h", hd, "method", "get_task", "args", m()),
		m("op", "ping", "t", m("a", []any{1, 2.5, "x"})), m("op", "snapshot", "h", hd), m("op", "recv", "h", hd),
	}
	bad := 0
	for range 1500 {
		w := wire.NewWriter(wire.Ext)
		w.Value(append(m("id", p.next), kinds[src.IntN(len(kinds))]...))
		if err := p.raw(mutate(src, w.Bytes())); err != nil {
			t.Fatal(err)
		}
		p.next += 2 // an id may have been damaged into the next one
		v, err := p.read()
		if err != nil { // three unreadable messages in a row, or a close frame
			p = h.client()
			if again := p.open(2); again != hd {
				t.Fatalf("handle %d, want %d as before", again, hd)
			}
			continue
		}
		if v.Get("op") == "error" {
			bad++
		}
		if v.Get("re") == int64(0) || wire.ErrorOf(v).Code == wire.BadRequest {
			p.do("ping") // prevents three unreadable messages in a row, and finds ids that were damaged upwards
		}
	}
	if bad == 0 {
		t.Error("no damage was noticed")
	}
}

func TestASlowWriterIsServedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	slow, other := h.client(), h.client()
	hs, ho := slow.open(1), other.open(1)
	w := wire.NewWriter(wire.Ext)
	w.Value(m("op", "step", "id", slow.next, "h", hs, "a", act(0, 1)))
	// A masked frame by hand, its key zero.
	raw := append([]byte{0x82, 0x80 | byte(len(w.Bytes())), 0, 0, 0, 0}, w.Bytes()...)
	for _, b := range raw {
		if _, err := slow.ws.NetConn().Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
		other.must("step", "h", ho, "a", act(0, 1))
	}
	if v := slow.recv(); v.Get("re") != int64(slow.next) || shown(t, v) != 1 {
		t.Errorf("%v", v)
	}
}

func TestAClientThatDoesNotReadIsHeldBackAndThenDropped(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.WriteTimeout = 300 * time.Millisecond
	h := serve(t, cfg)
	p, other := h.client("feat", []any{}), h.client()
	ho := other.open(1)
	hd := p.must("open", "env", "Walk-v1", "n", 4096).Get("h").(int64)
	p.must("reset", "h", hd)
	// Each reply is some 100 kB. The client goes on asking and never reads.
	sent := 0
	step := wire.NewWriter(wire.Ext)
	var err error
	for err == nil && sent < 1e6 {
		step.Reset()
		step.Value(m("op", "step", "id", p.next, "h", hd, "a",
			wire.Array{DType: wire.I32, Shape: []int{4096}, Data: make([]byte, 4*4096)}))
		p.next++
		err = p.raw(step.Bytes())
		sent++
		if sent%50 == 0 {
			other.must("step", "h", ho, "a", act(0, 1))
		}
	}
	if err == nil {
		t.Fatal("the server took a million requests of a client that does not read")
	}
	eventually(t, "its session is gone", func() bool { return h.sessionsLeft() == 1 })
	other.must("ping")
	t.Logf("dropped after %d requests: %v", sent, err)
}

func TestAWriteThatIsBlockedEndsWithTheServer(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.DrainTimeout, cfg.WriteTimeout = 50*time.Millisecond, time.Hour
	h := serve(t, cfg)
	p := h.client()
	hd := p.must("open", "env", "Walk-v1", "n", 4096).Get("h").(int64)
	p.must("reset", "h", hd)
	go func() {
		w := wire.NewWriter(wire.Ext)
		for id := uint32(100); ; id++ {
			w.Reset()
			w.Value(m("op", "step", "id", id, "h", hd, "a",
				wire.Array{DType: wire.I32, Shape: []int{4096}, Data: make([]byte, 4*4096)}))
			if p.raw(w.Bytes()) != nil {
				return
			}
		}
	}()
	eventually(t, "the server is blocked", func() bool {
		before := h.met.bytesOut.Load()
		time.Sleep(100 * time.Millisecond)
		return before == h.met.bytesOut.Load()
	})
	h.stop()
	h.wait() // for less than the time of a write
}

func TestFramesInPiecesAreOneMessage(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.client()
	hd := p.open(1)
	w, err := p.ws.NextWriter(websocket.BinaryMessage)
	if err != nil {
		t.Fatal(err)
	}
	v := wire.NewWriter(wire.Ext)
	v.Value(m("op", "step", "id", p.next, "h", hd, "a", act(0, 1), "ballast", make([]byte, 20000)))
	for i := 0; i < len(v.Bytes()); i += 5000 {
		if _, err := w.Write(v.Bytes()[i:min(i+5000, len(v.Bytes()))]); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	if got := p.recv(); got.Get("op") != "step" {
		t.Errorf("%v", got)
	}
}

func TestRepliesAboveTheLimitAreErrors(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxFrameOut = 5000
	h := serve(t, cfg)
	p := h.client()
	p.fails(wire.TooLarge, "open", "env", "Walk-v1", "n", 1000)
	hd := p.open(1)
	p.must("step", "h", hd, "a", act(0, 1))
}

func TestManySessionsAtOnce(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	const n = 256
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() { errs <- h.play(20 + i%5) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all have left", func() bool { return h.sessionsLeft() == 0 })
	eventually(t, "all environments are closed", func() bool { return h.hooks.closedEnvs() == n })
}

// play plays a whole session of one client. It returns errors instead of failing the test, for tests with many clients.
func (h *host) play(steps int) error {
	d := websocket.Dialer{Subprotocols: []string{wire.SubMsgpack}, HandshakeTimeout: patience}
	ws, _, err := d.Dial("ws://"+h.addr+"/v1/ws", nil)
	if err != nil {
		return err
	}
	defer ws.Close()
	w := wire.NewWriter(wire.Ext)
	ask := func(v wire.Map) error {
		w.Reset()
		w.Value(v)
		if err := ws.WriteMessage(websocket.BinaryMessage, w.Bytes()); err != nil {
			return err
		}
		_ = ws.SetReadDeadline(time.Now().Add(patience))
		_, b, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		got, e := wire.Decode(b, wire.Ext, wire.DefaultLimits())
		if e != nil {
			return e
		}
		if got.Get("op") == "error" {
			return wire.ErrorOf(got)
		}
		return nil
	}
	err = errors.Join(
		ask(m("op", "hello", "id", 1, "proto", []any{1, 1}, "feat", all)),
		ask(m("op", "open", "id", 2, "env", "Walk-v1")), ask(m("op", "reset", "id", 3, "h", 1)))
	for i := 0; i < steps && err == nil; i++ {
		err = ask(m("op", "step", "id", 4+i, "h", 1, "a", act(0, 1)))
	}
	if err != nil {
		return err
	}
	return ask(m("op", "bye", "id", 1000))
}

func TestAddressesThatAreNoListenersEndServe(t *testing.T) {
	t.Parallel()
	cfg := quick()
	s, err := New(cfg, walks{&hooks{}}, discard())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := s.Serve(ctx, l); err == nil || !strings.Contains(err.Error(), "accepting clients") {
		t.Errorf("Serve: %v", err)
	}
}

func TestPlainConnectionsThatSendNoHeadersAreClosed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for five seconds")
	}
	h := serve(t, quick())
	begun := time.Now() // the server may accept it before Dial returns
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("GET /v1/ws HTTP/1.1\r\nHost: x\r\n"))
	_ = c.SetReadDeadline(begun.Add(patience))
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("it was not closed: %v", err)
	}
	if took := time.Since(begun); took < headerTimeout/2 {
		t.Errorf("closed after %s", strconv.Quote(took.String()))
	}
}
