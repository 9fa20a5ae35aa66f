package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"clustergym/internal/ordinary"
)

// loadTLS reads the certificates of cfg. It returns nil if cfg has none.
func loadTLS(cfg *Config) (*tls.Config, error) {
	if cfg.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("server: certificate %s with key %s: %w", cfg.TLSCert, cfg.TLSKey, err)
	}
	t := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if cfg.ClientCA == "" {
		return t, nil
	}
	pem, err := ordinary.Read(cfg.ClientCA, ordinary.Settings)
	if err != nil {
		return nil, fmt.Errorf("server: client CA: %w", err)
	}
	t.ClientCAs = x509.NewCertPool()
	if !t.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("server: client CA %s holds no certificate in PEM", cfg.ClientCA)
	}
	t.ClientAuth = tls.RequireAndVerifyClientCert
	t.SessionTicketsDisabled = true // a ticket would outlive the authority that the client's certificate needs
	return t, nil
}
