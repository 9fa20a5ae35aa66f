package heuristic

import "strings"

// Forgets says what the policy remembers that Reset in the middle of a run would lose, so that it could decide otherwise from
// then on; "" if it looks at nothing but the state of the run. Such policies can continue runs that they have not seen, at any
// decision: call Reset, then Decide with a point that has no events.
func (c *Config) Forgets() string {
	r, own, _ := named(c.Order)
	switch {
	case own:
		return c.Order + " remembers what it has decided"
	case r.preemptive:
		return c.Order + " remembers which jobs it stops and starts at one time"
	case r.passOver:
		return c.Order + " remembers which jobs it has passed over"
	case c.admission() == "commit":
		return "admission commit remembers the job that it holds"
	case c.backfill() == "conservative":
		return "conservative back-filling remembers its reservations"
	case c.backfill() == "easy":
		return "easy back-filling remembers when it has expected running jobs to end"
	case strings.HasPrefix(c.Placement, lwfPrefix):
		return "placement " + c.Placement + " remembers when the jobs that it has placed end"
	case c.Placement == "random":
		return "placement random remembers how often it has drawn"
	case c.Placement == "fgd" && c.Given.Classes == nil:
		return "placement fgd remembers the requests that it has seen"
	}
	return ""
}

// Bases returns the orders that look at nothing but the state of the run (Forgets) and stop no running job: those that a search
// can play on from any state.
func Bases() []string {
	var names []string
	for _, r := range rules {
		c := DefaultConfig()
		if c.Order = r.name; c.Forgets() == "" {
			names = append(names, r.name)
		}
	}
	return names
}
