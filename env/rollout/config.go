package rollout

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// Config holds the settings of a search.
type Config struct {
	Budget     Budget `yaml:"budget"`     // of one decision
	Candidates int    `yaml:"candidates"` // at most, the base's own choice and waiting included
	Ahead      int    `yaml:"ahead"`      // jobs that arrive in an imagined future
	// jobs that a rollout starts at most; those left are charged as if they flowed through the cluster in order
	Depth      int     `yaml:"depth"`
	Confidence float64 `yaml:"confidence"` // standard errors by which a candidate must be better than the base's choice
	// of the futures, in more than which a candidate must be better than the base's choice
	Share float64 `yaml:"share"`
	// where run times of jobs in the system are drawn from, if estimates are forecasts
	Lifetimes string `yaml:"lifetimes"`
	Objective string `yaml:"objective"` // jct or slowdown: what is minimised, the mean over jobs
}

// The objectives.
const (
	JCT      = "jct"      // completion time, in seconds
	Slowdown = "slowdown" // bounded slowdown: completion time over the run time, or over 10 s if that is more; at least 1
)

// DefaultConfig returns the settings that published results use.
func DefaultConfig() Config {
	return Config{Budget: Budget{Rollouts: 128}, Candidates: 6, Ahead: 64, Depth: 1024, Confidence: 2, Share: 0.5,
		Lifetimes: OfBest, Objective: JCT}
}

// IsZero reports whether c is the default, which files leave out.
func (c Config) IsZero() bool { return c == DefaultConfig() }

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Budget.valid(), "budget", c.Budget.String(), BudgetWanted)
	l.Add(c.Candidates >= 2 && c.Candidates <= 64, "candidates", c.Candidates, "2 to 64")
	l.Add(c.Ahead >= 1 && c.Ahead <= 4096, "ahead", c.Ahead, "1 to 4096 jobs")
	l.Add(c.Depth >= 1 && c.Depth <= 1<<20, "depth", c.Depth, "1 to 1048576 jobs")
	l.Add(c.Confidence >= 0 && c.Confidence <= 100, "confidence", c.Confidence, "0 to 100 standard errors")
	l.Add(c.Share >= 0 && c.Share < 1, "share", c.Share, "0 to below 1, of the futures")
	l.Add(slices.Contains(lifetimes, c.Lifetimes), "lifetimes", c.Lifetimes, nearest.OneOf(c.Lifetimes, lifetimes))
	l.Add(c.Objective == JCT || c.Objective == Slowdown, "objective", c.Objective,
		nearest.OneOf(c.Objective, []string{JCT, Slowdown}))
	return l.Err()
}

// Budget is what one decision may cost: a number of rollouts, or a time. One of them is 0.
type Budget struct {
	Rollouts int
	Time     time.Duration
}

// The bounds of a budget.
const (
	mostRollouts = 1_000_000
	leastTime    = 100 * time.Microsecond
	mostTime     = time.Hour
)

// BudgetWanted says in words what a budget can be.
const BudgetWanted = "a number of rollouts from 1 to 1000000, as 128, or a time from 100us to 1h, as 30ms"

// ParseBudget reads "128" or "30ms".
func ParseBudget(s string) (Budget, error) {
	var b Budget
	if n, err := strconv.Atoi(s); err == nil {
		b.Rollouts = n
	} else if b.Time, err = time.ParseDuration(s); err != nil {
		return Budget{}, fault.New("budget", s, BudgetWanted)
	}
	if !b.valid() {
		return Budget{}, fault.New("budget", s, BudgetWanted)
	}
	return b, nil
}

func (b Budget) valid() bool {
	if b.Time != 0 {
		return b.Rollouts == 0 && b.Time >= leastTime && b.Time <= mostTime
	}
	return b.Rollouts >= 1 && b.Rollouts <= mostRollouts
}

func (b Budget) String() string {
	if b.Time != 0 {
		return b.Time.String()
	}
	return strconv.Itoa(b.Rollouts)
}

// MarshalText implements encoding.TextMarshaler.
func (b Budget) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Budget) UnmarshalText(text []byte) error {
	got, err := ParseBudget(string(text))
	if err != nil {
		return errors.New("want " + BudgetWanted)
	}
	*b = got
	return nil
}
