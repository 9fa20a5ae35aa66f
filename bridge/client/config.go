package client

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"clustergym/internal/fault"
)

// Config says how to reach a server and how long to wait for it. Zero durations and sizes mean those of DefaultConfig.
type Config struct {
	// URL of the server: ws://host:port or wss://host:port. The path defaults to /v1/ws; http and https mean ws and wss.
	URL string `yaml:"url"`
	// Token authenticates the client; empty = none.
	Token string `yaml:"token"`
	// Timeout bounds every call, if its context does not end earlier. It should be longer than the server's limit of
	// a step.
	Timeout time.Duration `yaml:"timeout"`
	// DialTimeout bounds one attempt to connect, up to the server's welcome.
	DialTimeout time.Duration `yaml:"dial_timeout"`
	// KeepAlive is the time between pings. If nothing comes for three times as long, not even the answer to a ping, the
	// client tries to resume the session over another connection, and keeps this one until that has succeeded.
	KeepAlive time.Duration `yaml:"keep_alive"`
	// Resume bounds how long the client tries to resume a lost connection; the server may allow less. Negative = never.
	Resume time.Duration `yaml:"resume"`
	// MaxFrame is the largest message accepted from the server, in bytes.
	MaxFrame int64 `yaml:"max_frame"`
}

// DefaultConfig returns the defaults: two minutes for an answer, two to resume a lost connection, ten seconds to
// connect, a ping every thirty seconds, messages of up to 64 MiB.
func DefaultConfig() Config {
	return Config{
		Timeout:     2 * time.Minute,
		DialTimeout: 10 * time.Second,
		KeepAlive:   30 * time.Second,
		Resume:      2 * time.Minute,
		MaxFrame:    64 << 20,
	}
}

// withDefaults returns c with the defaults in place of zeros.
func (c Config) withDefaults() Config {
	d := DefaultConfig()
	for _, p := range []struct{ v, def *time.Duration }{
		{&c.Timeout, &d.Timeout}, {&c.DialTimeout, &d.DialTimeout}, {&c.KeepAlive, &d.KeepAlive}, {&c.Resume, &d.Resume},
	} {
		if *p.v == 0 {
			*p.v = *p.def
		}
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = d.MaxFrame
	}
	return c
}

// Validate returns all faults of c at once.
func (c Config) Validate() error {
	var l fault.List
	_, err := c.address()
	l.Add(err == nil, "url", c.URL, "a URL as in ws://127.0.0.1:8765")
	l.Add(c.Timeout >= 0, "timeout", c.Timeout, "a time, or 0 for the default")
	l.Add(c.DialTimeout >= 0, "dial_timeout", c.DialTimeout, "a time, or 0 for the default")
	l.Add(c.KeepAlive >= 0, "keep_alive", c.KeepAlive, "a time, or 0 for the default")
	l.Add(c.MaxFrame >= 0, "max_frame", c.MaxFrame, "a number of bytes, or 0 for the default")
	return l.Err()
}

// address returns the URL of the websocket.
func (c Config) address() (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", err
	}
	switch u.Scheme {
	case "ws", "wss":
	case "http":
		u.Scheme = "ws"
	case "https":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("scheme %q", u.Scheme)
	}
	if u.Host == "" {
		return "", fmt.Errorf("no host")
	}
	if u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("secrets do not belong in a URL") // URLs end up in logs; Config.Token does not
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/ws"
	}
	return u.String(), nil
}

// Option sets what YAML, and so a Config, cannot hold.
type Option func(*Client)

// WithTLS sets how the client speaks TLS with wss URLs: the authorities that it trusts, the certificate that it shows.
func WithTLS(cfg *tls.Config) Option { return func(c *Client) { c.tls = cfg } }

// WithLogger makes the client log the server's notices and lost connections. By default it logs nothing.
func WithLogger(log *slog.Logger) Option { return func(c *Client) { c.log = log } }
