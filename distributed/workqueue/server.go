package workqueue

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/shortage"
)

// The limits of the server in the coordinator's process.
const (
	maxPayload  = 8 << 20 // of a message, in bytes
	maxConns    = 8192
	readyWithin = 30 * time.Second // for the server to read its files and listen
)

// mostConns returns how many connections there may be in a process that may open so many files: half of them. The
// queue's own files and the trainings of this process need the others. Connections that do not say who they are end
// after two seconds, and the server accepts again after a lack of descriptors.
func mostConns(files int) int { return max(16, min(maxConns, files/2)) }

// leastToken is the least length of a token.
const leastToken = 16

// ReadToken reads the token in a file: its only line, of 16 characters or more.
func ReadToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fault.Mistakef("token file: %w", err)
	}
	token := strings.TrimRight(string(data), "\r\n")
	st, err := os.Stat(path)
	if err != nil {
		return "", fault.Mistakef("token file: %w", err)
	}
	switch {
	case st.Mode().IsRegular() && st.Mode().Perm()&0o002 != 0:
		return "", fault.Mistakef("token file %s: everybody may write it; want chmod 600", path)
	case len(token) < leastToken:
		return "", fault.Mistakef("token file %s: got a token of %d characters, want %d or more", path, len(token),
			leastToken)
	case len(token) > 4096 || strings.ContainsAny(token, " \t\r\n\x00"):
		return "", fault.Mistakef("token file %s: want one line without spaces, of %d to 4096 characters", path, leastToken)
	}
	return token, nil
}

// NoToken returns the user's mistake that --listen has no token. An address of this machine alone is no protection:
// every user and every program here reaches it.
func NoToken(listen string) error {
	return fault.Mistakef("%s %s: everyone who reaches this address, and every user of this machine does if it is its "+
		"own, could send tasks to the workers; use %s FILE with a secret, made by "+
		"( umask 077; openssl rand -hex 32 > FILE )", fault.Key("listen"), listen, fault.Key("token-file"))
}

// host is a NATS server in this process.
type host struct {
	srv *server.Server
	own string // what the coordinator's own connection presents
}

// refusals says once for each worker that it was refused.
type refusals struct {
	mu   sync.Mutex
	told map[string]bool
	say  func(format string, args ...any)
}

func (r *refusals) tell(who, format string, args ...any) {
	r.mu.Lock()
	first := !r.told[who]
	if len(r.told) < 10000 { // what strangers may make us remember
		r.told[who] = true
	}
	r.mu.Unlock()
	if first {
		r.say(format, args...)
	}
}

// door checks the tokens of connections.
type door struct {
	own, token string
	refuse     *refusals
}

// Check implements server.Authentication.
func (d *door) Check(c server.ClientAuthentication) bool {
	got := c.GetOpts().Token
	if same(got, d.own) || d.token != "" && same(got, d.token) {
		return true
	}
	name, from := plain.Clip(c.GetOpts().Name, 80), "an unknown address"
	if a := c.RemoteAddress(); a != nil {
		from = a.String()
		if h, _, err := net.SplitHostPort(from); err == nil {
			from = h
		}
	}
	if name == "" {
		name = "a client without a name"
	} else {
		name = "worker " + name
	}
	what := "another token than the coordinator has"
	if got == "" {
		what = "no token"
	}
	d.refuse.tell("token "+name+from, "%s at %s is refused: it presents %s", name, from, what)
	return false
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// startHost starts a server that keeps its files in dir.
func startHost(opt *Options, refuse *refusals) (*host, error) {
	address, port, err := splitListen(opt.Listen)
	if err != nil {
		return nil, err
	}
	if opt.Token == "" {
		return nil, NoToken(opt.Listen)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	h := &host{own: rand.Text()}
	o := &server.Options{
		ServerName: "gymctl-" + opt.Job, Host: address, Port: port, NoLog: true, NoSigs: true, MaxPayload: maxPayload,
		MaxConn:   mostConns(shortage.MayOpen()),
		JetStream: true, StoreDir: opt.Dir, DisableJetStreamBanner: true, WriteDeadline: 10 * time.Second,
		CustomClientAuthentication: &door{own: h.own, token: opt.Token, refuse: refuse},
	}
	if opt.TLSCert != "" || opt.TLSKey != "" {
		if o.TLSConfig, err = serverTLS(opt.TLSCert, opt.TLSKey); err != nil {
			return nil, err
		}
		o.TLS, o.TLSTimeout = true, 5
	}
	// The server logs a fatal error instead of returning it, and would end the process for want of a logger.
	probe, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(max(0, port))))
	if err != nil {
		return nil, fault.Mistakef("%s %s: %w", fault.Key("listen"), opt.Listen, err)
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	if h.srv, err = server.NewServer(o); err != nil {
		return nil, fmt.Errorf("the queue's server: %w", err)
	}
	log := &faults{}
	h.srv.SetLoggerV2(log, false, false, false)
	h.srv.Start()
	if !h.srv.ReadyForConnections(readyWithin) || !h.srv.JetStreamEnabled() {
		h.srv.Shutdown()
		return nil, fmt.Errorf("the queue's server did not start in %s: %s", opt.Dir, log.last())
	}
	return h, nil
}

// faults keeps the last error that the server logged.
type faults struct {
	mu   sync.Mutex
	text string
}

func (f *faults) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text == "" {
		return "it gave no reason"
	}
	return f.text
}

// Errorf implements server.Logger.
func (f *faults) Errorf(format string, v ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = fmt.Sprintf(format, v...)
}

// Fatalf implements server.Logger.
func (f *faults) Fatalf(format string, v ...any) { f.Errorf(format, v...) }

// Warnf implements server.Logger.
func (f *faults) Warnf(string, ...any) {}

// Noticef implements server.Logger.
func (f *faults) Noticef(string, ...any) {}

// Debugf implements server.Logger.
func (f *faults) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (f *faults) Tracef(string, ...any) {}

// connected returns the names of the connections that are open.
func (h *host) connected() map[string]bool {
	names := map[string]bool{}
	list, err := h.srv.Connz(&server.ConnzOptions{Limit: maxConns})
	if err != nil {
		return nil
	}
	for _, c := range list.Conns {
		names[c.Name] = true
	}
	return names
}

// splitListen reads HOST:PORT.
func splitListen(text string) (address string, port int, err error) {
	address, p, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(p)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fault.Mistakef("%s: got %q, want HOST:PORT, as 0.0.0.0:7777 or 127.0.0.1:0", fault.Key("listen"), text)
	}
	if address == "" {
		address = "0.0.0.0"
	}
	return address, port, nil
}

func serverTLS(cert, key string) (*tls.Config, error) {
	if cert == "" || key == "" {
		return nil, fault.Mistakef("%s and %s go together", fault.Key("tls-cert"), fault.Key("tls-key"))
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fault.Mistakef("%s %s with %s %s: %w", fault.Key("tls-cert"), cert, fault.Key("tls-key"), key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// trust returns the options of a connection that trusts the authorities in a file.
func trust(ca string) ([]nats.Option, error) {
	if ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fault.Mistakef("%s: %w", fault.Key("tls-ca"), err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fault.Mistakef("%s %s: want a file with PEM certificates", fault.Key("tls-ca"), ca)
	}
	return []nats.Option{nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})}, nil
}

// address makes a URL out of what a user gave.
func address(text string) (string, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "nats", text
	}
	if scheme != "nats" && scheme != "tls" || rest == "" {
		return "", fault.Mistakef("address: got %q, want nats://HOST:PORT, tls://HOST:PORT or HOST:PORT", text)
	}
	return scheme + "://" + rest, nil
}

// connectErr makes a sentence of why a connection to a URL failed. It is a *fault.Mistake where another try would fail
// as
// well.
func connectErr(url string, err error) error {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired):
		return fault.Mistakef("%s refuses the token: want %s with the coordinator's token", url,
			fault.Key("token-file"))
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fault.Mistakef("%s has no TLS: want nats:// in place of tls://, without %s", url, fault.Key("tls-ca"))
	case errors.As(err, &authority), errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &verify):
		return fault.Mistakef("%s shows a certificate that is not trusted: %w; "+
			"want %s with the authority that signed it", url, err, fault.Key("tls-ca"))
	}
	return fmt.Errorf("%s cannot be reached: %w", url, err)
}
