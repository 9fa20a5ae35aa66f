package ranks

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"clustergym/internal/ordinary"
)

// ReadTLS returns what a rank shows and what it trusts. cert, key and ca are PEM files; without ca a rank trusts the
// authorities of its system.
func ReadTLS(cert, key, ca string) (server, client *tls.Config, err error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
	}
	client = &tls.Config{MinVersion: tls.VersionTLS13}
	if ca != "" {
		pem, err := ordinary.Read(ca, ordinary.Settings)
		if err != nil {
			return nil, nil, fmt.Errorf("authorities: %w", err)
		}
		client.RootCAs = x509.NewCertPool()
		if !client.RootCAs.AppendCertsFromPEM(pem) {
			return nil, nil, fmt.Errorf("authorities %s: want a file with PEM certificates", ca)
		}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, client, nil
}

// Loopback reports whether HOST:PORT can be reached from this machine alone.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
