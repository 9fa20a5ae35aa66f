package kube

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"clustergym/live"
)

// A server whose certificate nobody vouches for gets no token, and one that sends elsewhere is not followed.
func TestTokensGoToTheRightServerAlone(t *testing.T) {
	var tokens []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
	})
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	_, err = opened(t, Config{Server: s.URL, Token: "secret"}).Observe(ctx)
	if !errors.Is(err, live.ErrUnsupported) || !strings.Contains(err.Error(), "certificate authority") || len(tokens) > 0 {
		t.Errorf("%v, %d requests", err, len(tokens))
	}
	if _, err := opened(t, Config{Server: s.URL, CA: ca, ServerName: "example.com"}).Observe(ctx); !errors.Is(err,
		live.ErrDenied) {
		t.Errorf("without a certificate: %v, want ErrDenied", err)
	}
	with := Config{Server: s.URL, CA: ca, ServerName: "example.com", Cert: ca,
		Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
	if _, err := opened(t, with).Observe(ctx); !errors.Is(err, live.ErrUnsupported) ||
		!strings.Contains(err.Error(), "307") {
		t.Errorf("with a certificate, and a redirect: %v, want ErrUnsupported", err)
	}
	for name, cfg := range map[string]Config{"no certificate": {Server: s.URL, CA: []byte("x")},
		"client certificate": {Server: s.URL, Cert: []byte("x"), Key: []byte("y")}, "proxy": {Server: s.URL, Proxy: "::"}} {
		if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
