package policymix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/reward"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// The versions of the environment, as those of JobSelect.
const (
	ID = "PolicyMix-v2"
	V1 = "PolicyMix-v1"
)

// Policies returns the schedulers by action: orders over the whole queue, each with admission skip.
func Policies() []string { return []string{"fifo", "sjf", "smallest", "largest", "wfp3"} }

// Config holds the settings. A change of a default that changes returns gets a new version.
type Config struct {
	sched.Config `yaml:",inline"`

	Hold      time.Duration `yaml:"hold"`      // how long a choice holds at the least
	MaxGPUs   int           `yaml:"max_gpus"`  // larger jobs are left out of the workload
	Placement string        `yaml:"placement"` // which GPUs a job gets
	Comm      string        `yaml:"comm"`      // how its placement slows a gang down: none or tree
	Reward    string        `yaml:"reward"`    // see package reward
	WaitCost  float64       `yaml:"wait_cost"` // c of reward throughput
}

// OngoingConfig returns the default settings of version 2. Waiting is the part of a job's completion time that the
// schedule decides; comparisons count completion times.
func OngoingConfig() Config {
	c := DefaultConfig()
	c.Config, c.Reward = sched.OngoingConfig(ID), "wait"
	return c
}

// DefaultConfig returns the settings of version 1, which its published results use.
func DefaultConfig() Config {
	return Config{Config: sched.DefaultConfig(), Hold: time.Hour, MaxGPUs: 8, Placement: "closest-b", Comm: "tree",
		Reward: "jct", WaitCost: 2}
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Join("", c.Config.Validate())
	l.Add(c.Estimates.Known(), "estimates", c.Estimates.String(),
		"estimates, as two of the policies rank by them: trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA "+
			"from 0 to 10")
	l.Add(c.Hold > 0, "hold", c.Hold, "a time above 0s")
	l.Add(c.MaxGPUs >= 1 && c.MaxGPUs <= 1024, "max_gpus", c.MaxGPUs, "1 to 1024")
	l.Add(slices.Contains(sched.Placements(), c.Placement), "placement", c.Placement,
		nearest.OneOf(c.Placement, sched.Placements()))
	l.Add(c.Comm == "none" || c.Comm == "tree", "comm", c.Comm, "none or tree")
	l.Add(reward.Known(c.Reward), "reward", c.Reward, nearest.OneOf(c.Reward, reward.Names()))
	l.Add(c.Mode != sched.Ongoing || c.Reward != "makespan" && c.Reward != "utilisation", "reward", c.Reward,
		"jct, wait, slowdown, bsld or throughput: a cluster in operation has no makespan")
	l.Add(c.WaitCost >= 0 && c.WaitCost <= 1e6, "wait_cost", c.WaitCost, "0 to 1000000")
	return l.Err()
}

// New returns an environment over the windows w. Episodes without a Split are of part.
func New(cfg Config, spec cluster.Spec, w sched.Windows, part traces.Part) (*sched.Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	mix, err := profile.Named("topdrl-cnn") // JobSelect-v1's, so that the jobs are the same
	if err != nil {
		return nil, err
	}
	est := cfg.Estimates
	c, err := cluster.New(spec) // the encoder reads only what never changes
	if err != nil {
		return nil, err
	}
	m := &mixer{hold: cfg.Hold, last: -1}
	shown := &encoder{m: m, axis: encode.LogAxis()}
	shown.seen = encode.ForecastsOf(cfg.Forecast, est, c.GPUs())
	for _, order := range Policies() {
		h := schedulers.DefaultConfig()
		h.Order, h.Admission, h.Placement, h.Estimates = order, "skip", cfg.Placement, cfg.Estimates
		p, err := schedulers.New(h)
		if err != nil {
			return nil, err
		}
		m.policies = append(m.policies, p)
	}
	parts := sched.Parts{
		ID: cmp.Or(cfg.ID, V1), Sim: sim.Config{Comm: cfg.Comm}, Cluster: spec, Placement: cfg.Placement,
		Windows: w, Part: part, Models: &mix, MaxGPUs: cfg.MaxGPUs,
		Slots: &anything{m}, Actions: m, Encoder: shown,
	}
	if parts.Reward, err = reward.New(cfg.Reward, cfg.WaitCost); err != nil {
		return nil, err
	}
	if parts.Baseline, err = reward.New(cfg.Reward, cfg.WaitCost); err != nil {
		return nil, err
	}
	return sched.New(cfg.Config, parts)
}

// anything shows no jobs, only whether a choice has run out and some waiting job fits.
type anything struct{ m *mixer }

var _ sched.Slots = (*anything)(nil)

func (x *anything) Reset()                     { x.m.last, x.m.until, x.m.marked.on = -1, 0, false }
func (*anything) Add(*sched.State, sim.Job)    {}
func (*anything) Remove(*sched.State, sim.Job) {}

func (x *anything) Fill(s *sched.State) {
	s.Slots = s.Slots[:0]
	s.Fits = append(s.Fits[:0], s.View.Now() >= x.m.until && slices.ContainsFunc(s.View.Waiting(), s.View.Fits))
}

// mixer is Discrete(5): an action is the policy that acts for the next hold.
type mixer struct {
	policies []schedulers.Policy
	hold     time.Duration
	last     int // the policy that acted last, -1 = none yet
	until    time.Duration
	fresh    bool // it has not been reset since it was chosen
	marked   struct {
		on    bool
		last  int
		until time.Duration
	}
}

var (
	_ sched.Actions = (*mixer)(nil)
	_ sched.Pilot   = (*mixer)(nil)
	_ sched.Teller  = (*mixer)(nil)
	_ sched.Mindful = (*mixer)(nil)
)

func (m *mixer) Spec() env.ActionSpec { return env.ActionSpec{Sizes: []int{len(m.policies)}} }

func (m *mixer) NoOp() int { return -1 }

func (m *mixer) Mask(dst []bool, _ *sched.State) (legal int) {
	for i := range dst {
		dst[i] = true
	}
	return len(dst)
}

func (m *mixer) Decode(act env.Action, s *sched.State, d *sim.Decision) (bool, error) {
	m.last = int(act.Disc[0])
	if m.last >= len(m.policies) {
		return false, fmt.Errorf("policymix: policy %d of %d", m.last, len(m.policies))
	}
	m.until, m.fresh = sim.After(s.View.Now(), m.hold), true
	d.Op = sim.Wait
	return true, nil
}

// Looked implements sched.Mindful.
func (m *mixer) Looked(*sched.State) {}

// Mark implements sched.Mindful.
func (m *mixer) Mark() { m.marked.on, m.marked.last, m.marked.until = true, m.last, m.until }

// Back implements sched.Mindful.
func (m *mixer) Back() {
	if m.marked.on {
		m.marked.on, m.last, m.until = false, m.marked.last, m.marked.until
	}
}

// Keep implements sched.Mindful: the policy that was chosen decides as long as it holds.
func (m *mixer) Keep([]sim.Decision) { m.marked.on = false }

// Tell implements sched.Teller.
func (m *mixer) Tell() string {
	s := "Policies: " + strings.Join(Policies(), ", ")
	if m.last >= 0 {
		s = "Last policy: " + Policies()[m.last]
	}
	return s
}

// Pilot implements sched.Pilot. A policy decides until the next choice. Over facts it sees only moments, so it begins
// afresh at each, and no longer than its choice holds.
func (m *mixer) Pilot(s *sched.State) sim.Scheduler {
	if m.last < 0 || s.Facts && s.View.Now() >= m.until {
		return nil
	}
	p := m.policies[m.last]
	if m.fresh || s.Facts {
		p.Reset(s.View)
		m.fresh = false
	}
	return p
}

// Holds implements sched.Pilot.
func (m *mixer) Holds() bool { return true }

// encoder writes a summary of the queue, and which policy acted last.
type encoder struct {
	m    *mixer
	axis *encode.Axis
	seen *encode.Forecasts // nil = they are not shown
}

var _ sched.Encoder = (*encoder)(nil)

// The upper edges, inclusive, of the classes of waiting jobs.
var (
	times = [...]time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
	sizes = [...]float64{1, 4, 8}
)

const (
	timeClasses = len(times) + 1
	sizeClasses = len(sizes) + 1
)

func (e *encoder) Fields() []env.Field {
	fields := []env.Field{
		{Name: "global", Shape: []int{encode.GlobalLen}, High: 1, Unit: "fraction",
			Doc: "free share; C(running, G); C(backlog, 1024); min(1, backlog GPUs/4G); L(backlog e·n/G); L(since last " +
				"arrival); L(since last finish); mean rate of running jobs"},
		{Name: "last", Shape: []int{len(e.m.policies)}, High: 1, Unit: "one-hot",
			Doc: "the policy that acted last; nothing before the first choice"},
		{Name: "queue", Shape: []int{timeClasses, sizeClasses}, High: 1, Unit: "fraction",
			Doc: "C(jobs that wait, 256) by estimate (up to 1 min, 10 min, 1 h, 6 h, 1 d, more) and GPUs (1, 2–4, 5–8, more)"},
	}
	if e.seen != nil {
		fields = []env.Field{
			{Name: "forecast", Shape: []int{encode.ForecastLen}, High: 1, Unit: "fraction",
				Doc: "means over the jobs that wait; " + encode.ForecastDoc},
			fields[0],
			{Name: "held", Shape: []int{encode.HeldLen}, High: 1, Unit: "fraction", Doc: encode.HeldDoc},
			fields[1], fields[2],
		}
	}
	return fields
}

func (e *encoder) Reset(s *sched.State) {
	for _, p := range e.m.policies {
		p.Reseed(s.Seed) // all policies see the episode's estimates
	}
	e.seen.Reset()
}

func (e *encoder) Learn(s *sched.State, j sim.Job) {
	e.seen.Learn(s.View, j, s.Known[j].Estimate)
}

func (e *encoder) Encode(dst []float32, s *sched.State) {
	clear(dst)
	if e.seen != nil {
		e.seen.Count(s.View)
		e.seen.Mean(dst, s.View)
		dst = dst[encode.ForecastLen:]
	}
	encode.Global(dst[:encode.GlobalLen], s)
	dst = dst[encode.GlobalLen:]
	if e.seen != nil {
		e.seen.Held(dst, s.View, e.axis)
		dst = dst[encode.HeldLen:]
	}
	if e.m.last >= 0 {
		dst[e.m.last] = 1
	}
	dst = dst[len(e.m.policies):]
	var count [timeClasses * sizeClasses]int
	for _, j := range s.View.Waiting() {
		k := &s.Known[j]
		t, n := 0, 0
		for t < len(times) && k.Estimate > times[t] {
			t++
		}
		for n < len(sizes) && k.GPUs > sizes[n] {
			n++
		}
		count[t*sizeClasses+n]++
	}
	for i, n := range count {
		dst[i] = encode.C(float64(n), 256)
	}
}
