package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/wire"
)

// nopListener is a listener with an address and nothing else.
type nopListener struct{ addr net.Addr }

func (nopListener) Accept() (net.Conn, error) { return nil, errors.New("no more connections") }
func (nopListener) Close() error              { return nil }
func (l nopListener) Addr() net.Addr          { return l.addr }

func TestThePagesBesideTheWebsocket(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Version, cfg.Commit = "1.2.3", "abc"
	h := serve(t, cfg)
	if status, body := h.get("/healthz", ""); status != 200 || body != "ok\n" {
		t.Errorf("healthz: %d %q", status, body)
	}
	if status, body := h.get("/readyz", ""); status != 200 || body != "ready\n" {
		t.Errorf("readyz: %d %q", status, body)
	}
	_, body := h.get("/v1/version", "")
	var version struct {
		Server struct{ Name, Version, Commit string }
		Proto  []int
	}
	if err := json.Unmarshal([]byte(body), &version); err != nil || version.Server.Version != "1.2.3" ||
		len(version.Proto) != 2 {
		t.Errorf("version: %v %s", err, body)
	}
	_, body = h.get("/v1/envs", "")
	var list struct {
		Envs []struct {
			ID    string
			SHA   string                 `json:"scenario_sha"`
			Obs   map[string]interface{} `json:"obs_space"`
			Act   map[string]interface{} `json:"act_space"`
			Steps int                    `json:"max_episode_steps"`
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Envs) != 1 {
		t.Fatalf("envs: %v %s", err, body)
	}
	if e := list.Envs[0]; e.ID != "Walk-v1" || e.SHA != "cafe" || e.Steps != 5 || e.Obs["t"] != "dict" ||
		e.Act["t"] != "discrete" {
		t.Errorf("envs: %s", body)
	}
	for path, want := range map[string]int{"/": 404, "/v1/ws": 400, "/v2/ws": 404} {
		if status, _ := h.get(path, ""); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}

func TestTheMetricsCountWhatHappens(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p := h.client()
	hd := p.open(3)
	for range 6 {
		p.must("step", "h", hd, "a", act(0, 3))
	}
	p.fails(wire.BadAction, "step", "h", hd, "a", act(9, 3))
	for name, want := range map[string]string{
		"clustergym_sessions":                        "1",
		"clustergym_sessions_parked":                 "0",
		"clustergym_handles":                         "1",
		"clustergym_envs":                            "3",
		"clustergym_requests_in_flight":              "0",
		"clustergym_episodes_total":                  "3",
		`clustergym_errors_total{code="bad_action"}`: "1",
		"clustergym_step_seconds_count":              "7",
		"clustergym_sessions_reaped_total":           "0",
		"clustergym_resumes_total":                   "0",
	} {
		if got := h.metric(name, ""); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{
		`clustergym_bytes_total{direction="in"}`, `clustergym_bytes_total{direction="out"}`, "clustergym_steps_total",
		"clustergym_resets_total",
		"clustergym_batch_envs_sum", "go_goroutines", "process_open_fds",
	} {
		if got := h.metric(name, ""); got == "0" || strings.HasPrefix(got, "no ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	p.must("close", "h", hd)
	if h.metric("clustergym_handles", "") != "0" || h.metric("clustergym_envs", "") != "0" {
		t.Error("closed handles are counted")
	}
}

func TestTokensOpenWhatTheirRoleAllows(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Tokens = []Token{{RoleRead, "reader"}, {RoleEnv, "player"}, {RoleAdmin, "boss"}, {RoleRead, "both"},
		{RoleEnv, "both"}}
	h := serve(t, cfg)
	for path, open := range map[string]string{
		"/healthz": "  reader player boss both wrong", "/readyz": "  reader player boss both wrong",
		"/v1/version": "  reader player boss both wrong", "/metrics": "reader boss both", "/v1/envs": "player boss both",
	} {
		for _, token := range []string{"", "reader", "player", "boss", "both", "wrong", "play", "player "} {
			status, _ := h.get(path, token)
			want := http.StatusForbidden
			switch trimmed := strings.TrimSpace(token); {
			case strings.HasPrefix(open, "  ") || trimmed != "" && strings.Contains(" "+open+" ", " "+trimmed+" "):
				want = http.StatusOK
			case token == "" || token == "wrong" || token == "play":
				want = http.StatusUnauthorized
			}
			if status != want {
				t.Errorf("%s with %q: %d, want %d", path, token, status, want)
			}
		}
	}
}

func TestEveryWrongTokenGetsTheSameAnswer(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Tokens = []Token{{RoleRead, "reader"}, {RoleEnv, "player"}}
	h := serve(t, cfg)
	upgrade := func(auth string) (int, string) {
		t.Helper()
		p, resp, err := h.dial(wire.SubMsgpack, http.Header{"Authorization": {auth}})
		if err == nil {
			p.hello()
			return resp.StatusCode, ""
		}
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	status, first := upgrade("Bearer x")
	if status != http.StatusUnauthorized {
		t.Fatalf("a wrong token: %d", status)
	}
	for _, auth := range []string{"Bearer ", "Bearer", "Basic player", "Bearer playe", "Bearer player2", "player",
		"Bearer " + strings.Repeat("a", 5000)} {
		if status, text := upgrade(auth); status != http.StatusUnauthorized || text != first {
			t.Errorf("%q: %d %q", auth, status, text)
		}
	}
	if status, _ := upgrade("Bearer reader"); status != http.StatusForbidden {
		t.Errorf("a reader: %d, want 403", status)
	}
	if status, _ := upgrade("bearer player"); status != http.StatusSwitchingProtocols {
		t.Errorf("the right token: %d", status)
	}
	// Without a header the token is in hello.
	hello := func(more ...any) string {
		t.Helper()
		p := h.connect()
		p.send(append(m("op", "hello", "id", 1, "proto", []any{1, 1}), m(more...)...))
		return p.closedWith(wire.CloseUnauthorized)
	}
	want := hello()
	for _, auth := range []string{"", "x", "playe", "Bearer player"} {
		if got := hello("auth", auth); got != want {
			t.Errorf("%q: %q, want %q", auth, got, want)
		}
	}
	hello("auth", "reader")
	h.client("auth", "player").must("ping")
}

func TestWebPagesOfOtherOriginsMayNotConnect(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.AllowOrigin = []string{"https://lab.example"}
	h := serve(t, cfg)
	for origin, want := range map[string]int{
		"https://lab.example": 101, "https://evil.example": 403, "http://lab.example": 403, "null": 403, "": 403,
		"https://lab.example.evil.example": 403, "http://" + h.addr: 403,
	} {
		_, resp, _ := h.dial(wire.SubMsgpack, http.Header{"Origin": {origin}})
		if resp == nil || resp.StatusCode != want {
			t.Errorf("origin %q: %v, want %d", origin, resp, want)
		}
	}
	cfg.AllowOrigin = []string{"*"}
	h = serve(t, cfg)
	if _, _, err := h.dial(wire.SubMsgpack, http.Header{"Origin": {"https://any.example"}}); err != nil {
		t.Errorf("any origin: %v", err)
	}
}

func TestTheServerPicksTheSubprotocol(t *testing.T) {
	t.Parallel()
	h := serve(t, quick())
	p, _, err := h.dial("", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.hello()
	p.must("ping")
	if _, resp, err := h.dial("gbp.v9.cbor", nil); err == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown subprotocol: %v, %v", resp, err)
	}
	if got := mustDial(t, h, http.Header{"Sec-WebSocket-Protocol": {"gbp.v1.json, x, gbp.v1.msgpack"}}); got !=
		wire.SubMsgpack {
		t.Errorf("it picks %q", got)
	}
}

func mustDial(t *testing.T, h *host, header http.Header) string {
	t.Helper()
	p, _, err := h.dial("", header)
	if err != nil {
		t.Fatal(err)
	}
	return p.ws.Subprotocol()
}

// papers writes a self-signed certificate for 127.0.0.1 and its key.
func papers(t *testing.T, name string) (cert, key string, pair tls.Certificate) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour),
		NotAfter:    now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	dir := t.TempDir()
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	for file, b := range map[string][]byte{cert: certPEM, key: keyPEM} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return cert, key, pair
}

func trusting(pair tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	leaf, _ := x509.ParseCertificate(pair.Certificate[0])
	pool.AddCert(leaf)
	return pool
}

func TestTheServerSpeaksTLS(t *testing.T) {
	t.Parallel()
	cfg := quick()
	var pair tls.Certificate
	cfg.TLSCert, cfg.TLSKey, pair = papers(t, "server")
	h := serve(t, cfg)
	h.tls = &tls.Config{RootCAs: trusting(pair), NextProtos: []string{"h2", "http/1.1"}}
	if status, _ := h.get("/healthz", ""); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	h.tls = &tls.Config{RootCAs: trusting(pair)}
	p := h.client()
	hd := p.open(500)
	p.must("step", "h", hd, "a", act(0, 500))
	// Clients fail that speak no TLS or do not trust the certificate.
	for name, cfg := range map[string]*tls.Config{"no TLS": nil, "no trust": {}} {
		h.tls = cfg
		if _, _, err := h.dial(wire.SubMsgpack, nil); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
	p.must("bye")
	p.closedWith(wire.CloseBye)
}

func TestTheServerAsksForClientCertificates(t *testing.T) {
	t.Parallel()
	cfg := quick()
	var pair tls.Certificate
	cfg.TLSCert, cfg.TLSKey, pair = papers(t, "server")
	ca, _, mine := papers(t, "client")
	_, _, foreign := papers(t, "stranger")
	cfg.ClientCA = ca
	h := serve(t, cfg)
	for name, c := range map[string]struct {
		certs []tls.Certificate
		ok    bool
	}{"none": {nil, false}, "a stranger's": {[]tls.Certificate{foreign}, false},
		"the right one": {[]tls.Certificate{mine}, true}} {
		h.tls = &tls.Config{RootCAs: trusting(pair), Certificates: c.certs}
		p, _, err := h.dial(wire.SubMsgpack, nil)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			p.hello()
		}
	}
}

func TestCertificatesThatCannotBeReadAreToldByFile(t *testing.T) {
	t.Parallel()
	cert, key, _ := papers(t, "server")
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for name, c := range map[string]struct{ cert, key, ca, want string }{
		"missing": {missing, key, "", missing}, "a key as certificate": {key, key, "", key},
		"missing CA":  {cert, key, missing, missing},
		"a key as CA": {cert, key, key, "holds no certificate"},
	} {
		cfg := quick()
		cfg.TLSCert, cfg.TLSKey, cfg.ClientCA = c.cert, c.key, c.ca
		if _, err := New(cfg, walks{&hooks{}}, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBeyondThisMachineSomethingMustGuardTheServer(t *testing.T) {
	t.Parallel()
	cert, key, _ := papers(t, "server")
	beyond := nopListener{&net.TCPAddr{IP: net.IPv4zero, Port: 1}}
	for name, c := range map[string]struct {
		l   net.Listener
		set func(*Config)
		ok  bool
	}{
		"this machine":  {nopListener{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}, nil, true},
		"this one too":  {nopListener{&net.TCPAddr{IP: net.IPv6loopback}}, nil, true},
		"nothing":       {beyond, nil, false},
		"only TLS":      {beyond, func(c *Config) { c.TLSCert, c.TLSKey = cert, key }, false},
		"IPv6":          {nopListener{&net.TCPAddr{IP: net.IPv6unspecified}}, nil, false},
		"a token":       {beyond, func(c *Config) { c.Tokens = []Token{{RoleEnv, "x"}} }, true},
		"certificates":  {beyond, func(c *Config) { c.TLSCert, c.TLSKey, c.ClientCA = cert, key, cert }, true},
		"at your peril": {beyond, func(c *Config) { c.Insecure = true }, true},
	} {
		cfg := quick()
		if c.set != nil {
			c.set(&cfg)
		}
		s, err := New(cfg, walks{&hooks{}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		err = s.Serve(t.Context(), c.l)
		if refused := err != nil && strings.Contains(err.Error(), "other machines"); refused == c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigFaultsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.TLSCert, cfg.MaxSessions, cfg.MaxInflight, cfg.StepTimeout, cfg.ResumeWindow = "x", 0, 5000, 0, -1
	cfg.Tokens, cfg.AllowOrigin = []Token{{0, "a"}, {RoleEnv, ""}},
		[]string{"https://fine.example", "https://page.example/"}
	err := cfg.Validate()
	for _, key := range []string{"tls_cert", "max_sessions", "max_inflight", "step_timeout", "resume_window", "tokens",
		"allow_origin"} {
		if err == nil || !strings.Contains(err.Error(), key+": got ") {
			t.Errorf("%s is not among %v", key, err)
		}
	}
}
