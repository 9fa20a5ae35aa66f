package steer

import (
	"context"
	"time"

	"clustergym/live"
	"clustergym/ops/steer/mirror"
)

// The modes.
const (
	Shadow = "shadow" // nothing is written
	Rank   = "rank"   // the order of the queue is
	Gate   = "gate"   // jobs are held back and started
)

// Modes returns the modes.
func Modes() []string { return []string{Shadow, Rank, Gate} }

// Config says what is steered, how.
type Config struct {
	Cluster live.Cluster
	// Open returns the policy for a cluster; it is called again when the cluster has other nodes.
	Open   func(l mirror.Layout, s *live.Snapshot) (*Policy, error)
	Mirror mirror.Config
	Mode   string
	DryRun bool // nothing is written, and the log has what would be
	Clear  bool // ranks are taken back at the end

	Every     time.Duration // from the beginning of a cycle to that of the next
	Timeout   time.Duration // of one question to the cluster
	Think     time.Duration // what the policy has not decided after so long is left to the next cycle; 0 = half of Every
	MaxAge    time.Duration // nothing is written on observations that are older
	PerCycle  int           // writes of one cycle at most; 0 = any number
	PerMinute int           // writes of one minute at most; 0 = any number
	Top       int           // how many jobs have ranks at most
	Grace     time.Duration // after which a start that the cluster has not carried out is taken back

	// Lease is renewed every cycle, and nothing is written without; only for Rank and Gate, nil = there is no lease.
	// Guarded returns why no guard watches it; nil = one does.
	Lease *Lease
	Token string
	// Unleased says why there is no lease, which people hear when steering begins; "" = there is one, or nothing to say.
	Unleased string
	Guarded  func() error

	Log     *Log
	Begun   Begun // for the log
	Metrics *Metrics
	Note    func(text string) // says something to people; nil = nothing
	// Now is the clock by which Every, Grace and PerMinute go: the cluster's, where that is not ours. It runs Fast times
	// as fast as ours, by which Timeout, Think and MaxAge go; 0 = 1.
	Now    func() time.Time
	Fast   float64
	Wait   func(ctx context.Context, d time.Duration) error // nil = Sleep
	Cycles int                                              // end after so many; 0 = when the context ends
}

// DefaultConfig returns a shadow that looks every ten seconds.
func DefaultConfig() Config {
	return Config{
		Mode: Shadow, Every: 10 * time.Second, Timeout: 30 * time.Second, MaxAge: time.Minute, PerCycle: 500, PerMinute: 1500,
		Top:   2000,
		Grace: 2 * time.Minute, Wait: Sleep, Now: time.Now,
	}
}
