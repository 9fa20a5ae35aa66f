package conformance

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

func (s *suite) welcomeIsComplete() {
	c := s.dial()
	w := c.welcome
	if re, e := w.Int("re", 0, 1, 1); e != nil || re != 1 {
		failf("re is %v, want 1", w.Get("re"))
	}
	if p, e := w.Int("proto", 0, 1, 1); e != nil || p != 1 {
		failf("proto is %v, want 1", w.Get("proto"))
	}
	if w.Get("enc") != "ext" {
		failf("enc is %v, and ext was offered", w.Get("enc"))
	}
	server := field(w.Sub("server"))
	for _, k := range []string{"name", "version", "commit"} {
		if _, ok := server.Get(k).(string); !ok {
			failf("server has no %s: %v", k, server)
		}
	}
	for _, f := range field(w.Strs("feat", nil)) {
		if !slices.Contains(allFeatures, f) {
			failf("feature %q was granted, and not asked for", f)
		}
	}
	if v, _ := w.Get("session").(string); v == "" {
		failf("no session")
	}
	if v, _ := w.Get("resume").(string); c.has("resume") && len(v)*4 < 128 {
		failf("resume token %q, want at least 128 bits", v)
	}
	lim := field(w.Sub("limits"))
	for _, k := range []string{
		"frame_in", "frame_out", "envs", "handles", "inflight", "sessions", "idle_s", "resume_s", "step_s", "ping_s",
	} {
		v, ok := compare.Number(lim.Get(k))
		if !ok || v < 0 || v == 0 && k != "resume_s" && k != "ping_s" {
			failf("limit %s is %v, want a number above 0", k, lim.Get(k))
		}
	}
	d := s.dial("feat", []string{})
	if feat, e := d.welcome.Strs("feat", nil); e != nil || len(feat) > 0 {
		failf("features %v were granted, and none asked for", feat)
	}
	if d.welcome.Get("session") == w.Get("session") {
		failf("two sessions have the same name")
	}
}

func (s *suite) unknownKeysAreIgnored() {
	c := s.dial("feat", []string{"warp", "async", "time-travel"}, "moon", m("phase", 3), "client",
		m("name", "x", "shoe", 46))
	feat, e := c.welcome.Strs("feat", nil)
	if e != nil || slices.Contains(feat, "warp") || slices.Contains(feat, "time-travel") {
		failf("features %v, want those that exist", feat)
	}
	c.ask(wire.OpPing, "t", 1, "moon", []any{1, "two", nil}, "x", m("y", 2))
	p := s.openOn(c, 1, "moon", "full")
	p.ask(wire.OpReset, "seed", 1, "moon", 1.5)
	p.ask(wire.OpStep, "a", p.actions(p.random(s.draw)), "moon", []byte("x"))
}

func (s *suite) badHellosAreClosed() {
	proper := hello(wire.Ext)
	for _, x := range []struct {
		what  string
		frame wire.Map
	}{
		{"another operation first", m("op", "ping", "id", 1, "t", 1)},
		{"an id that is not 1", merge(proper, m("id", 2))},
		{"no id", m("op", "hello", "proto", []int{1, 1}, "enc", []string{"ext"}, "feat", []string{})},
		{"proto that is no pair", merge(proper, m("proto", "one"))},
		{"enc that is no list", merge(proper, m("enc", 7))},
	} {
		s.part("%s", x.what)
		c := s.connect(wire.Ext, s.Token)
		c.write(x.frame)
		c.closed(4400)
	}
	s.part("a first message above 64 KiB")
	c := s.connect(wire.Ext, s.Token)
	c.write(merge(proper, m("moon", make([]byte, 64<<10))))
	c.closed(1009)
}

func (s *suite) versionsMustOverlap() {
	c := s.connect(wire.Ext, s.Token)
	c.write(hello(wire.Ext, "proto", []int{7, 9}))
	reason := c.closed(4406)
	for _, n := range []string{"7", "9", "1"} {
		if !strings.Contains(reason, n) {
			failf("the reason %q does not name both ranges: 7 to 9, and the server's", reason)
		}
	}
	s.part("no encoding in common")
	c = s.connect(wire.Ext, s.Token)
	c.write(hello(wire.Ext, "enc", []string{"smoke", "drums"}))
	c.closed(4406)
	s.part("a wider range overlaps")
	s.dial("proto", []int{0, 12})
	s.dial("enc", []string{"smoke", "ext"})
}

func (s *suite) helloMustComeInTime() {
	if s.HelloTimeout == 0 {
		skipf("the server's hello timeout is not given")
	}
	c := s.connect(wire.Ext, s.Token)
	c.wait += s.HelloTimeout
	start := time.Now()
	c.closed(4408)
	if took := time.Since(start); took < s.HelloTimeout/2 {
		failf("closed after %v, and %v were allowed", took, s.HelloTimeout)
	}
}

func (s *suite) tokensAreAskedFor() {
	if s.Token == "" {
		skipf("no token is given")
	}
	if c, resp, err := s.upgrade(wire.Ext, "wrong-"+s.Token); err == nil {
		failf("a wrong token was accepted on the upgrade")
	} else if c != nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		failf("a wrong token on the upgrade: %w, want HTTP 401", err)
	}
	var reasons []string
	for _, more := range [][]any{
		{}, {"auth", ""}, {"auth", "x"}, {"auth", "wrong-" + s.Token}, {"auth", s.Token[:len(s.Token)-1]},
	} {
		s.part("hello with %v", more)
		c := s.connect(wire.Ext, "")
		c.write(hello(wire.Ext, more...))
		reasons = append(reasons, c.closed(4401))
	}
	s.part("a token in hello")
	for _, r := range reasons[1:] {
		if r != reasons[0] {
			failf("wrong tokens are told apart: %q and %q", reasons[0], r)
		}
	}
	s.connect(wire.Ext, "").greet(hello(wire.Ext, "auth", s.Token))
}

func (s *suite) messageTypesAreKept() {
	s.part("a text message in a msgpack session")
	c := s.dial()
	c.writeAs(websocket.TextMessage, []byte(`{"op":"ping","id":2}`))
	c.closed(1003)
	s.part("a binary message in a JSON session")
	c = s.dialIn(wire.JSON)
	c.writeAs(websocket.BinaryMessage, []byte{0x80})
	c.closed(1003)
}

func (s *suite) byeEndsTheSession() {
	c := s.dial()
	s.openOn(c, 2)
	c.ask(wire.OpBye)
	c.closed(1000)
}

// page fetches a page of the sidecar, which must answer with the status want.
func (s *suite) page(path string, head http.Header, want int) []byte {
	client := http.Client{Timeout: s.Wait, Transport: &http.Transport{TLSClientConfig: s.TLS, DisableKeepAlives: true}}
	req := need(http.NewRequestWithContext(s.ctx, http.MethodGet, s.base.String()+path, http.NoBody))
	req.Header = head
	resp := need(client.Do(req))
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		failf("%s: %w", path, err)
	}
	if resp.StatusCode != want {
		failf("%s: HTTP %d, want %d", path, resp.StatusCode, want)
	}
	return body
}

func (s *suite) sidecarAnswers() {
	bearer := http.Header{}
	if s.Token != "" {
		bearer.Set("Authorization", "Bearer "+s.Token)
		for _, path := range []string{"/v1/envs", "/metrics"} {
			s.part("without a token")
			s.page(path, http.Header{}, http.StatusUnauthorized)
		}
		s.part("with a token")
	} else {
		s.page("/metrics", bearer, http.StatusOK)
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/version"} {
		body := s.page(path, http.Header{}, http.StatusOK)
		if path == "/v1/version" && !json.Valid(body) {
			failf("/v1/version: %.100q is no JSON", body)
		}
	}
	body := s.page("/v1/envs", bearer, http.StatusOK)
	if !json.Valid(body) || !strings.Contains(string(body), `"`+s.Env+`"`) {
		failf("/v1/envs is no JSON, or does not name %s: %s", s.Env, compare.Brief(string(body)))
	}
	foreign := bearer.Clone()
	foreign.Set("Origin", "https://elsewhere.example")
	foreign.Set("Connection", "Upgrade")
	foreign.Set("Upgrade", "websocket")
	foreign.Set("Sec-WebSocket-Version", "13")
	foreign.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	s.part("with an Origin that is not allowed")
	s.page("/v1/ws", foreign, http.StatusForbidden)
}
