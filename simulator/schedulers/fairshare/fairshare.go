// Package fairshare is Slurm's multi-factor priority with its classic fair share: what accounts have used, how it decays,
// and what priority that gives their jobs.
package fairshare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/grow"
	"clustergym/internal/nearest"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Priority are the settings of the priority. The zero value is Default.
type Priority struct {
	Age  float64 `yaml:"age"`  // weight of age: PriorityWeightAge
	Size float64 `yaml:"size"` // weight of size: PriorityWeightJobSize; below 0, small jobs first
	Fair float64 `yaml:"fair"` // weight of fair share: PriorityWeightFairshare
	// MaxAge is the wait at which the age counts fully: PriorityMaxAge.
	MaxAge time.Duration `yaml:"max_age"`
	// HalfLife is the time after which usage counts half: PriorityDecayHalfLife; 0 = it never decays.
	HalfLife time.Duration `yaml:"half_life"`
	// By says whose usage counts together: that of an "account" (or ""; a job without one is its user's), or of a "user".
	By string `yaml:"by,omitempty"`
	// Shares are those of accounts or users; one that is not named has share 1.
	Shares map[string]float64 `yaml:"shares,omitempty"`
}

// Default returns the times that slurm.conf has by default, seven days each, and the weights of the example in Slurm's
// documentation (Multifactor Priority Plugin, "Configuration"): age 1000, size 1000, fair share 10000. slurm.conf itself
// weighs nothing by default.
func Default() Priority {
	const week = 7 * 24 * time.Hour
	return Priority{Age: 1000, Size: 1000, Fair: 10000, MaxAge: week, HalfLife: week}
}

// IsZero reports whether nothing is set.
func (p Priority) IsZero() bool {
	return p.Age == 0 && p.Size == 0 && p.Fair == 0 && p.MaxAge == 0 && p.HalfLife == 0 && p.By == "" &&
		len(p.Shares) == 0
}

// Validate reports every fault.
func (p *Priority) Validate() error {
	var l fault.List
	if p.IsZero() {
		return nil
	}
	const heaviest = 1e9
	for _, w := range []struct {
		key string
		v   float64
	}{{"age", p.Age}, {"size", p.Size}, {"fair", p.Fair}} {
		l.Add(math.Abs(w.v) <= heaviest && (w.v >= 0 || w.key == "size"), w.key, w.v, "a weight of 0 to 1e9")
	}
	l.Add(p.MaxAge > 0, "max_age", p.MaxAge, "a time above 0s, as 168h: the wait at which the age counts fully")
	l.Add(p.HalfLife >= 0, "half_life", p.HalfLife, "a time, as 168h, or 0s where usage never decays")
	l.Add(slices.Contains([]string{"", "account", "user"}, p.By), "by", p.By,
		"account or user"+nearest.Meant(p.By, []string{"account", "user"}))
	for _, name := range slices.Sorted(maps.Keys(p.Shares)) {
		l.Add(p.Shares[name] > 0 && p.Shares[name] <= heaviest, fmt.Sprintf("shares.%s", name), p.Shares[name],
			"a share above 0")
	}
	return l.Err()
}

// Usage is what accounts have used so far, in GPU-seconds that decay: a GPU-second counts half after HalfLife. Running
// jobs count as far as they have run. It is not safe for concurrent use.
type Usage struct {
	p      Priority
	decay  float64 // ln 2 / HalfLife, per second; 0 = none
	index  map[string]int32
	share  []float64 // by account
	past   []float64 // of stints that have ended, at the time at
	factor []float64
	at     time.Duration
	of     []owner // by job
}

type owner struct {
	pos     int
	account int32
}

// New returns the usage of a run's accounts, none so far.
func New(p Priority) *Usage {
	if p.IsZero() {
		p = Default()
	}
	u := &Usage{p: p}
	if p.HalfLife > 0 {
		u.decay = math.Ln2 / p.HalfLife.Seconds()
	}
	u.Reset()
	return u
}

// Reset begins a run.
func (u *Usage) Reset() {
	u.index, u.at = map[string]int32{}, 0
	u.share, u.past, u.factor, u.of = u.share[:0], u.past[:0], u.factor[:0], u.of[:0]
}

// account returns the number of j's account.
func (u *Usage) account(v *sim.View, j sim.Job) int32 {
	o := grow.Or(&u.of, j, owner{pos: -1})
	if o.pos != v.Pos(j) {
		t := v.Trace(j)
		name := t.Group
		if name == "" || u.p.By == "user" {
			name = t.User
		}
		i, ok := u.index[name]
		if !ok {
			i = int32(len(u.index))
			u.index[name] = i
			share, given := u.p.Shares[name]
			if !given {
				share = 1
			}
			u.share, u.past, u.factor = append(u.share, share), append(u.past, 0), append(u.factor, 1)
		}
		*o = owner{v.Pos(j), i}
	}
	return o.account
}

// Submit makes the account of j known: shares are divided among those that are.
func (u *Usage) Submit(v *sim.View, j sim.Job) { u.account(v, j) }

// Before does nothing: ranks never change by themselves where running jobs stay.
func (*Usage) Before(*sim.View, []queue.Entry) (until int64) { return 0 }

// After counts the stints of jobs that were stopped.
func (u *Usage) After(v *sim.View, _, stopped []queue.Entry) {
	for _, e := range stopped {
		u.Learn(v, e.Job)
	}
}

// Learn counts the stint of j, which ends now.
func (u *Usage) Learn(v *sim.View, j sim.Job) {
	u.forward(v.Now())
	u.past[u.account(v, j)] += u.stint(v, j)
}

// forward lets past usage decay until now.
func (u *Usage) forward(now time.Duration) {
	if now > u.at && u.decay > 0 {
		left := math.Exp(-u.decay * (now - u.at).Seconds())
		for i := range u.past {
			u.past[i] *= left
		}
	}
	u.at = max(u.at, now)
}

// stint returns what j's current stint counts now, in GPU-seconds: each of them by its age.
func (u *Usage) stint(v *sim.View, j sim.Job) float64 {
	t := (v.Now() - v.Started(j)).Seconds()
	if u.decay > 0 {
		t = -math.Expm1(-u.decay*t) / u.decay
	}
	return t * float64(queue.Milli(v, j)) / 1000
}

// Prepare computes the fair-share factor of every account now: 2^(−U/S), where U is its part of all usage and S its part
// of all shares. Without any usage it is 1.
func (u *Usage) Prepare(v *sim.View) {
	u.forward(v.Now())
	copy(u.factor, u.past)
	for _, j := range v.Running() {
		u.factor[u.account(v, j)] += u.stint(v, j)
	}
	used, shares := 0.0, 0.0
	for i, f := range u.factor {
		used += f
		shares += u.share[i]
	}
	for i, f := range u.factor {
		if u.factor[i] = 1; used > 0 {
			u.factor[i] = math.Exp2(-f / used * shares / u.share[i])
		}
	}
}

// Of returns the priority of j, which waits, as of the last Prepare. The greatest goes first.
func (u *Usage) Of(v *sim.View, j sim.Job, on *cluster.Cluster) float64 {
	t := v.Trace(j)
	age := min(1, float64(v.Now()-t.Submit)/float64(u.p.MaxAge))
	size := float64(queue.Milli(v, j)) / 1000 / float64(max(1, on.Own()))
	return u.p.Age*age + u.p.Size*size + u.p.Fair*u.factor[u.account(v, j)]
}
