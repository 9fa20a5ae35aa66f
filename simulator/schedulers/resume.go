package schedulers

import (
	"slices"
	"strings"

	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/tuned"
)

// Forgets says what the policy remembers that Reset in the middle of a run would lose, so that it could decide
// otherwise from then on; "" if it looks at nothing but the state of the run. Such policies can continue runs that they
// have not seen, at any decision: call Reset, then Decide with a point that has no events. Where virtual clusters own
// nodes, ranks that the clock moves (wfp3, unicep, hold) are an exception: a virtual cluster looks at them at its own
// events, and after Reset at any point.
func (c *Config) Forgets() string {
	r, own, _ := named(c.Order)
	switch {
	case own && !stateless(c.Order):
		return c.Order + " remembers what it has decided"
	case r.preemptive:
		return c.Order + " remembers which jobs it stops and starts at one time"
	case r.name == fairShare.name:
		return r.name + " remembers what accounts have used"
	case r.passOver:
		return c.Order + " remembers which jobs it has passed over"
	case c.admission() == "commit":
		return "admission commit remembers the job that it holds"
	case c.backfill() == "conservative":
		return "conservative back-filling remembers its reservations"
	case c.backfill() == "easy":
		return "easy back-filling remembers when it has expected running jobs to end"
	case strings.HasPrefix(c.Placement, place.LWF):
		return "placement " + c.Placement + " remembers when the jobs that it has placed end"
	case c.Placement == "random":
		return "placement random remembers how often it has drawn"
	case c.Placement == "fgd" && c.Given.Classes == nil:
		return "placement fgd remembers the requests that it has seen"
	}
	return ""
}

// Bases returns the orders that look at nothing but the state of the run (Forgets) and stop no running job: those that
// a search can play on from any state.
func Bases() []string {
	var names []string
	for _, name := range Orders() {
		c := DefaultConfig()
		if c.Order = name; c.Forgets() == "" {
			names = append(names, name)
		}
	}
	return names
}

// stateless reports whether the policy called name, which is no order, looks at nothing but the state of the run.
func stateless(name string) bool {
	return slices.ContainsFunc(policies(), func(p policy) bool { return p.name == name && p.stateless })
}

// Passing returns the default configuration of an order, with admission skip unless the order has its own: what does
// not fit is passed over, as by a rule that chooses among slots.
func Passing(order string) Config {
	c := DefaultConfig()
	if _, own, _ := named(order); !own {
		c.Admission = "skip"
	}
	c.Order = order
	return c
}

// unheld returns a written order without start if.
func unheld(order string) string {
	w, err := policyname.ReadWritten(order)
	if err != nil {
		return order
	}
	return w.Without(policyname.StartIf).String()
}

// Line returns the policy that starts the first job in c's order that fits, whatever c's admission and back-filling.
func (c *Config) Line() Config {
	l := *c
	if policyname.IsWritten(c.Order) {
		l.Order = unheld(c.Order)
	}
	if l.Admission, l.Backfill = "skip", "none"; c.Order == "hold" {
		if l.Admission = ""; l.Hold.IsZero() {
			l.Hold = tuned.DefaultHold(c.Estimates)
		}
		l.Hold = l.Hold.Unheld()
	}
	return l
}
