package conformance

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
)

// liar is a proxy that breaks what a good server says in one way.
type liar struct {
	reply   func(l *link, m wire.Map) []wire.Map // what goes to the client in place of m
	request func(l *link, m wire.Map) wire.Map   // what goes to the server in place of m
	close   func(code int, text string) (int, string)
}

// link is one connection through a liar.
type link struct {
	enc    wire.Encoding
	held   []wire.Map
	count  int
	bags   *bags
	resume bool
	offset int64
	fields wire.Map // the request that the current reply answers
	asked  map[int64]wire.Map
}

// bags is the state that all links share.
type bags struct {
	sync.Mutex
	blob   any
	offset int64
}

func (l *liar) serve(t *testing.T, target string) string {
	to, err := url.Parse("http" + strings.TrimPrefix(target, "ws"))
	if err != nil {
		t.Fatal(err)
	}
	pages := httputil.NewSingleHostReverseProxy(to)
	shared := &bags{}
	up := websocket.Upgrader{Subprotocols: []string{wire.SubMsgpack, wire.SubJSON},
		CheckOrigin: func(*http.Request) bool { return true }}
	var wg sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/ws" || r.Header.Get("Origin") != "" {
			pages.ServeHTTP(w, r)
			return
		}
		wg.Add(1)
		defer wg.Done()
		head := http.Header{}
		if a := r.Header.Get("Authorization"); a != "" {
			head.Set("Authorization", a)
		}
		d := websocket.Dialer{Subprotocols: websocket.Subprotocols(r), HandshakeTimeout: 5 * time.Second}
		out, resp, err := d.Dial(target+"/v1/ws", head)
		if err != nil {
			code := http.StatusBadGateway
			if resp != nil {
				code = resp.StatusCode
			}
			http.Error(w, "", code)
			return
		}
		defer out.Close()
		in, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer in.Close()
		k := &link{asked: map[int64]wire.Map{}, bags: shared}
		if out.Subprotocol() == wire.SubJSON {
			k.enc = wire.JSON
		}
		var mu sync.Mutex // of k
		wg.Add(1)
		go func() {
			defer wg.Done()
			l.pump(&mu, k, in, out, l.ask)
			out.Close()
		}()
		l.pump(&mu, k, out, in, l.tell)
	}))
	t.Cleanup(func() {
		s.Close()
		wg.Wait()
	})
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

// pump carries messages from one side to the other.
func (l *liar) pump(mu *sync.Mutex, k *link, from, to *websocket.Conn, spoil func(*link, wire.Map) []wire.Map) {
	for {
		kind, frame, err := from.ReadMessage()
		if err != nil {
			var c *websocket.CloseError
			if errors.As(err, &c) && c.Code != websocket.CloseAbnormalClosure {
				code, text := c.Code, c.Text
				if l.close != nil {
					code, text = l.close(code, text)
				}
				if code == websocket.CloseNoStatusReceived {
					text = ""
				}
				_ = to.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
			}
			to.Close()
			return
		}
		frames := [][]byte{frame}
		lim := wire.DefaultLimits()
		lim.String = 16 << 20
		if m, e := wire.Decode(frame, k.enc, lim); e == nil {
			frames = nil
			mu.Lock()
			for _, m := range spoil(k, m) {
				w := wire.NewWriter(k.enc)
				w.Value(m)
				frames = append(frames, w.Bytes())
			}
			mu.Unlock()
		}
		for _, b := range frames {
			if to.WriteMessage(kind, b) != nil {
				from.Close()
				return
			}
		}
	}
}

func (l *liar) ask(k *link, m wire.Map) []wire.Map {
	id, _ := m.Int("id", 0, 0, 1<<32-1)
	op, _ := m.Str("op", "")
	if op == wire.OpHello && m.Has("resume") {
		k.resume = true
	}
	k.asked[id] = m
	if l.request != nil {
		m = l.request(k, m)
	}
	return []wire.Map{m}
}

func (l *liar) tell(k *link, m wire.Map) []wire.Map {
	re, _ := m.Int("re", 0, 0, 1<<32-1)
	k.fields = k.asked[re]
	if l.reply == nil {
		return []wire.Map{m}
	}
	return l.reply(k, m)
}
