package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/control"
)

// patience is how long a test waits for what must happen.
const patience = 40 * time.Second

// walk is an environment whose observation is the number of its steps and whose episodes last five. The test decides
// what it does at actions 1 and 2.
type walk struct {
	hooks *hooks
	steps int
	begun bool
}

// hooks are the test's functions inside the environments that walks makes.
type hooks struct {
	mu     sync.Mutex
	closed int
	one    func(ctx context.Context) error // at action 1, and at reset with seed 1
	making func(ctx context.Context) error // in Make
	// closing is called by Close.
	closing func()
}

func (h *hooks) closedEnvs() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (w *walk) Spec() env.Spec {
	return env.Spec{
		ID: "Walk-v1", MaxSteps: 5, NoOp: 0,
		Obs:    []env.Field{{Name: "steps", Shape: []int{1}, Low: 0, High: 5}},
		Action: env.ActionSpec{Sizes: []int{3}},
	}
}

func (w *walk) fill(ts *env.TimeStep, k env.Kind, r float64) {
	ts.Kind, ts.Reward, ts.Elapsed, ts.Obs[0] = k, r, 0, float32(w.steps)
	for i := range ts.Mask {
		ts.Mask[i] = true
	}
}

func (w *walk) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if ep.Seed == 1 && w.hooks.one != nil {
		if err := w.hooks.one(ctx); err != nil {
			return err
		}
	}
	w.steps, w.begun = 0, true
	w.fill(ts, env.First, 0)
	return nil
}

func (w *walk) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if !w.begun {
		return env.ErrResetNeeded
	}
	if a.Disc[0] == 1 && w.hooks.one != nil {
		if err := w.hooks.one(ctx); err != nil {
			return err
		}
	}
	w.steps++
	k := env.Mid
	if w.steps == 5 {
		k, w.begun = env.Truncated, false
	}
	w.fill(ts, k, 1)
	return nil
}

func (w *walk) Close() error {
	if w.hooks.closing != nil {
		w.hooks.closing()
	}
	w.hooks.mu.Lock()
	defer w.hooks.mu.Unlock()
	w.hooks.closed++
	return nil
}

// walks is a Factory of Walk-v1, and of one CartPole-v1, which has snapshots.
type walks struct{ hooks *hooks }

func (f walks) List() []Listing {
	return []Listing{{ID: "Walk-v1", Spec: (&walk{}).Spec(), Kwargs: []any{}, SHA: "cafe"}}
}

func (f walks) Make(ctx context.Context, id string, _ wire.Map, n int) (*Made, error) {
	if id == "CartPole-v1" {
		e, err := control.New(id)
		return &Made{Envs: []env.Env{e}, SHA: "cafe"}, err
	}
	if id == "Show-v1" {
		return &Made{Envs: []env.Env{&show{walk{hooks: f.hooks}}}, SHA: "cafe"}, nil
	}
	if id != "Walk-v1" {
		return nil, wire.Errorf(wire.UnknownEnv, "there is no %q", id)
	}
	if f.hooks.making != nil {
		if err := f.hooks.making(ctx); err != nil {
			return nil, err
		}
	}
	m := &Made{SHA: "cafe"}
	for range n {
		m.Envs = append(m.Envs, &walk{hooks: f.hooks})
	}
	return m, nil
}

// host is a server under test.
type host struct {
	*Server
	t     *testing.T
	addr  string
	hooks *hooks
	stop  context.CancelFunc
	done  chan struct{} // closed when Serve has returned
	err   error
	log   *bytes.Buffer // valid after done
	tls   *tls.Config   // for clients
	soak  bool          // clients are not closed at the end, for that would keep them
}

// quick returns a configuration for tests, with which the server ends at once.
func quick() Config {
	cfg := DefaultConfig()
	cfg.DrainTimeout = 0
	return cfg
}

// serve starts a server, which ends with the test and must end without an error.
func serve(t *testing.T, cfg Config) *host {
	t.Helper()
	log := &bytes.Buffer{}
	return serveLogging(t, cfg, log, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// serveOn is serve with a listener of the test's own making.
func serveOn(t *testing.T, cfg Config, through func(net.Listener) net.Listener) *host {
	t.Helper()
	log := &bytes.Buffer{}
	return serveThrough(t, cfg, log, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		through)
}

func serveLogging(t *testing.T, cfg Config, text *bytes.Buffer, log *slog.Logger) *host {
	t.Helper()
	return serveThrough(t, cfg, text, log, func(l net.Listener) net.Listener { return l })
}

func serveThrough(t *testing.T, cfg Config, text *bytes.Buffer, log *slog.Logger,
	through func(net.Listener) net.Listener) *host {
	t.Helper()
	h := &host{t: t, hooks: &hooks{}, done: make(chan struct{}), log: text}
	s, err := New(cfg, walks{h.hooks}, log)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, h.stop = context.WithCancel(context.Background())
	h.Server, h.addr = s, l.Addr().String()
	go func() {
		defer close(h.done)
		h.err = s.Serve(ctx, through(l))
	}()
	t.Cleanup(func() {
		h.stop()
		h.wait()
		if h.err != nil {
			t.Errorf("Serve: %v", h.err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", h.log)
		}
	})
	return h
}

// wait waits for Serve to return.
func (h *host) wait() {
	h.t.Helper()
	select {
	case <-h.done:
	case <-time.After(patience):
		h.t.Fatal("Serve does not return")
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("still not: %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func (h *host) sessionsLeft() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// peer is a client that sees raw messages.
type peer struct {
	t    *testing.T
	ws   *websocket.Conn
	enc  wire.Encoding
	next uint32 // the next request's id
}

// dial connects; header may be nil.
func (h *host) dial(sub string, header http.Header) (*peer, *http.Response, error) {
	d := websocket.Dialer{HandshakeTimeout: patience, TLSClientConfig: h.tls}
	scheme := "ws"
	if h.tls != nil {
		scheme = "wss"
	}
	if sub != "" {
		d.Subprotocols = []string{sub}
	}
	ws, resp, err := d.Dial(scheme+"://"+h.addr+"/v1/ws", header)
	if err != nil {
		return nil, resp, err
	}
	p := &peer{t: h.t, ws: ws, enc: wire.Ext, next: 2}
	if sub == wire.SubJSON {
		p.enc = wire.JSON
	}
	if !h.soak {
		h.t.Cleanup(func() { ws.Close() })
	}
	return p, resp, nil
}

func (h *host) connect() *peer {
	h.t.Helper()
	p, _, err := h.dial(wire.SubMsgpack, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// all lists all features.
var all = []any{"async", "resume", "snapshot", "render"}

// m makes a map of keys and values in turn.
func m(kv ...any) wire.Map {
	var out wire.Map
	for i := 0; i < len(kv); i += 2 {
		out = append(out, wire.Pair{Key: kv[i].(string), Value: kv[i+1]})
	}
	return out
}

// with returns v with another value at key.
func with(v wire.Map, key string, x any) wire.Map {
	out := slices.Clone(v)
	for i := range out {
		if out[i].Key == key {
			out[i].Value = x
			return out
		}
	}
	return append(out, wire.Pair{Key: key, Value: x})
}

// client connects and says hello, with more fields than it needs.
func (h *host) client(more ...any) *peer {
	h.t.Helper()
	p := h.connect()
	p.hello(more...)
	return p
}

// hello says hello and returns the welcome.
func (p *peer) hello(more ...any) wire.Map {
	p.t.Helper()
	v := m("op", "hello", "id", 1, "proto", []any{1, 1}, "enc", []any{p.enc.String()}, "feat", all)
	for _, x := range m(more...) {
		v = with(v, x.Key, x.Value)
	}
	p.send(v)
	w := p.recv()
	if w.Get("op") != "welcome" || w.Get("re") != int64(1) {
		p.t.Fatalf("hello is answered by %v", w)
	}
	return w
}

func (p *peer) send(v wire.Map) {
	p.t.Helper()
	w := wire.NewWriter(p.enc)
	w.Value(v)
	if err := p.raw(w.Bytes()); err != nil {
		p.t.Fatalf("sending: %v", err)
	}
}

func (p *peer) raw(b []byte) error {
	kind := websocket.BinaryMessage
	if p.enc == wire.JSON {
		kind = websocket.TextMessage
	}
	_ = p.ws.SetWriteDeadline(time.Now().Add(patience))
	return p.ws.WriteMessage(kind, b)
}

// ask sends a request without waiting and returns its id.
func (p *peer) ask(op string, more ...any) uint32 {
	p.t.Helper()
	id := p.next
	p.next++
	p.send(append(m("op", op, "id", id), m(more...)...))
	return id
}

// read returns the next message, or the error that ended the connection.
func (p *peer) read() (wire.Map, error) {
	_ = p.ws.SetReadDeadline(time.Now().Add(patience))
	_, b, err := p.ws.ReadMessage()
	if err != nil {
		return nil, err
	}
	v, e := wire.Decode(b, p.enc, wire.DefaultLimits())
	if e != nil {
		return nil, e
	}
	return v, nil
}

func (p *peer) recv() wire.Map {
	p.t.Helper()
	v, err := p.read()
	if err != nil {
		p.t.Fatalf("receiving: %v", err)
	}
	return v
}

// do sends a request and returns its reply, which must come next.
func (p *peer) do(op string, more ...any) wire.Map {
	p.t.Helper()
	id := p.ask(op, more...)
	v := p.recv()
	if v.Get("re") != int64(id) {
		p.t.Fatalf("%s, request %d, is answered by %v", op, id, v)
	}
	return v
}

// must is do for a request that succeeds.
func (p *peer) must(op string, more ...any) wire.Map {
	p.t.Helper()
	v := p.do(op, more...)
	if v.Get("op") != op {
		p.t.Fatalf("%s is answered by %v", op, v)
	}
	return v
}

// fails is do for a request that must be refused with a code.
func (p *peer) fails(code wire.Code, op string, more ...any) wire.Error {
	p.t.Helper()
	v := p.do(op, more...)
	e := wire.ErrorOf(v)
	if v.Get("op") != "error" || e.Code != code {
		p.t.Fatalf("%s is answered by %v, want error %s", op, v, code)
	}
	return *e
}

// open opens n environments and resets them.
func (p *peer) open(n int) (h int64) {
	p.t.Helper()
	h = p.must("open", "env", "Walk-v1", "n", n).Get("h").(int64)
	p.must("reset", "h", h, "seed", 7)
	return h
}

// steps returns n equal actions.
func act(a int64, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = a
	}
	return out
}

// shown returns the number of steps in row 0 of a reply.
func shown(t *testing.T, v wire.Map) float64 {
	t.Helper()
	obs, ok := v.Get("obs").(wire.Map)
	if !ok {
		t.Fatalf("no observation in %v", v)
	}
	switch a := obs.Get("steps").(type) {
	case wire.Array:
		return a.Float(0)
	case []any:
		f, _ := a[0].([]any)[0].(float64)
		return f
	}
	t.Fatalf("no steps in %v", v)
	return 0
}

// closedWith reads to the end of the connection, which must have the code, and returns the reason. Messages before it
// are skipped.
func (p *peer) closedWith(code int) string {
	p.t.Helper()
	for {
		_, err := p.read()
		if err == nil {
			continue
		}
		var c *websocket.CloseError
		if !errors.As(err, &c) {
			p.t.Fatalf("the connection ends with %v, want code %d", err, code)
		}
		if c.Code != code {
			p.t.Fatalf("closed with %d %q, want %d", c.Code, c.Text, code)
		}
		if len(c.Text) > maxReason || code >= 4400 && c.Text == "" {
			p.t.Fatalf("closed with %d and %d bytes: %q", c.Code, len(c.Text), c.Text)
		}
		p.ws.Close() // or the server would wait a moment for it
		return c.Text
	}
}

// drop ends the connection without a close frame.
func (p *peer) drop() {
	if tcp, ok := p.ws.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset, as of a process that was killed
	}
	p.ws.Close()
}

// get asks for a page.
func (h *host) get(path, token string) (status int, body string) {
	h.t.Helper()
	return h.page(http.MethodGet, path, token)
}

func (h *host) page(method, path, token string) (status int, body string) {
	h.t.Helper()
	scheme := "http"
	if h.tls != nil {
		scheme = "https"
	}
	r, err := http.NewRequest(method, scheme+"://"+h.addr+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	tr := &http.Transport{TLSClientConfig: h.tls, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// metric returns the value of a metric. name includes its labels.
func (h *host) metric(name, token string) string {
	h.t.Helper()
	_, body := h.get("/metrics", token)
	for line := range strings.Lines(body) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return v
		}
	}
	return fmt.Sprintf("no %s", name)
}
