package report

import (
	"clustergym/lab/envs"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
)

// stopsMark stands behind the names of policies that stop running jobs.
const stopsMark = " (stops jobs)"

// FreeStops is Assumptions.Stops where a job that is stopped continues later as if nothing had happened.
const FreeStops = "stops are free"

// StopsJobs reports whether a policy of a comparison in the environment called env stops running jobs: an order over
// the whole queue, a rule of the environment, or a search on top of either. Agents may where the assumptions name a
// price.
func StopsJobs(env, kind, name string) bool {
	base := policyname.Of(name).Base
	switch kind {
	case "heuristic":
		return schedulers.Preemptive(base)
	case "slots":
		if d := envs.Find(env); d != nil {
			r, ok := d.Rule(base)
			return ok && r.Stops
		}
	}
	return false
}

// Marked returns what a table shows of a policy called name: shown, with a mark if it stops running jobs.
func Marked(env, kind, name, shown string) string {
	if StopsJobs(env, kind, name) {
		return shown + stopsMark
	}
	return shown
}

// stopsLine is the line above a table of windows about what a stop costs, "" if no policy stops jobs or it is unknown.
func (r *Report) stopsLine() string {
	if r.Stops == "" {
		return ""
	}
	return Wrapped("assumed: " + r.Stops)
}

// Assumed says in one line what the comparison rests on, for above its table, where the estimates stand too.
func (r *StreamReport) Assumed() string {
	a := &r.Assumptions
	return "assumed: placement " + a.Placement + "; communication " + a.Communication + "; " + a.Stops +
		"; use and load simulated"
}
