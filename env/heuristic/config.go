package heuristic

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/env/sim"
	"clustergym/internal/fault"
	spelling "clustergym/internal/nearest"
	"clustergym/traces"
)

// Config names one scheduler. A key whose default is not its zero value has no omitempty: it would be read back as the default.
type Config struct {
	Order     string        `yaml:"order"`     // see Orders
	Admission string        `yaml:"admission"` // "strict", "skip", "commit", or "" for the order's own: skip if it preempts, else strict
	Backfill  string        `yaml:"backfill"`  // "none" (or ""), "easy", "conservative": which jobs may start while the first in line waits
	Placement string        `yaml:"placement"` // see cluster.PlacementNames
	Estimates sim.Estimates `yaml:"estimates"` // what is known of run times
	// Limits are the attained service times at which LAS demotes a job to the next queue.
	Limits []time.Duration `yaml:"limits"`
	// Promote returns a job of las and las-2d to the first queue, with nothing attained, when it has waited this many
	// times as long as it has run (Tiresias' knob: 1, 2, 4, 8; see las); 0 = never.
	Promote float64 `yaml:"promote"`
	// Quantum is the service quantum of gittins-2d, in GPU-time.
	Quantum time.Duration `yaml:"quantum,omitempty"`
	// Service is the distribution of job GPU-times that gittins-2d uses; empty = learn it from jobs that finish. It
	// is not changed.
	Service []time.Duration `yaml:"-"`
	// Align is the weight of alignment against shortness in tetris, 0 to 1.
	Align float64 `yaml:"align"`
	// Round is the time between decisions of policies that work in rounds; 0 = the value of each policy's paper. If a
	// restart costs more than a round gains, jobs that take turns never end.
	Round time.Duration `yaml:"round,omitempty"`
	// Migrate is the time between gandiva's moves that bring gangs together; 0 = never.
	Migrate time.Duration `yaml:"migrate"`
	// RackWait is the number of leases for which a job of dally declines GPUs that are not inside a node, NetworkWait
	// the number for which it declines GPUs that are not inside a rack; 0 = never. They apply if Auto, which tunes
	// both, is off.
	RackWait    float64       `yaml:"rack_wait"`
	NetworkWait float64       `yaml:"nw_wait"`
	Auto        bool          `yaml:"auto"`
	Lease       time.Duration `yaml:"lease,omitempty"` // how long dally, delay-las and tiresias-lease grant GPUs for
	History     int           `yaml:"history"`         // number of past leases that dally's tuner looks at
	// Together makes leases end together, at whole multiples of Lease: the first one of a job is shorter.
	Together bool `yaml:"together,omitempty"`
	// Ask is the order in which dally asks jobs: "nw" (or ""), the network-sensitive one of its paper, or "las", the least
	// attained GPU-time first.
	Ask string `yaml:"ask,omitempty"`
	// Accept is the share of the rate at its best place that a job of delay-las waits for. It halves with every Patience
	// leases that the job has waited; Patience 0 = it never does.
	Accept   float64 `yaml:"accept"`
	Patience float64 `yaml:"patience"`
	// Hold are the weights of hold; zero = DefaultHold of the estimates.
	Hold Hold `yaml:"hold,omitempty"`
	// Index are the weights of index; zero = DefaultIndex of the estimates.
	Index Index `yaml:"index,omitempty"`
	// Given is the information that fgd and least-interference need.
	Given Given `yaml:"-"`
	// Workload is every job of the run. Only exact needs it, to plan with. It is not changed.
	Workload []traces.Job `yaml:"-"`
	Seed     uint64       `yaml:"seed,omitempty"` // for random orders and noisy estimates
}

// DefaultConfig returns FIFO strict with first-fit. The limits of LAS are those of Tiresias' simulator (3250 and 7200
// s).
func DefaultConfig() Config {
	return Config{
		Order: "fifo", Backfill: "none", Placement: "first-fit", Estimates: sim.Estimates{Mode: sim.EstimateExact},
		Limits: []time.Duration{3250 * time.Second, 7200 * time.Second}, Quantum: 3250 * time.Second, Align: 0.5,
		Migrate: 10 * time.Minute, RackWait: 5, NetworkWait: 10, Auto: true, Lease: time.Hour, History: 24,
		Accept: 0.9, Patience: 48,
	}
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(slices.Contains(Orders(), c.Order), "order", c.Order, spelling.OneOf(c.Order, Orders()))
	c.checkAdmission(&l)
	_, err := newPlacement(*c)
	l.Add(err == nil, "placement", c.Placement, spelling.OneOf(c.Placement, PlacementNames()))
	switch {
	case c.Estimates.IsZero():
		l.Add(false, "estimates", c.Estimates.String(), sim.EstimatesWanted)
	case !c.Estimates.Known() && c.Estimating():
		what := "order " + c.Order + " ranks by run times"
		switch {
		case Estimating(c.Order):
		case c.backfill() != "none":
			what = "back-filling looks at run times"
		default:
			what = "placement " + c.Placement + " looks at run times"
		}
		l.Add(false, "estimates", c.Estimates.String(), "trace, history, gbdt, exact or noisy:SIGMA, as "+what)
	}
	ok := len(c.Limits) <= 7
	for i, d := range c.Limits {
		ok = ok && d > 0 && (i == 0 || d > c.Limits[i-1])
	}
	l.Add(ok, "limits", fmt.Sprint(c.Limits), "at most 7 growing times above 0s")
	l.Add(c.Promote >= 0 && c.Promote <= 1e6, "promote", c.Promote, "a factor of 0 (never) or more")
	l.Add(c.Quantum > 0, "quantum", c.Quantum, "a time above 0s")
	l.Add(c.Round == 0 || c.Round >= time.Second, "round", c.Round, "a time of 1s or more, or 0s for the policy's own")
	l.Add(c.Migrate == 0 || c.Migrate >= time.Second, "migrate", c.Migrate, "a time of 1s or more, or 0s for never")
	l.Add(c.RackWait >= 0 && c.RackWait <= 1e6, "rack_wait", c.RackWait, "a number of leases, 0 to 1e6")
	l.Add(c.NetworkWait >= 0 && c.NetworkWait <= 1e6, "nw_wait", c.NetworkWait, "a number of leases, 0 to 1e6")
	l.Add(c.Lease == 0 || c.Lease >= time.Second, "lease", c.Lease, "a time of 1s or more, or 0s for an hour")
	l.Add(c.History >= 0 && c.History <= 1e6, "history", c.History, "a number of leases, 0 to 1e6")
	l.Add(c.Ask == "" || slices.Contains(Asks(), c.Ask), "ask", c.Ask, spelling.OneOf(c.Ask, Asks()))
	l.Add(c.Accept >= 0 && c.Accept <= 1, "accept", c.Accept, "a share of the best rate, 0 to 1")
	l.Add(c.Patience >= 0 && c.Patience <= 1e6, "patience", c.Patience, "a number of leases, 0 (never) to 1e6")
	l.Add(c.Align >= 0 && c.Align <= 1, "align", c.Align, "0 to 1")
	l.Join("hold", c.Hold.Validate())
	l.Join("index", c.Index.Validate())
	return l.Err()
}

// checkAdmission reports invalid combinations of order, admission and back-filling.
func (c *Config) checkAdmission(l *fault.List) {
	r, own, known := named(c.Order)
	l.Add(slices.Contains([]string{"", "strict", "skip", "commit"}, c.Admission), "admission", c.Admission, "strict, skip or commit")
	l.Add(slices.Contains([]string{"", "none", "easy", "conservative"}, c.Backfill), "backfill", c.Backfill, "none, easy or conservative")
	if !known {
		return
	}
	l.Add(c.Placement != rackSkewed || r.preemptive && !own, "placement", c.Placement, "a placement that refuses no job: only orders that stop running jobs, such as las-2d, go with "+rackSkewed)
	backfill := c.backfill()
	if own || r.passOver {
		l.Add(!own || c.Admission == "", "admission", c.Admission, "none: "+c.Order+" has its own")
		l.Add(own || c.Admission != "commit", "admission", c.Admission, "strict: "+c.Order+" has a pass of its own")
		l.Add(backfill == "none", "backfill", c.Backfill, "none: "+c.Order+" has a pass of its own")
		return
	}
	if r.preemptive {
		l.Add(c.Admission != "commit", "admission", c.Admission, "strict or skip: "+c.Order+" stops running jobs")
		l.Add(backfill == "none", "backfill", c.Backfill, "none: "+c.Order+" stops running jobs")
		return
	}
	switch backfill {
	case "easy":
		l.Add(c.admission() != "skip", "backfill", c.Backfill, "none with admission skip, which passes over what does not fit; easy goes with strict and commit")
	case "conservative":
		l.Add(c.admission() == "strict", "backfill", c.Backfill, "none with admission "+c.admission()+"; conservative goes with strict")
	}
}

// Name returns order, admission and back-filling together, the combination that papers call by one name: "sjf+skip",
// "fifo+strict+easy". For policies that are more than an order it returns their name.
func (c *Config) Name() string {
	_, own, _ := named(c.Order)
	switch {
	case own:
		return c.Order
	case c.backfill() != "none":
		return c.Order + "+" + c.admission() + "+" + c.backfill()
	}
	return c.Order + "+" + c.admission()
}

func (c *Config) admission() string {
	r, _, _ := named(c.Order)
	switch {
	case r.passOver:
		return "strict"
	case c.Admission != "":
		return c.Admission
	case r.preemptive:
		return "skip"
	}
	return "strict"
}

func (c *Config) backfill() string {
	if c.Backfill == "" {
		return "none"
	}
	return c.Backfill
}

// Estimating reports whether c ranks, back-fills or places by run time and so needs estimates.
func (c *Config) Estimating() bool {
	return c.backfill() != "none" || Estimating(c.Order) || strings.HasPrefix(c.Placement, lwfPrefix)
}

// Knows returns what the policy knows of run times where that does not follow from Estimates: everything, or nothing because
// it does not ask. own is false if it follows.
func (c *Config) Knows() (rung sim.Rung, own bool) {
	switch {
	case c.Clairvoyant():
		return sim.RungExact, true
	case !c.Estimating():
		return sim.RungNone, true
	}
	return 0, false
}

// Simulator sets what the policy needs of the simulator: admission commit reproduces RLScheduler's simulator, which
// handles one event at a time, arrivals first.
func (c *Config) Simulator(s *sim.Config) {
	if c.admission() == "commit" {
		s.Serial = true
	}
}
