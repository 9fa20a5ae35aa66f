package server

import (
	"crypto/tls"
	"errors"
	"slices"
)

// secrets is what Reload replaces.
type secrets struct {
	tokens []digest
	tls    *tls.Config // nil = none
}

// loadSecrets reads the files of cfg.
func loadSecrets(cfg *Config) (*secrets, error) {
	t, err := loadTLS(cfg)
	if err != nil {
		return nil, err
	}
	return &secrets{tokens: digests(cfg.Tokens), tls: t}, nil
}

// Reload replaces the tokens and reads the files of TLSCert, TLSKey and ClientCA again. It concerns new connections:
// those that are open stay, and so do their sessions, but a client that connects again, for example to resume, must
// show a token and a certificate that are valid then. After an error everything is as before. Snapshots that were
// signed before are still restored (key.go). A server cannot change between having tokens and having none.
func (s *Server) Reload(tokens []Token) error {
	cfg := s.cfg
	cfg.Tokens = tokens
	if (len(tokens) > 0) != (len(s.cfg.Tokens) > 0) {
		return errors.New("server: a server with tokens needs some after a reload, and one without takes none")
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	n, err := loadSecrets(&cfg)
	if err != nil {
		return err
	}
	if old := s.secrets.Swap(n); !slices.Equal(old.tokens, n.tokens) {
		s.rekey(tokens)
	}
	s.log.Info("reloaded", "tokens", len(n.tokens), "tls", n.tls != nil)
	return nil
}

// listenTLS returns the configuration of the listener, nil without TLS. Every handshake takes the newest certificates.
func (s *Server) listenTLS() *tls.Config {
	if s.secrets.Load().tls == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.secrets.Load().tls, nil },
	}
}
