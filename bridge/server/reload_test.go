package server

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"clustergym/bridge/wire"
)

// After a reload the new tokens count and the old ones do not, while sessions that are open go on.
func TestAReloadReplacesTheTokens(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Tokens = []Token{{RoleEnv, "the-old-token"}, {RoleRead, "reader"}}
	h := serve(t, cfg)
	old, _, err := h.dial(wire.SubMsgpack, bearing("the-old-token"))
	if err != nil {
		t.Fatal(err)
	}
	k := ticketOf(old.hello())
	hd := old.open(1)
	for name, bad := range map[string][]Token{"none": nil, "no role": {{0, "x"}}, "empty": {{RoleEnv, ""}}} {
		if err := h.Reload(bad); err == nil {
			t.Errorf("%s: reloaded", name)
		}
	}
	if _, _, err := h.dial(wire.SubMsgpack, bearing("the-old-token")); err != nil {
		t.Errorf("the old token after a bad reload: %v", err)
	}
	if err := h.Reload([]Token{{RoleEnv, "the-new-token"}}); err != nil {
		t.Fatal(err)
	}
	old.must("step", "h", hd, "a", act(0, 1)) // its session goes on
	if _, resp, err := h.dial(wire.SubMsgpack, bearing("the-old-token")); err == nil ||
		resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the old token: %v", err)
	}
	if status, _ := h.get("/metrics", "reader"); status != http.StatusUnauthorized {
		t.Errorf("the old reader: %d", status)
	}
	p := h.connect()
	p.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "auth", "the-old-token"))
	p.closedWith(wire.CloseUnauthorized)
	// A resume needs a token that is valid now.
	old.drop()
	eventually(t, "parked", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.sessions) == 1 && h.sessions[k.session].parked.Load() > 0
	})
	resume := k.asking(hd, old.next-1, 0, old.next-1)
	p = h.connect()
	p.send(m("op", "hello", "id", 1, "proto", []any{1, 1}, "auth", "the-old-token", "feat", all, "resume", resume))
	p.closedWith(wire.CloseUnauthorized)
	q := h.client("auth", "the-new-token", "resume", resume)
	q.next = old.next
	if got := shown(t, q.must("step", "h", hd, "a", act(0, 1))); got != 2 {
		t.Errorf("it resumes at step %v, want 2", got)
	}
}

func TestAServerWithoutTokensTakesNone(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	if err := h.Reload([]Token{{RoleEnv, "surprise"}}); err == nil {
		t.Error("it has tokens now")
	}
	if err := h.Reload(nil); err != nil {
		t.Error(err)
	}
	h.client().must("ping")
}

// replace copies the contents of one file over another.
func replace(t *testing.T, to, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAReloadReplacesTheCertificates(t *testing.T) {
	t.Parallel()
	cfg := quick()
	var first tls.Certificate
	cfg.TLSCert, cfg.TLSKey, first = papers(t, "first")
	cert, key, second := papers(t, "second")
	ca, _, mine := papers(t, "client")
	newCA, _, yours := papers(t, "other")
	cfg.ClientCA = ca
	h := serve(t, cfg)
	dial := func(server, client tls.Certificate) error {
		h.tls = &tls.Config{RootCAs: trusting(server), Certificates: []tls.Certificate{client},
			ClientSessionCache: tls.NewLRUClientSessionCache(8)}
		p, _, err := h.dial(wire.SubMsgpack, nil)
		if err == nil {
			p.hello()
			p.must("ping")
		}
		return err
	}
	if err := dial(first, mine); err != nil {
		t.Fatal(err)
	}
	// A certificate without its key changes nothing.
	replace(t, cfg.TLSCert, cert)
	if err := h.Reload(nil); err == nil || !strings.Contains(err.Error(), cfg.TLSCert) {
		t.Errorf("a certificate with a foreign key: %v", err)
	}
	if err := dial(first, mine); err != nil {
		t.Errorf("after a bad reload: %v", err)
	}
	replace(t, cfg.TLSKey, key)
	replace(t, ca, newCA)
	if err := h.Reload(nil); err != nil {
		t.Fatal(err)
	}
	if err := dial(second, yours); err != nil {
		t.Errorf("the new ones: %v", err)
	}
	if dial(first, yours) == nil || dial(second, mine) == nil {
		t.Error("an old one still counts")
	}
}

// Connections that stop in the middle of a TLS handshake delay no other client.
func TestHandshakesThatHangDelayNobody(t *testing.T) {
	t.Parallel()
	cfg := guarded()
	var pair tls.Certificate
	cfg.TLSCert, cfg.TLSKey, pair = papers(t, "server")
	h := serve(t, cfg)
	h.tls = &tls.Config{RootCAs: trusting(pair)}
	h.silence(2 * maxStrangers)
	for range 50 {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "\x16\x03\x01\x02"); err != nil { // half a header
			t.Fatal(err)
		}
	}
	p, _, err := h.dial(wire.SubMsgpack, bearing("player-of-the-test"))
	if err != nil {
		t.Fatal(err)
	}
	p.hello()
	p.must("ping")
	if status, _ := h.get("/healthz", ""); status != 200 {
		t.Errorf("healthz: %d", status)
	}
}
