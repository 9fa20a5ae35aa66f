package ranks

import (
	"context"
	"crypto/tls"
	"fmt"
	"runtime"
	"time"
)

// Config says which rank a process is, and how it finds the others.
type Config struct {
	Rank, World int
	// Rendezvous is HOST:PORT of rank 0, which listens there. At rank 0 port 0 picks one.
	Rendezvous string
	// Token is what the ranks of a group know and strangers do not. It is never sent. Empty = anybody may join.
	Token string
	// Build identifies the program: all ranks must have the same.
	Build string
	// Server is the certificate that this rank shows, and Client what it trusts; both nil = no encryption. Every
	// certificate is made out to the host of Rendezvous, also those of other ranks.
	Server, Client *tls.Config
	// Timeout is after how much silence a rank is lost.
	Timeout time.Duration
	// Patience is how long the rendezvous waits for ranks that have not come.
	Patience time.Duration
	// Say tells people what happens at the rendezvous; nil = nobody.
	Say func(format string, args ...any)
	// Listening is called at rank 0 with the address at which it listens; it may be nil.
	Listening func(addr string) error

	// find, if set, looks up Rendezvous at every attempt to reach rank 0.
	find  func(ctx context.Context) (string, error)
	arch  string // of tests
	small int    // of tests and measurements: see smallBytes
}

// DefaultConfig returns the usual times.
func DefaultConfig() Config { return Config{Timeout: 30 * time.Second, Patience: 5 * time.Minute} }

// most is the largest group.
const most = 1024

func (c *Config) validate() error {
	switch {
	case c.World < 1 || c.World > most:
		return fmt.Errorf("world: got %d ranks, want 1 to %d", c.World, most)
	case c.Rank < 0 || c.Rank >= c.World:
		return fmt.Errorf("rank: got %d, want a number from 0 to %d", c.Rank, c.World-1)
	case c.Timeout < 100*time.Millisecond:
		return fmt.Errorf("rank timeout: got %v, want 100ms or more", c.Timeout)
	case (c.Server == nil) != (c.Client == nil):
		return fmt.Errorf("TLS: every rank needs a certificate and what it trusts")
	}
	return nil
}

func (c *Config) architecture() string {
	if c.arch != "" {
		return c.arch
	}
	return runtime.GOARCH
}

// smallBytes is how much a rank gets at most in the sum of a small vector; what is larger is summed in pieces. Measured
// on loopback (docs/evidence/performance.md, "Ranks").
func (c *Config) smallBytes() int {
	if c.small > 0 {
		return c.small
	}
	return 1 << 17
}
