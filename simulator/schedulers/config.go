package schedulers

import (
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	spelling "clustergym/internal/nearest"
	"clustergym/simulator/schedulers/attained"
	"clustergym/simulator/schedulers/delay"
	"clustergym/simulator/schedulers/fairshare"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/rounds"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Config names one scheduler. A key whose default is not its zero value has no omitempty: it would be read back as the
// default.
type Config struct {
	Order string `yaml:"order"` // see Orders
	// "strict", "skip", "commit", or "" for the order's own: skip if it preempts, else strict
	Admission string `yaml:"admission"`
	// "none" (or ""), "easy", "conservative": which jobs may start while the first in line waits
	Backfill        string        `yaml:"backfill"`
	Placement       string        `yaml:"placement"` // see cluster.PlacementNames
	Estimates       sim.Estimates `yaml:"estimates"` // what is known of run times
	attained.Levels `yaml:",inline"`
	// Align is the weight of alignment against shortness in tetris, 0 to 1.
	Align        float64 `yaml:"align"`
	rounds.Turns `yaml:",inline"`
	delay.Leases `yaml:",inline"`
	// Hold are the weights of hold; zero = DefaultHold of the estimates.
	Hold tuned.Hold `yaml:"hold,omitempty"`
	// Index are the weights of index; zero = DefaultIndex of the estimates.
	Index tuned.Index `yaml:"index,omitempty"`
	// Priority are the weights and times of fairshare; zero = Slurm's (fairshare.Default).
	Priority fairshare.Priority `yaml:"priority,omitempty"`
	// Given is the information that fgd and least-interference need.
	Given place.Given `yaml:"-"`
	// Workload is every job of the run. Only exact needs it, to plan with. It is not changed.
	Workload []traces.Job `yaml:"-"`
	Seed     uint64       `yaml:"seed,omitempty"` // for random orders and noisy estimates
}

// DefaultConfig returns FIFO strict with first-fit.
func DefaultConfig() Config {
	return Config{
		Order: "fifo", Backfill: "none", Placement: "first-fit", Estimates: sim.Estimates{Mode: sim.EstimateExact},
		Levels: attained.DefaultLevels(), Align: 0.5,
		Turns: rounds.Turns{Migrate: 10 * time.Minute}, Leases: delay.DefaultLeases(),
	}
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	r, _, known := named(c.Order)
	if !known {
		l.Add(false, "order", c.Order, whyUnknown(c.Order))
	}
	c.checkAdmission(&l)
	_, err := newPlacement(*c)
	l.Add(err == nil, "placement", c.Placement, spelling.OneOf(c.Placement, place.Names()))
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
	case r.beyond(c.Estimates):
		l.Add(false, "estimates", c.Estimates.String(), beyondWanted(c.Order))
	}
	c.Levels.Check(&l)
	c.Turns.Check(&l)
	c.Leases.Check(&l)
	l.Add(c.Align >= 0 && c.Align <= 1, "align", c.Align, "0 to 1")
	l.Join("hold", c.Hold.Validate())
	l.Join("index", c.Index.Validate())
	l.Join("priority", c.Priority.Validate())
	return l.Err()
}

// checkAdmission reports invalid combinations of order, admission and back-filling.
func (c *Config) checkAdmission(l *fault.List) {
	r, own, known := named(c.Order)
	l.Add(slices.Contains([]string{"", "strict", "skip", "commit"}, c.Admission), "admission", c.Admission,
		"strict, skip or commit")
	l.Add(slices.Contains([]string{"", "none", "easy", "conservative"}, c.Backfill), "backfill", c.Backfill,
		"none, easy or conservative")
	if !known {
		return
	}
	l.Add(c.Placement != place.RackSkewed || r.preemptive && !own, "placement", c.Placement,
		"a placement that refuses no job: only orders that stop running jobs, such as las-2d, go with "+place.RackSkewed)
	backfill := c.backfill()
	if own || r.passOver {
		l.Add(!own || c.Admission == "", "admission", c.Admission, "none: "+c.Order+" has its own")
		l.Add(own || c.Admission != "commit", "admission", c.Admission, "strict: "+c.Order+" has a pass of its own")
		l.Add(backfill == "none", "backfill", c.Backfill, "none: "+c.Order+" has a pass of its own")
		return
	}
	if r.written != nil && r.written.Holds() {
		l.Add(c.Admission != "commit", "admission", c.Admission, "strict or skip: start if holds jobs back")
		l.Add(backfill == "none", "backfill", c.Backfill, "none: a job that start if holds back gets no reservation")
	}
	if r.preemptive {
		l.Add(c.Admission != "commit", "admission", c.Admission, "strict or skip: "+c.Order+" stops running jobs")
		l.Add(backfill == "none", "backfill", c.Backfill, "none: "+c.Order+" stops running jobs")
		return
	}
	switch backfill {
	case "easy":
		l.Add(c.admission() != "skip", "backfill", c.Backfill,
			"none with admission skip, which passes over what does not fit; easy goes with strict and commit")
	case "conservative":
		l.Add(c.admission() == "strict", "backfill", c.Backfill,
			"none with admission "+c.admission()+"; conservative goes with strict")
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
	return c.backfill() != "none" || Estimating(c.Order) || strings.HasPrefix(c.Placement, place.LWF)
}

// Knows returns what the policy knows of run times where that does not follow from Estimates: everything, or nothing
// because it does not ask. own is false if it follows.
func (c *Config) Knows() (rung sim.Rung, own bool) {
	switch {
	case c.Clairvoyant():
		return sim.RungExact, true
	case !c.Estimating():
		return sim.RungNone, true
	}
	return 0, false
}

// estimates returns how run times are estimated, with the seed of noisy estimates.
func (c *Config) estimates() sim.Estimates {
	est := c.Estimates
	est.Seed = c.Seed
	return est
}

// newPlacement returns the placement that cfg names.
func newPlacement(cfg Config) (place.Placement, error) {
	return place.New(cfg.Placement, cfg.estimates(), cfg.Given)
}

// Simulator sets what the policy needs of the simulator: admission commit reproduces RLScheduler's simulator, which
// handles one event at a time, arrivals first.
func (c *Config) Simulator(s *sim.Config) {
	if c.admission() == "commit" {
		s.Serial = true
	}
}
