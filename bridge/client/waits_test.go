package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/client"
	"clustergym/bridge/wire"
)

// long is the time within which a wait of a fraction of a second must have ended, on however slow a machine.
const long = 20 * time.Second

// socket starts a server whose connections are handled by serve, after the upgrade. left ends when the test does.
func socket(t *testing.T, serve func(left context.Context, n int32, ws *websocket.Conn)) (addr string,
	count *atomic.Int32) {
	up := websocket.Upgrader{Subprotocols: []string{wire.SubMsgpack}}
	left, end := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	count = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		wg.Add(1)
		defer wg.Done()
		ws, err := up.Upgrade(rw, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		stop := context.AfterFunc(left, func() { ws.Close() })
		defer stop()
		serve(left, count.Add(1), ws)
	}))
	t.Cleanup(func() {
		end()
		s.Close()
		wg.Wait()
	})
	return strings.TrimPrefix(s.URL, "http://"), count
}

// read returns the next request; ok is false if the client has left.
func read(ws *websocket.Conn) (op string, id uint32, ok bool) {
	_, frame, err := ws.ReadMessage()
	if err != nil {
		return "", 0, false
	}
	m, e := wire.Decode(frame, wire.Ext, wire.DefaultLimits())
	if e != nil {
		return "", 0, false
	}
	op, _ = m.Str("op", "")
	n, _ := m.Int("id", 0, 0, 1<<32-1)
	return op, uint32(n), true
}

// greet answers hello; features are granted.
func greet(ws *websocket.Conn, features ...string) bool {
	if _, _, ok := read(ws); !ok {
		return false
	}
	w := wire.NewWriter(wire.Ext)
	w.Value(wire.Map{
		{Key: "re", Value: 1}, {Key: "op", Value: wire.OpWelcome}, {Key: "proto", Value: 1}, {Key: "enc", Value: "ext"},
		{Key: "session", Value: "s"}, {Key: "resume", Value: "secret"}, {Key: "feat", Value: features},
		{Key: "limits", Value: wire.Map{{Key: "resume_s", Value: 60.0}}},
	})
	return ws.WriteMessage(websocket.BinaryMessage, w.Bytes()) == nil
}

// answer answers requests to open, and all others with empty replies, until the client leaves.
func answer(ws *websocket.Conn) {
	for {
		op, id, ok := read(ws)
		if !ok {
			return
		}
		if reply(ws, op, id) != nil {
			return
		}
	}
}

func reply(ws *websocket.Conn, op string, id uint32) error {
	w := wire.NewWriter(wire.Ext)
	if op == wire.OpOpen {
		opened(id, w, keep)
	} else {
		w.Reply(id, op, 0)
	}
	return ws.WriteMessage(websocket.BinaryMessage, w.Bytes())
}

// A server that is busy answers neither pings nor, perhaps, new connections. Silence alone ends no session.
func TestALatePongEndsNoSession(t *testing.T) {
	for _, features := range [][]string{{}, {"resume"}} {
		t.Run(fmt.Sprint(features), func(t *testing.T) {
			addr, count := socket(t, func(left context.Context, n int32, ws *websocket.Conn) {
				if n > 1 { // busy
					<-left.Done()
					return
				}
				if !greet(ws, features...) {
					return
				}
				op, id, ok := read(ws)
				if !ok {
					return
				}
				time.Sleep(time.Second)
				if reply(ws, op, id) == nil {
					answer(ws)
				}
			})
			c := dial(t, addr, func(cfg *client.Config) {
				cfg.KeepAlive, cfg.DialTimeout, cfg.Resume = 20*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond
				cfg.Timeout = time.Minute
			})
			for range 2 {
				if _, err := c.Open(ctx, "X-v1", nil); err != nil {
					t.Fatal(err)
				}
			}
			if tried := count.Load() > 1; tried != (len(features) > 0) {
				t.Errorf("%d connections, features %v", count.Load(), features)
			}
		})
	}
}

// The server closes the old connection when it accepts the other one, even if the client has given that one up.
func TestATakeoverThatCameTooLateIsFollowed(t *testing.T) {
	first, taken := make(chan *websocket.Conn, 1), make(chan struct{})
	addr, _ := socket(t, func(left context.Context, n int32, ws *websocket.Conn) {
		switch n {
		case 1:
			if !greet(ws, "resume") {
				return
			}
			if _, _, ok := read(ws); ok {
				first <- ws
				<-left.Done()
			}
		case 2:
			if _, _, ok := read(ws); !ok {
				return
			}
			time.Sleep(500 * time.Millisecond) // longer than the client waits
			old := <-first
			msg := websocket.FormatCloseMessage(wire.CloseTakenOver, "another connection resumed this session")
			if err := old.WriteControl(websocket.CloseMessage, msg, time.Now().Add(time.Second)); err != nil {
				t.Error(err)
			}
			old.UnderlyingConn().Close()
			close(taken)
		default:
			select {
			case <-taken:
			case <-left.Done():
			}
			if greet(ws, "resume") {
				answer(ws)
			}
		}
	})
	c := dial(t, addr, func(cfg *client.Config) {
		cfg.KeepAlive, cfg.DialTimeout = 50*time.Millisecond, 100*time.Millisecond
	})
	if _, err := c.Open(ctx, "X-v1", nil); err != nil {
		t.Fatal(err)
	}
}

// A connection breaks after its hello was sent, another one resumes the session, and then the server hears the first
// hello.
func TestAStrayHelloTakesASessionOverOnlyForAMoment(t *testing.T) {
	for _, stray := range []bool{true, false} {
		t.Run(fmt.Sprint(stray), func(t *testing.T) {
			var resumed atomic.Int32
			addr, _ := socket(t, func(_ context.Context, n int32, ws *websocket.Conn) {
				switch {
				case n == 1:
					if greet(ws, "resume") {
						_, _, _ = read(ws) // and it breaks
					}
				case n == 2 && stray:
					_, _, _ = read(ws) // the hello is on its way
				case resumed.Add(1) == 1:
					if greet(ws, "resume") {
						_, _, _ = read(ws) // the next request
						msg := websocket.FormatCloseMessage(wire.CloseTakenOver, "another connection resumed this session")
						if err := ws.WriteControl(websocket.CloseMessage, msg, time.Now().Add(time.Second)); err != nil {
							t.Error(err)
						}
					}
				default:
					if greet(ws, "resume") {
						answer(ws)
					}
				}
			})
			c := dial(t, addr, nil)
			_, err := c.Open(ctx, "X-v1", nil)
			if stray && err != nil {
				t.Error(err)
			}
			if !stray && !errors.Is(err, client.ErrLost) {
				t.Errorf("another client has the session: %v, want %v", err, client.ErrLost)
			}
		})
	}
}

// Whatever else comes, a call ends with its time limit, and with its context.
func TestWaitsEndWhateverElseComes(t *testing.T) {
	for what, noise := range map[string]func(ws *websocket.Conn) error{
		"pings": func(ws *websocket.Conn) error {
			return ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		},
		"a trickle":        func(ws *websocket.Conn) error { _, err := ws.UnderlyingConn().Write([]byte{0}); return err },
		"replies to other": func(ws *websocket.Conn) error { return reply(ws, wire.OpPing, 4711) },
	} {
		t.Run(what, func(t *testing.T) {
			addr, _ := socket(t, func(left context.Context, _ int32, ws *websocket.Conn) {
				if !greet(ws) {
					return
				}
				if what == "a trickle" { // of one long message
					if _, err := ws.UnderlyingConn().Write([]byte{0x82, 126, 0xff, 0xff}); err != nil {
						return
					}
				}
				for noise(ws) == nil {
					time.Sleep(time.Millisecond)
				}
			})
			c := dial(t, addr, func(cfg *client.Config) { cfg.Timeout = 300 * time.Millisecond })
			begun := time.Now()
			if _, err := c.Open(ctx, "X-v1", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
			}
			if took := time.Since(begun); took > long {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A handshake that trickles in ends with DialTimeout, and with its context.
func TestAHandshakeThatTricklesInEnds(t *testing.T) {
	for _, url := range []string{"ws://", "wss://"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					start := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: "
					if url == "wss://" {
						start = "\x16\x03\x03\x40\x00"
					} else if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
						return
					}
					_, err := conn.Write([]byte(start))
					for err == nil {
						time.Sleep(time.Millisecond)
						_, err = conn.Write([]byte("x"))
					}
				}()
			}
		}()
		begun := time.Now()
		_, err = client.Dial(ctx, client.Config{URL: url + l.Addr().String(), DialTimeout: 200 * time.Millisecond})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v, want %v", url, err, context.DeadlineExceeded)
		}
		limited, cancel := context.WithCancel(ctx)
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err = client.Dial(limited, client.Config{URL: url + l.Addr().String()}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want %v", url, err, context.Canceled)
		}
		if took := time.Since(begun); took > long {
			t.Errorf("%s: it took %v", url, took)
		}
	}
}

// Close does not wait for a server that has stopped reading.
func TestClosingDoesNotWaitForAWriteThatIsStuck(t *testing.T) {
	addr, _ := socket(t, func(left context.Context, _ int32, ws *websocket.Conn) {
		if greet(ws) {
			<-left.Done()
		}
	})
	c, err := client.Dial(ctx, client.Config{URL: "ws://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := c.Open(limited, "X-v1", map[string]any{"x": make([]byte, 15<<20)}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	begun := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > long {
		t.Errorf("Close took %v, as long as one write may", took)
	}
}

// No environment variable sends the token to a proxy.
func TestProxiesOfTheEnvironmentAreNotAsked(t *testing.T) {
	asked := make(chan struct{}, 10)
	p := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} }))
	defer p.Close()
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, p.URL)
	}
	t.Setenv("no_proxy", "example.com")
	t.Setenv("NO_PROXY", "example.com")
	addr := serve(t, nil)
	dial(t, addr, func(cfg *client.Config) { cfg.Token = "0123456789abcdef" })
	select {
	case <-asked:
		t.Error("the proxy was asked")
	default:
	}
}
