package server

import (
	"net/url"
	"strconv"
	"time"

	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
	"clustergym/internal/fault"
)

// Config is the configuration of a Server.
type Config struct {
	// Tokens are the secrets that clients show. Without any, everyone who reaches the address may do everything but
	// drain.
	Tokens []Token `yaml:"-"`
	// TLSCert and TLSKey are PEM files; with both the server speaks only TLS. ClientCA is a PEM file of authorities:
	// clients must then show a certificate of one of them.
	TLSCert  string `yaml:"tls_cert"`
	TLSKey   string `yaml:"tls_key"`
	ClientCA string `yaml:"client_ca"`
	// AllowOrigin lists the web origins whose pages may connect, as "https://example.org"; "*" is all of them. Clients
	// other than browsers send no origin and need no entry.
	AllowOrigin []string `yaml:"allow_origin"`
	// Insecure allows listening beyond this machine without tokens and client certificates.
	Insecure bool `yaml:"insecure"`

	MaxSessions int `yaml:"max_sessions"`  // parked ones included
	MaxHandles  int `yaml:"max_handles"`   // of a session
	MaxEnvs     int `yaml:"max_envs"`      // of a handle
	MaxInflight int `yaml:"max_inflight"`  // unanswered requests of a handle
	MaxFrameIn  int `yaml:"max_frame_in"`  // bytes of a message that is received
	MaxFrameOut int `yaml:"max_frame_out"` // bytes of a message that is sent

	// Memory is how many bytes environments, workloads, replies and requests may take together; 0 = budget.Default. The
	// process takes up to half as much more, see budget.Limit.
	Memory int64 `yaml:"memory"`

	HelloTimeout time.Duration `yaml:"hello_timeout"` // from connecting to hello
	IdleTimeout  time.Duration `yaml:"idle_timeout"`  // without a byte received
	ResumeWindow time.Duration `yaml:"resume_window"` // how long a lost session waits for its client; 0 = it ends at once
	StepTimeout  time.Duration `yaml:"step_timeout"`  // of one request
	DrainTimeout time.Duration `yaml:"drain_timeout"` // for sessions to leave when the server is told to end
	PingInterval time.Duration `yaml:"ping_interval"` // of websocket pings; 0 = none
	WriteTimeout time.Duration `yaml:"write_timeout"` // of one message

	// Workers is the number of goroutines that step the environments of one handle; 0 lets the server choose. It
	// changes nothing but speed.
	Workers int `yaml:"workers"`

	// SharedMemory lets clients on this machine that run as the same user read large observations from memory instead
	// of receiving them. Linux only.
	SharedMemory bool `yaml:"shared_memory"`

	// Version and Commit name the program in the welcome and at /v1/version.
	Version string `yaml:"-"`
	Commit  string `yaml:"-"`
}

// leastMemory is the smallest budget: enough for a session with a small environment.
const leastMemory = 1 << 20

// Token is a secret and what its holder may do. Tokens with the same secret add up.
type Token struct {
	Role   Role
	Secret string
}

// DefaultConfig returns the defaults, for one machine: no tokens, no TLS.
func DefaultConfig() Config {
	return Config{
		MaxSessions: 256, MaxHandles: 64, MaxEnvs: 4096, MaxInflight: 4,
		MaxFrameIn: 16 << 20, MaxFrameOut: 64 << 20,
		HelloTimeout: 5 * time.Second, IdleTimeout: 15 * time.Minute, ResumeWindow: 2 * time.Minute,
		StepTimeout: time.Minute, DrainTimeout: 30 * time.Second, PingInterval: 30 * time.Second,
		WriteTimeout: 30 * time.Second, SharedMemory: true,
	}
}

// Validate returns all faults of c at once.
func (c Config) Validate() error {
	var l fault.List
	for i, t := range c.Tokens {
		l.Add(t.Role != 0 && t.Role < RoleAdmin<<1, "tokens", i, "a token with a role")
		l.Add(len(t.Secret) > 0, "tokens", i, "a token that is not empty")
	}
	for _, o := range c.AllowOrigin {
		u, err := url.Parse(o)
		l.Add(o == "*" || err == nil && u.Scheme != "" && u.Host != "" && u.Scheme+"://"+u.Host == o, "allow_origin", o,
			"an origin as browsers send it, as \"https://example.org\", or \"*\"")
	}
	l.Add((c.TLSCert == "") == (c.TLSKey == ""), "tls_cert", c.TLSCert, "a certificate and its key together")
	l.Add(c.ClientCA == "" || c.TLSCert != "", "client_ca", c.ClientCA,
		"client certificates only together with tls_cert and tls_key")
	const most = 1 << 30
	for _, f := range []struct {
		key        string
		got, least int
	}{
		{"max_sessions", c.MaxSessions, 1}, {"max_handles", c.MaxHandles, 1}, {"max_envs", c.MaxEnvs, 1},
		{"max_inflight", c.MaxInflight, 1}, {"max_frame_in", c.MaxFrameIn, 1 << 10},
		{"max_frame_out", c.MaxFrameOut, 1 << 10},
		{"workers", c.Workers, 0},
	} {
		l.Add(f.got >= f.least && f.got <= most, f.key, f.got,
			"a whole number from "+strconv.Itoa(f.least)+" to "+strconv.Itoa(most))
	}
	l.Add(c.Memory == 0 || c.Memory >= leastMemory, "memory", c.Memory,
		"a number of bytes from "+strconv.Itoa(leastMemory)+", or 0 for a share of the machine's")
	l.Add(c.MaxInflight <= 1<<10, "max_inflight", c.MaxInflight, "at most 1024 requests")
	for _, d := range []struct {
		key    string
		got    time.Duration
		mayBe0 bool
	}{
		{"hello_timeout", c.HelloTimeout, false}, {"idle_timeout", c.IdleTimeout, false},
		{"resume_window", c.ResumeWindow, true},
		{"step_timeout", c.StepTimeout, false}, {"drain_timeout", c.DrainTimeout, true},
		{"ping_interval", c.PingInterval, true},
		{"write_timeout", c.WriteTimeout, false},
	} {
		if d.mayBe0 {
			l.Add(d.got >= 0, d.key, d.got, "a time, or 0 for none")
		} else {
			l.Add(d.got > 0, d.key, d.got, "a time above 0")
		}
	}
	return l.Err()
}

// limits returns the limits of clients' messages.
func (c *Config) limits() wire.Limits { return wire.DefaultLimits() }

// handleLimits returns the limits that concern handles.
func (c *Config) handleLimits() handle.Limits {
	return handle.Limits{MaxEnvs: c.MaxEnvs, MaxFrameIn: c.MaxFrameIn, MaxFrameOut: c.MaxFrameOut, Workers: c.Workers}
}
