package server

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
)

// guarded returns a configuration with tokens and few sessions, in which silent clients are not closed for being late.
func guarded() Config {
	cfg := quick()
	cfg.MaxSessions, cfg.HelloTimeout = 8, time.Hour
	cfg.Tokens = []Token{{RoleEnv, "player-of-the-test"}, {RoleRead, "reader-of-the-test"}}
	return cfg
}

// places returns how many connections have no session.
func (h *host) places() int {
	return h.door.Waiting()
}

// silence opens n TCP connections that send nothing. They end with the test.
func (h *host) silence(n int) {
	h.t.Helper()
	for range n {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() { _ = c.Close() })
	}
}

func bearing(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// A crowd of connections without a token, with and without an upgrade, does not keep out a client that has one.
func TestStrangersKeepNoTokenHolderOut(t *testing.T) {
	t.Parallel()
	h := serve(t, guarded())
	early, _, err := h.dial(wire.SubMsgpack, bearing("player-of-the-test"))
	if err != nil {
		t.Fatal(err)
	}
	for round := range 5 {
		for range 300 {
			h.connect()
		}
		h.silence(300)
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200} {
			if status, _ := h.get(path, ""); status != want {
				t.Errorf("round %d: %s: %d", round, path, status)
			}
		}
		if status, _ := h.get("/metrics", "reader-of-the-test"); status != 200 {
			t.Errorf("round %d: metrics: %d", round, status)
		}
		// The token on the upgrade.
		p, resp, err := h.dial(wire.SubMsgpack, bearing("player-of-the-test"))
		if err != nil {
			t.Fatalf("round %d: %v, %v", round, err, resp)
		}
		p.hello()
		p.open(2)
		// The token in hello.
		q := h.client("auth", "player-of-the-test")
		q.must("ping")
		p.must("bye")
		p.closedWith(wire.CloseBye)
		q.must("bye")
		q.closedWith(wire.CloseBye)
	}
	// Whoever showed a token on the upgrade may take its time for hello.
	early.hello()
	eventually(t, "few connections are without a session", func() bool { return h.places() <= maxStrangers })
	if got := h.metric("clustergym_connections_dropped_total", "reader-of-the-test"); got == "0" ||
		strings.HasPrefix(got, "no ") {
		t.Errorf("%s connections dropped", got)
	}
}

// Clients get in while others connect as fast as they can, send nothing, and come again.
func TestStrangersThatComeAgainAndAgainKeepNobodyOut(t *testing.T) {
	t.Parallel()
	h := serve(t, guarded())
	stop := make(chan struct{})
	// So many may come during one attempt: not enough to push out even a client that the machine delays.
	allowed := make(chan struct{}, 200)
	refill := func() {
		for {
			select {
			case allowed <- struct{}{}:
			default:
				return
			}
		}
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			var mine []net.Conn
			defer func() {
				for _, c := range mine {
					_ = c.Close()
				}
			}()
			for {
				select {
				case <-stop:
					return
				case <-allowed:
				}
				if i%2 == 0 {
					d := websocket.Dialer{Subprotocols: []string{wire.SubMsgpack}, HandshakeTimeout: patience}
					ws, _, err := d.Dial("ws://"+h.addr+"/v1/ws", nil)
					if err != nil {
						continue
					}
					mine = append(mine, ws.NetConn())
				} else if c, err := net.Dial("tcp", h.addr); err == nil {
					mine = append(mine, c)
				}
				for len(mine) > 200 {
					_ = mine[0].Close()
					mine = mine[1:]
				}
			}
		})
	}
	for i := range 50 {
		refill()
		if i == 0 {
			eventually(t, "the hall is full", func() bool { refill(); return h.places() >= maxStrangers })
		}
		p, resp, err := h.dial(wire.SubMsgpack, bearing("player-of-the-test"))
		if err != nil {
			t.Errorf("attempt %d: %v, %v", i, err, resp)
			break
		}
		p.hello()
		p.must("bye")
		p.closedWith(wire.CloseBye)
	}
	close(stop)
	wg.Wait()
}

// The one that is closed knows why, and those who stay are the newest.
func TestTheOldestStrangerMakesRoom(t *testing.T) {
	t.Parallel()
	h := serve(t, guarded())
	first := h.connect()
	for range maxStrangers {
		h.connect()
	}
	if got := first.closedWith(wire.CloseCapacity); got != crowded {
		t.Errorf("closed with %q", got)
	}
	last := h.connect()
	last.hello("auth", "player-of-the-test")
}

// Without tokens everybody who has not said hello is a stranger, and a session is not.
func TestSessionsAreNoStrangers(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxSessions, cfg.HelloTimeout = 1, time.Hour
	h := serve(t, cfg)
	p := h.client()
	for range maxStrangers + 50 {
		h.connect()
	}
	p.must("ping")
	h.silence(maxStrangers + 50)
	p.must("ping")
	if status, _ := h.get("/readyz", ""); status != 200 {
		t.Errorf("readyz: %d", status)
	}
}

// A whole fleet may connect at once after the server's restart.
func TestTheHallTakesAsManyAsThereMayBeSessions(t *testing.T) {
	t.Parallel()
	for sessions, want := range map[int]int{1: 256, 256: 256, 700: 700, 100_000: 1024} {
		if got := placesFor(sessions, 1<<20); got != want {
			t.Errorf("%d sessions: %d places, want %d", sessions, got, want)
		}
	}
	for _, files := range []int{0, 64, 256, 512, 700, 1024, 4096} {
		got := placesFor(256, files)
		if got < fewestPlaces || got > 256 || 2*got+256+files/8 > files && got > fewestPlaces {
			t.Errorf("%d descriptors: %d places", files, got)
		}
	}
}

// One address cannot push out another, as long as it has more places.
func TestAnAddressMakesRoomForItself(t *testing.T) {
	t.Parallel()
	cfg := guarded()
	h := serve(t, cfg)
	other := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	d := websocket.Dialer{Subprotocols: []string{wire.SubMsgpack}, HandshakeTimeout: patience, NetDial: other.Dial}
	ws, _, err := d.Dial("ws://"+h.addr+"/v1/ws", nil)
	if err != nil {
		t.Skipf("this machine has no second address: %v", err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	for range 2 * maxStrangers {
		h.connect()
	}
	p := &peer{t: t, ws: ws, enc: wire.Ext, next: 2}
	p.hello("auth", "player-of-the-test")
}

func TestAFloodOfWrongTokensLogsFewLines(t *testing.T) {
	t.Parallel()
	h := serve(t, guarded())
	begun := time.Now()
	const n = 400
	for i := range n {
		if i%2 == 0 {
			if _, resp, err := h.dial(wire.SubMsgpack, bearing(fmt.Sprintf("wrong-%d", i))); err == nil ||
				resp.StatusCode != http.StatusUnauthorized {
				t.Fatal(err)
			}
		} else if status, _ := h.get("/metrics", "wrong"); status != http.StatusUnauthorized {
			t.Fatal(status)
		}
	}
	most := 5 * (2 + int(time.Since(begun)/time.Second))
	h.stop()
	h.wait()
	text := h.log.String()
	lines := strings.Count(text, "level=WARN")
	if lines == 0 || lines > most+1 {
		t.Errorf("%d warnings of %d, want 1 to %d", lines, n, most+1)
	}
	if strings.Contains(text, "wrong-") {
		t.Error("the log has a token")
	}
	if lines < n && !strings.Contains(text, "suppressed=") {
		t.Error("the log does not say how many there were")
	}
}

// Nothing that a client says can fill the log or forge a line of it.
func TestWhatClientsSayIsBoundedInTheLog(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	evil := "x\ntime=2020 level=ERROR msg=\"forged\"\x1b[2J\u202e" + strings.Repeat("y", 10_000)
	p := h.client("client", m("name", evil, "version", []any{evil, evil}, "lang", evil))
	p.fails(wire.UnknownEnv, "open", "env", evil)
	p.must("bye")
	p.closedWith(wire.CloseBye)
	_, resp, err := h.dial(wire.SubMsgpack, http.Header{"Origin": {"https://" + strings.Repeat("z", 10_000)}})
	if err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a foreign origin: %v", err)
	}
	q := h.client("client", 7)
	_ = q.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4000, strings.Repeat("\n", 100)),
		time.Now().Add(patience))
	eventually(t, "it has ended", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.conns) == 0
	})
	h.stop()
	h.wait()
	named := false
	for line := range strings.Lines(h.log.String()) {
		if !strings.HasPrefix(line, "time=") || len(line) > 1500 || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("line %.300q", line)
		}
		named = named || strings.Contains(line, "client_name=")
	}
	if !named {
		t.Error("the client's name is not in the log")
	}
}
