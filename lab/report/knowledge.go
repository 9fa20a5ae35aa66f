package report

import (
	"strings"

	"clustergym/simulator/sim"
)

// RungOf names the rung of estimates, "" if they are unset.
func RungOf(e sim.Estimates) string {
	if e.IsZero() {
		return ""
	}
	return e.Rung().String()
}

// EstimatesKey is what headers call the estimates.
const EstimatesKey = "estimates"

// EstimatesHeader is the line above a table of policies with these estimates, "" if they are unset.
func EstimatesHeader(e sim.Estimates) string {
	if e.IsZero() {
		return ""
	}
	return EstimatesKey + ": " + e.Label() + "\n"
}

// Knowledge is what one policy of a table knows of run times. Only policies that know the same can be compared, so a
// table names its estimates and their rung above it, and below it the policies that know something else.
type Knowledge struct {
	Name    string
	Nothing bool          // it does not ask for run times
	Knows   bool          // it knows the workload beforehand, whatever the estimates
	Trained sim.Estimates // the estimates with which the agent was trained; unset if the policy is no agent
}

// Shown returns the policy's name in a table with these estimates: with a mark if it knows something else.
func (r *Knowledge) Shown(e sim.Estimates) string {
	switch {
	case r.Knows && e.Rung() != sim.RungExact:
		return r.Name + " (" + sim.RungExact.String() + ")"
	case r.elsewhere(e):
		return r.Name + " (trained on " + r.Trained.String() + ")"
	}
	return r.Name
}

// elsewhere reports whether the agent was trained with other estimates.
func (r *Knowledge) elsewhere(e sim.Estimates) bool { return !r.Trained.IsZero() && r.Trained != e }

// Sentences says which policies of a table with these estimates ask nothing, so that they are the same on every rung,
// which know more, and which were trained on another rung.
func Sentences(e sim.Estimates, rows []Knowledge) []string {
	var nothing, all, trained []string
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Knows:
			all = append(all, r.Name)
		case r.Nothing:
			nothing = append(nothing, r.Name)
		case r.elsewhere(e):
			trained = append(trained, r.Name+" was trained on "+EstimatesKey+": "+r.Trained.Label()+".")
		}
	}
	var out []string
	add := func(names []string, one, several string) {
		switch n := len(names) - 1; {
		case n == 0:
			out = append(out, names[0]+one)
		case n > 0:
			out = append(out, strings.Join(names[:n], ", ")+" and "+names[n]+several)
		}
	}
	add(nothing, " asks nothing of run times.", " ask nothing of run times.")
	add(all, " knows the workload beforehand.", " know the workload beforehand.")
	return append(out, trained...)
}

// Below returns the sentences as lines below a text table.
func Below(e sim.Estimates, rows []Knowledge) string {
	var b strings.Builder
	for _, s := range Sentences(e, rows) {
		b.WriteString(Wrapped(s))
	}
	return b.String()
}

// width is how long lines below tables are.
const width = 110

// Wrapped returns a sentence in lines for below a text table.
func Wrapped(sentence string) string {
	var b strings.Builder
	at := 0
	for i, w := range strings.Fields(sentence) {
		switch {
		case i == 0:
		case at+1+len(w) > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += len(w)
	}
	return b.String() + "\n"
}
