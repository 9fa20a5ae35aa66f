package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/client"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/internal/fault"
)

// pretend starts a server that answers as the test says: answer gets each request after hello, and writes the reply.
func pretend(t *testing.T, answer func(op string, id uint32, w *wire.Writer) bool) string {
	up := websocket.Upgrader{Subprotocols: []string{wire.SubMsgpack}}
	var wg sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		wg.Add(1)
		defer wg.Done()
		ws, err := up.Upgrade(rw, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		w := wire.NewWriter(wire.Ext)
		for {
			_, frame, err := ws.ReadMessage()
			if err != nil {
				return
			}
			m, e := wire.Decode(frame, wire.Ext, wire.DefaultLimits())
			if e != nil {
				return
			}
			op, _ := m.Str("op", "")
			id, _ := m.Int("id", 0, 0, 1<<32-1)
			w.Reset()
			if !answer(op, uint32(id), w) {
				if op != wire.OpHello {
					continue
				}
				w.Reset()
				w.Reply(1, wire.OpWelcome, 4)
				w.Key("proto")
				w.Int(1)
				w.Key("enc")
				w.Str("ext")
				w.Key("session")
				w.Str("s")
				w.Key("feat")
				w.List(0)
			}
			if ws.WriteMessage(websocket.BinaryMessage, w.Bytes()) != nil {
				return
			}
		}
	}))
	t.Cleanup(func() {
		s.Close()
		wg.Wait()
	})
	return strings.TrimPrefix(s.URL, "http://")
}

// opened returns a valid reply to open, for an environment with one observation and two actions, altered by change.
func opened(id uint32, w *wire.Writer, change func(wire.Map) wire.Map) {
	m := wire.Map{
		{Key: "re", Value: id}, {Key: "op", Value: wire.OpOpen}, {Key: "h", Value: 1},
		{Key: "obs_space", Value: &wire.Space{Kind: "box", Shape: []int{1}, DType: wire.F32, Low: []float64{0},
			High: []float64{1}}},
		{Key: "act_space", Value: &wire.Space{Kind: "discrete", N: 2, DType: wire.I64}},
		{Key: "spec", Value: wire.Map{{Key: "id", Value: "X-v1"}}},
		{Key: "meta",
			Value: wire.Map{{Key: "fields",
				Value: []any{wire.Map{{Key: "name", Value: "x"}, {Key: "shape", Value: []int{1}}, {Key: "high", Value: 1.0}}}}}},
	}
	w.Value(change(m))
}

func keep(m wire.Map) wire.Map { return m }

func with(key string, v any) func(wire.Map) wire.Map {
	return func(m wire.Map) wire.Map {
		for i := range m {
			if m[i].Key == key {
				m[i].Value = v
			}
		}
		return m
	}
}

func TestDescriptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for what, change := range map[string]func(wire.Map) wire.Map{
		"no handle":          with("h", nil),
		"spec is a list":     with("spec", []any{}),
		"no actions":         with("act_space", nil),
		"actions of no kind": with("act_space", wire.Map{{Key: "t", Value: "colour"}}),
		"actions are text":   with("act_space", wire.Map{{Key: "t", Value: "text"}}),
		"two observations": with("obs_space",
			&wire.Space{Kind: "box", Shape: []int{2}, DType: wire.F32, Low: []float64{0}, High: []float64{1}}),
		"meta without fields":  with("meta", wire.Map{}),
		"fields that are none": with("meta", wire.Map{{Key: "fields", Value: "x"}}),
		"a huge field": with("meta",
			wire.Map{
				{Key: "fields",
					Value: []any{wire.Map{{Key: "name", Value: "x"}, {Key: "shape", Value: []int{1 << 30, 1 << 30, 1 << 30}}}}}}),
		"another operation": with("op", "reset"),
	} {
		addr := pretend(t, func(op string, id uint32, w *wire.Writer) bool {
			if op == wire.OpOpen {
				opened(id, w, change)
			} else if op != wire.OpHello {
				w.Reply(id, op, 0)
			}
			return op != wire.OpHello
		})
		_, err := dial(t, addr, nil).Open(ctx, "X-v1", nil)
		if !errors.Is(err, client.ErrReply) {
			t.Errorf("%s: error %v, want %v", what, err, client.ErrReply)
		}
	}
}

// step returns a valid reply to a step of that environment, except for one entry.
func stepReply(id uint32, w *wire.Writer, key string, v any) {
	one := func(d wire.DType) wire.Array {
		return wire.Array{DType: d, Shape: []int{1}, Data: make([]byte, d.Size())}
	}
	m := wire.Map{
		{Key: "re", Value: id}, {Key: "op", Value: wire.OpStep},
		{Key: "obs", Value: wire.Array{DType: wire.F32, Shape: []int{1, 1}, Data: make([]byte, 4)}},
		{Key: "r", Value: one(wire.F64)}, {Key: "te", Value: one(wire.Bool)}, {Key: "tr", Value: one(wire.Bool)},
		{Key: "info",
			Value: wire.Map{{Key: wire.MaskKey, Value: wire.Array{DType: wire.I8, Shape: []int{1, 2}, Data: []byte{1, 1}}}}},
	}
	w.Value(with(key, v)(m))
}

func TestRepliesThatMakeNoSenseChangeNothing(t *testing.T) {
	arr := func(d wire.DType, shape ...int) wire.Array {
		n := d.Size()
		for _, k := range shape {
			n *= k
		}
		return wire.Array{DType: d, Shape: shape, Data: make([]byte, n)}
	}
	for what, bad := range map[string]struct {
		key string
		v   any
	}{
		"nothing wrong":            {"none", nil},
		"no observation":           {"obs", nil},
		"two rows":                 {"obs", arr(wire.F32, 2, 1)},
		"doubles":                  {"obs", arr(wire.F64, 1, 1)},
		"a flat observation":       {"obs", arr(wire.F32, 1)},
		"no rewards":               {"r", []any{1.5}},
		"rewards of another type":  {"r", arr(wire.F32, 1)},
		"two ends":                 {"te", arr(wire.Bool, 2)},
		"info is a list":           {"info", []any{}},
		"no mask":                  {"info", wire.Map{}},
		"a mask of three":          {"info", wire.Map{{Key: wire.MaskKey, Value: arr(wire.I8, 1, 3)}}},
		"a mask of doubles":        {"info", wire.Map{{Key: wire.MaskKey, Value: arr(wire.F64, 1, 2)}}},
		"a last step out of place": {"op", "reset"},
	} {
		addr := pretend(t, func(op string, id uint32, w *wire.Writer) bool {
			switch op {
			case wire.OpHello:
				return false
			case wire.OpOpen:
				opened(id, w, keep)
			case wire.OpReset:
				m := wire.NewWriter(wire.Ext)
				stepReply(id, m, "op", wire.OpReset)
				reply, _ := wire.Decode(m.Bytes(), wire.Ext, wire.DefaultLimits())
				w.Value(reply)
			case wire.OpStep:
				stepReply(id, w, bad.key, bad.v)
			default:
				w.Reply(id, op, 0)
			}
			return true
		})
		e := open(t, dial(t, addr, nil), "X-v1", nil)
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		ts.Reward = 7
		before := bits(ts)
		err := e.Step(ctx, env.Action{Disc: []int32{1}}, ts)
		if bad.key == "none" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if !errors.Is(err, client.ErrReply) || bits(ts) != before {
			t.Errorf("%s: error %v, want %v; the time step is %s, was %s", what, err, client.ErrReply, bits(ts), before)
		}
	}
}

func TestGarbageEndsTheSession(t *testing.T) {
	for what, write := range map[string]func(id uint32, w *wire.Writer){
		"no message":         func(_ uint32, w *wire.Writer) { w.Int(3) },
		"no number":          func(_ uint32, w *wire.Writer) { w.Map(0) },
		"an unread request":  func(_ uint32, w *wire.Writer) { wire.Errorf(wire.BadFrame, "what?").Reply(w, 0) },
		"a negative number":  func(_ uint32, w *wire.Writer) { w.Value(map[string]any{"re": -4, "op": "open"}) },
		"a number of a kind": func(_ uint32, w *wire.Writer) { w.Value(map[string]any{"re": "4", "op": "open"}) },
	} {
		addr := pretend(t, func(op string, id uint32, w *wire.Writer) bool {
			if op == wire.OpOpen {
				write(id, w)
			}
			return op == wire.OpOpen
		})
		if _, err := dial(t, addr, nil).Open(ctx, "X-v1", nil); !errors.Is(err, client.ErrLost) {
			t.Errorf("%s: error %v, want %v", what, err, client.ErrLost)
		}
	}
}

func TestAServerThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	addr := pretend(t, func(op string, id uint32, w *wire.Writer) bool { return false })
	c := dial(t, addr, func(cfg *client.Config) { cfg.Timeout = 50 * time.Millisecond })
	_, err := c.Open(ctx, "X-v1", nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer to open") ||
		!strings.Contains(err.Error(), addr) {
		t.Errorf("error %v, want what was waited for, and where", err)
	}

	// A server that accepts the connection and sends nothing.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = client.Dial(ctx, client.Config{URL: "ws://" + l.Addr().String(), DialTimeout: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("error %v, want that there was no connection in time", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err = client.Dial(cancelled, client.Config{URL: "ws://" + l.Addr().String()}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestTokensAreShown(t *testing.T) {
	addr := serve(t,
		func(cfg *server.Config) { cfg.Tokens = []server.Token{{Role: server.RoleEnv, Secret: "open sesame"}} })
	dial(t, addr, func(cfg *client.Config) { cfg.Token = "open sesame" })
	for _, token := range []string{"", "sesame"} {
		_, err := client.Dial(ctx, client.Config{URL: "ws://" + addr, Token: token})
		if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "open sesame") {
			t.Errorf("token %q: error %v, want 401 or 4401", token, err)
		}
	}
}

func TestConfigsAreChecked(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:8765", "ftp://x", "ws://", "ws://user:secret@x", "ws://x?token=secret",
		"ws://%zz"} {
		cfg := client.Config{URL: url, Timeout: -1, DialTimeout: -1, KeepAlive: -1, MaxFrame: -1}
		if err := cfg.Validate(); len(fault.All(err)) != 5 {
			t.Errorf("%q: %v, want 5 faults", url, err)
		}
		if _, err := client.Dial(ctx, cfg); err == nil {
			t.Errorf("%q was dialled", url)
		}
	}
	for _, url := range []string{"ws://x", "wss://x:1/", "http://x:1/v1/ws", "https://x/else"} {
		cfg := client.DefaultConfig()
		cfg.URL = url
		if err := cfg.Validate(); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestClosingWaitsForWhatWasStarted(t *testing.T) {
	addr := serve(t, nil)
	warm, err := client.Dial(ctx, client.Config{URL: "ws://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	if err := warm.Close(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 20 {
		c, err := client.Dial(ctx, client.Config{URL: "ws://" + addr})
		if err != nil {
			t.Fatal(err)
		}
		e := open(t, c, driftID, map[string]any{"slow": 5})
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Add(1)
		go func() { // a call under way ends with an error, or regularly
			defer wg.Done()
			ts := env.NewTimeStep(e.Spec())
			for k := 0; ; k++ {
				if err := e.Reset(ctx, env.Episode{Seed: uint64(k), Window: -1}, ts); err != nil {
					if !errors.Is(err, env.ErrClosed) {
						t.Errorf("error %v, want %v", err, env.ErrClosed)
					}
					return
				}
			}
		}()
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Open(ctx, driftID, nil); !errors.Is(err, env.ErrClosed) {
			t.Errorf("Open after Close: %v", err)
		}
	}
	eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
}

// If an open is cancelled after it was sent, the handle that it opens is closed.
func TestAnOpenGivenUpLeavesNothingBehind(t *testing.T) {
	var mu sync.Mutex
	var closed []int64
	release := make(chan struct{})
	first := true
	addr := pretend(t, func(op string, id uint32, w *wire.Writer) bool {
		switch op {
		case wire.OpHello:
			return false
		case wire.OpOpen:
			if first {
				first = false
				<-release
				opened(id, w, keep)
			} else {
				opened(id, w, with("h", 2))
			}
		case wire.OpClose:
			mu.Lock()
			closed = append(closed, 1)
			mu.Unlock()
			w.Reply(id, op, 0)
		default:
			w.Reply(id, op, 0)
		}
		return true
	})
	c := dial(t, addr, nil)
	limited, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	if _, err := c.Open(limited, "X-v1", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	close(release)
	eventually(t, "nothing was closed", func() bool {
		e := open(t, c, "X-v1", nil)
		_ = e
		mu.Lock()
		defer mu.Unlock()
		return len(closed) == 1
	})
}

func TestSessionsRunOverTLS(t *testing.T) {
	cert, pool := selfSigned(t)
	addr := serve(t, func(cfg *server.Config) { cfg.TLSCert, cfg.TLSKey = cert, cert })
	c, err := client.Dial(ctx, client.Config{URL: "wss://" + addr},
		client.WithTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}))
	if err != nil {
		t.Fatal(err)
	}
	bothWays(t, open(t, c, driftID, nil), 1, func(int) {})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Dial(ctx, client.Config{URL: "wss://" + addr}); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server with an unknown certificate: error %v", err)
	}
}

// selfSigned makes a certificate for 127.0.0.1, with its key in the same file.
func selfSigned(t *testing.T) (file string, pool *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	file = filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return file, pool
}
