package client

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"clustergym/internal/fault"
)

// Config says how to reach a server and how long to wait for it. Zero durations and sizes are the defaults.
type Config struct {
	// URL of the server: ws://host:port or wss://host:port. The path is /v1/ws where none is given; http and https
	// are taken for ws and wss.
	URL string `yaml:"url"`
	// Token is shown to the server; empty = none.
	Token string `yaml:"token"`
	// Timeout bounds every call whose context has no earlier deadline. It should be longer than the server's own
	// limit of a step.
	Timeout time.Duration `yaml:"timeout"`
	// DialTimeout bounds one attempt to connect, up to the server's welcome.
	DialTimeout time.Duration `yaml:"dial_timeout"`
	// KeepAlive is the time between pings. A server that has sent nothing, not even an answer to a ping, for three
	// times as long is taken for gone.
	KeepAlive time.Duration `yaml:"keep_alive"`
	// Resume bounds how long a lost connection is tried to be taken up again; the server may allow less. Negative =
	// not at all.
	Resume time.Duration `yaml:"resume"`
	// MaxFrame is the largest message accepted, in bytes.
	MaxFrame int64 `yaml:"max_frame"`
}

// DefaultConfig waits two minutes for an answer and for a lost connection.
func DefaultConfig() Config {
	return Config{
		Timeout:     2 * time.Minute,
		DialTimeout: 10 * time.Second,
		KeepAlive:   30 * time.Second,
		Resume:      2 * time.Minute,
		MaxFrame:    64 << 20,
	}
}

// withDefaults fills in what is zero.
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

// Validate reports all faults at once.
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

// address is where the websocket is.
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
		return "", fmt.Errorf("secrets do not belong in a URL") // it ends up in logs; there is Config.Token
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/ws"
	}
	return u.String(), nil
}

// Option sets what a Config cannot hold.
type Option func(*Client)

// WithTLS sets the certificates for wss.
func WithTLS(cfg *tls.Config) Option { return func(c *Client) { c.tls = cfg } }

// WithLogger sets who hears of the server's notices and of lost connections; without it nobody does.
func WithLogger(log *slog.Logger) Option { return func(c *Client) { c.log = log } }
