package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

func (s *suite) welcomeIsComplete() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	w := c.welcome
	if re, e := w.Int("re", 0, 1, 1); e != nil || re != 1 {
		return fmt.Errorf("re is %v, want 1", w.Get("re"))
	}
	if p, e := w.Int("proto", 0, 1, 1); e != nil || p != 1 {
		return fmt.Errorf("proto is %v, want 1", w.Get("proto"))
	}
	if w.Get("enc") != "ext" {
		return fmt.Errorf("enc is %v, and ext was offered", w.Get("enc"))
	}
	server, e := w.Sub("server")
	if e != nil {
		return e
	}
	for _, k := range []string{"name", "version", "commit"} {
		if _, ok := server.Get(k).(string); !ok {
			return fmt.Errorf("server has no %s: %v", k, server)
		}
	}
	feat, e := w.Strs("feat", nil)
	if e != nil {
		return e
	}
	for _, f := range feat {
		if !slices.Contains(allFeatures, f) {
			return fmt.Errorf("feature %q was granted, and not asked for", f)
		}
	}
	if v, _ := w.Get("session").(string); v == "" {
		return errors.New("no session")
	}
	if v, _ := w.Get("resume").(string); c.has("resume") && len(v)*4 < 128 {
		return fmt.Errorf("resume token %q, want at least 128 bits", v)
	}
	lim, e := w.Sub("limits")
	if e != nil {
		return e
	}
	for _, k := range []string{"frame_in", "frame_out", "envs", "handles", "inflight", "sessions", "idle_s", "resume_s", "step_s", "ping_s"} {
		v, ok := compare.Number(lim.Get(k))
		if !ok || v < 0 || v == 0 && k != "resume_s" && k != "ping_s" {
			return fmt.Errorf("limit %s is %v, want a number above 0", k, lim.Get(k))
		}
	}
	d, err := s.dial("feat", []string{})
	if err != nil {
		return err
	}
	if feat, e := d.welcome.Strs("feat", nil); e != nil || len(feat) > 0 {
		return fmt.Errorf("features %v were granted, and none asked for", feat)
	}
	if d.welcome.Get("session") == w.Get("session") {
		return errors.New("two sessions have the same name")
	}
	return nil
}

func (s *suite) unknownKeysAreIgnored() error {
	c, err := s.dial("feat", []string{"warp", "async", "time-travel"}, "moon", m("phase", 3), "client", m("name", "x", "shoe", 46))
	if err != nil {
		return err
	}
	feat, e := c.welcome.Strs("feat", nil)
	if e != nil || slices.Contains(feat, "warp") || slices.Contains(feat, "time-travel") {
		return fmt.Errorf("features %v, want those that exist", feat)
	}
	if _, err := c.ask(wire.OpPing, "t", 1, "moon", []any{1, "two", nil}, "x", m("y", 2)); err != nil {
		return err
	}
	p, err := s.openOn(c, 1, "moon", "full")
	if err != nil {
		return err
	}
	if _, err := p.ask(wire.OpReset, "seed", 1, "moon", 1.5); err != nil {
		return err
	}
	_, err = p.ask(wire.OpStep, "a", p.actions(p.random(s.draw)), "moon", []byte("x"))
	return err
}

func (s *suite) badHellosAreClosed() error {
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
		c, _, err := s.upgrade(wire.Ext, s.Token)
		if err != nil {
			return err
		}
		if err := c.write(x.frame); err != nil {
			return fmt.Errorf("%s: %w", x.what, err)
		}
		if _, err := c.closed(4400); err != nil {
			return fmt.Errorf("%s: %w", x.what, err)
		}
	}
	c, _, err := s.upgrade(wire.Ext, s.Token)
	if err != nil {
		return err
	}
	if err := c.write(merge(proper, m("moon", make([]byte, 64<<10)))); err != nil {
		return err
	}
	if _, err := c.closed(1009); err != nil {
		return fmt.Errorf("a first message above 64 KiB: %w", err)
	}
	return nil
}

func (s *suite) versionsMustOverlap() error {
	c, _, err := s.upgrade(wire.Ext, s.Token)
	if err != nil {
		return err
	}
	if err := c.write(hello(wire.Ext, "proto", []int{7, 9})); err != nil {
		return err
	}
	reason, err := c.closed(4406)
	if err != nil {
		return err
	}
	for _, n := range []string{"7", "9", "1"} {
		if !strings.Contains(reason, n) {
			return fmt.Errorf("the reason %q does not name both ranges: 7 to 9, and the server's", reason)
		}
	}
	if c, _, err = s.upgrade(wire.Ext, s.Token); err != nil {
		return err
	}
	if err := c.write(hello(wire.Ext, "enc", []string{"smoke", "drums"})); err != nil {
		return err
	}
	if _, err := c.closed(4406); err != nil {
		return fmt.Errorf("no encoding in common: %w", err)
	}
	// A wider range overlaps.
	if _, err = s.dial("proto", []int{0, 12}); err != nil {
		return err
	}
	_, err = s.dial("enc", []string{"smoke", "ext"})
	return err
}

func (s *suite) helloMustComeInTime() error {
	if s.HelloTimeout == 0 {
		return skip("the server's hello timeout is not given")
	}
	c, _, err := s.upgrade(wire.Ext, s.Token)
	if err != nil {
		return err
	}
	c.wait += s.HelloTimeout
	start := time.Now()
	if _, err := c.closed(4408); err != nil {
		return err
	}
	if took := time.Since(start); took < s.HelloTimeout/2 {
		return fmt.Errorf("closed after %v, and %v were allowed", took, s.HelloTimeout)
	}
	return nil
}

func (s *suite) tokensAreAskedFor() error {
	if s.Token == "" {
		return skip("no token is given")
	}
	if c, resp, err := s.upgrade(wire.Ext, "wrong-"+s.Token); err == nil {
		return errors.New("a wrong token was accepted on the upgrade")
	} else if c != nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("a wrong token on the upgrade: %w, want HTTP 401", err)
	}
	var reasons []string
	for _, more := range [][]any{{}, {"auth", ""}, {"auth", "x"}, {"auth", "wrong-" + s.Token}, {"auth", s.Token[:len(s.Token)-1]}} {
		c, _, err := s.upgrade(wire.Ext, "")
		if err != nil {
			return err
		}
		if err := c.write(hello(wire.Ext, more...)); err != nil {
			return err
		}
		reason, err := c.closed(4401)
		if err != nil {
			return fmt.Errorf("hello with %v: %w", more, err)
		}
		reasons = append(reasons, reason)
	}
	for _, r := range reasons[1:] {
		if r != reasons[0] {
			return fmt.Errorf("wrong tokens are told apart: %q and %q", reasons[0], r)
		}
	}
	c, _, err := s.upgrade(wire.Ext, "")
	if err != nil {
		return err
	}
	return c.greet(hello(wire.Ext, "auth", s.Token))
}

func (s *suite) messageTypesAreKept() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	if err := c.writeAs(websocket.TextMessage, []byte(`{"op":"ping","id":2}`)); err != nil {
		return err
	}
	if _, err := c.closed(1003); err != nil {
		return fmt.Errorf("a text message in a msgpack session: %w", err)
	}
	if c, err = s.dialIn(wire.JSON); err != nil {
		return err
	}
	if err := c.writeAs(websocket.BinaryMessage, []byte{0x80}); err != nil {
		return err
	}
	if _, err := c.closed(1003); err != nil {
		return fmt.Errorf("a binary message in a JSON session: %w", err)
	}
	return nil
}

func (s *suite) byeEndsTheSession() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	if _, err := s.openOn(c, 2); err != nil {
		return err
	}
	if _, err := c.ask(wire.OpBye); err != nil {
		return err
	}
	_, err = c.closed(1000)
	return err
}

// get fetches a page of the sidecar.
func (s *suite) get(path string, head http.Header) (status int, body []byte, err error) {
	client := http.Client{Timeout: s.Wait, Transport: &http.Transport{TLSClientConfig: s.TLS, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.base.String()+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	req.Header = head
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	return resp.StatusCode, body, errors.Join(err, resp.Body.Close())
}

// page fetches a page of the sidecar, which must answer with the status want.
func (s *suite) page(path string, head http.Header, want int) (body []byte, err error) {
	status, body, err := s.get(path, head)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if status != want {
		return nil, fmt.Errorf("%s: HTTP %d, want %d", path, status, want)
	}
	return body, nil
}

func (s *suite) sidecarAnswers() error {
	bearer := http.Header{}
	if s.Token != "" {
		bearer.Set("Authorization", "Bearer "+s.Token)
		for _, path := range []string{"/v1/envs", "/metrics"} {
			if _, err := s.page(path, http.Header{}, http.StatusUnauthorized); err != nil {
				return fmt.Errorf("without a token: %w", err)
			}
		}
	} else if _, err := s.page("/metrics", bearer, http.StatusOK); err != nil {
		return err
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/version"} {
		body, err := s.page(path, http.Header{}, http.StatusOK)
		if err != nil {
			return err
		}
		if path == "/v1/version" && !json.Valid(body) {
			return fmt.Errorf("/v1/version: %.100q is no JSON", body)
		}
	}
	body, err := s.page("/v1/envs", bearer, http.StatusOK)
	if err != nil {
		return err
	}
	if !json.Valid(body) || !strings.Contains(string(body), `"`+s.Env+`"`) {
		return fmt.Errorf("/v1/envs is no JSON, or does not name %s: %s", s.Env, compare.Brief(string(body)))
	}
	foreign := bearer.Clone()
	foreign.Set("Origin", "https://elsewhere.example")
	foreign.Set("Connection", "Upgrade")
	foreign.Set("Upgrade", "websocket")
	foreign.Set("Sec-WebSocket-Version", "13")
	foreign.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	if _, err := s.page("/v1/ws", foreign, http.StatusForbidden); err != nil {
		return fmt.Errorf("with an Origin that is not allowed: %w", err)
	}
	return nil
}
