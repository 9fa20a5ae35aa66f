package config

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/experiments/envs"
	"clustergym/internal/nearest"
)

// Rival is a policy that agents are compared with: a heuristic over the whole queue, a rule that acts through the action
// space, or a planner.
type Rival struct {
	Name    string // including its admission
	Rule    *envs.Rule
	Planner *envs.Planner
	Sched   heuristic.Config // the heuristic; used if Rule and Planner are nil
	// Hindsight says that the schedule is searched with all jobs known, beginning with that of Sched.
	Hindsight bool
}

// hindsight begins the names of policies that know the whole window: hindsight:BASE.
const hindsight = "hindsight:"

// Prefixes returns what may stand before the name of a heuristic that acts on the simulator.
func Prefixes() []string { return []string{hindsight} }

// Random is uniform play, the one policy that every environment has.
const Random = "random"

// slotsSuffix ends the names of rules in scheduling environments.
const slotsSuffix = "@slots"

// ParseRival reads the name of a policy for the environment of d with settings s: in one of PolicyForms for an environment
// on the simulator, a planner or RULE@slots for the others over graphs and workers, random alone for a problem.
func ParseRival(name string, d *envs.Descriptor, s envs.Settings) (Rival, error) {
	if !d.Scheduling() {
		if r, ok := d.Rule(name); ok {
			return Rival{Name: name, Rule: &r}, nil
		}
		return Rival{}, fmt.Errorf("%s has no heuristics", d.ID)
	}
	if base, ok := strings.CutPrefix(name, hindsight); ok {
		return parseHindsight(base, d, s)
	}
	estimates := ""
	if d.Simulated() {
		estimates = d.Cut(s).Estimates
	}
	if name, ok := strings.CutSuffix(name, slotsSuffix); ok {
		r, ok := d.Rule(name)
		if near := nearest.Name(name, d.RuleNames()); !ok && near != "" {
			return Rival{}, fmt.Errorf("rule %q is unknown; did you mean %s?", name, near+slotsSuffix)
		} else if !ok {
			return Rival{}, fmt.Errorf("rule %q is unknown, want %s", name, nearest.OneOf(name, d.RuleNames()))
		}
		if estimates == "none" && r.Estimates {
			return Rival{}, heuristic.Hidden(name)
		}
		if r.Stops && !d.Stops(s) {
			return Rival{}, envs.CannotStop(name + slotsSuffix)
		}
		return Rival{Name: name + slotsSuffix, Rule: &r}, nil
	}
	if !d.Simulated() {
		var names []string
		for i := range d.Planners {
			if d.Planners[i].Name == name {
				return Rival{Name: name, Planner: &d.Planners[i]}, nil
			}
			names = append(names, d.Planners[i].Name)
		}
		for _, r := range d.RuleNames() {
			names = append(names, r+slotsSuffix)
		}
		return Rival{}, fmt.Errorf("policy %q is unknown, want %s", name, nearest.OneOf(name, names))
	}
	p := Rival{Sched: heuristic.DefaultConfig()}
	var ok bool
	if p.Sched.Order, p.Sched.Admission, p.Sched.Backfill, ok = heuristic.SplitName(name); !ok {
		if meant := suggested(name, d); meant != "" {
			return Rival{}, fmt.Errorf("%q is unknown%s", name, meant)
		}
		return Rival{}, fmt.Errorf("%q: want an order, then +strict or +skip, then +easy or +conservative, where wanted", name)
	}
	if place := d.Placement(s); place != "" {
		p.Sched.Placement = place
	}
	if estimates != "none" {
		p.Sched.Estimates = estimates
	}
	if err := p.Sched.Validate(); err != nil {
		if meant := suggested(name, d); meant != "" && !slices.Contains(heuristic.Orders(), p.Sched.Order) {
			return Rival{}, fmt.Errorf("%q is unknown%s", name, meant)
		}
		return Rival{}, err
	}
	if estimates == "none" && p.Sched.Estimating() {
		return Rival{}, heuristic.Hidden(p.Sched.Order)
	}
	// Policies play in the environment's own simulator, from its warm start on.
	if p.Sched.Clairvoyant() || p.Sched.Admission == "commit" {
		return Rival{}, fmt.Errorf("%s can be played by gymctl sim only: it knows the whole workload beforehand, or has its own order of events", name)
	}
	p.Name = p.Sched.Name()
	return p, nil
}

// parseHindsight reads what stands behind hindsight: a heuristic that never stops a running job.
func parseHindsight(base string, d *envs.Descriptor, s envs.Settings) (Rival, error) {
	const want = "want hindsight: and a heuristic over the whole queue that never stops a job, as hindsight:sjf+skip"
	if !d.Simulated() {
		return Rival{}, fmt.Errorf("%s%s: %s has no cluster to schedule on; leave it out", hindsight, base, d.ID)
	}
	r, err := ParseRival(base, d, s)
	if err != nil {
		return Rival{}, fmt.Errorf("%s%s: %w", hindsight, base, err)
	}
	switch {
	case r.Rule != nil || r.Hindsight:
		return Rival{}, fmt.Errorf("%s%s: %s does not see the whole queue; %s", hindsight, base, r.Name, want)
	case heuristic.Preemptive(r.Sched.Order):
		return Rival{}, fmt.Errorf("%s%s: %s stops running jobs; %s", hindsight, base, r.Sched.Order, want)
	}
	if _, err := cluster.NewPlacement(r.Sched.Placement); err != nil {
		return Rival{}, fmt.Errorf("%s%s: placement %s looks at running jobs; want one that does not, as closest-b", hindsight, base, r.Sched.Placement)
	}
	r.Name, r.Hindsight = hindsight+r.Name, true
	return r, nil
}

// suggested returns the end of a message that refuses a policy on the simulator: the rule or the heuristic that was probably
// meant, or "".
func suggested(name string, d *envs.Descriptor) string {
	if rule, suffix, ok := strings.Cut(name, "@"); ok {
		near := nearest.Name(rule, d.RuleNames())
		if near == "" || nearest.Name("@"+suffix, []string{slotsSuffix}) == "" {
			return ""
		}
		return "; did you mean " + near + slotsSuffix + "?"
	}
	return heuristic.Meant(name, heuristic.Orders())
}

// FormsOf says in words how policies of the environment are named.
func FormsOf(d *envs.Descriptor) string {
	switch {
	case d.Simulated():
		return PolicyForms
	case d.Scheduling():
		return "a planner or RULE@slots"
	}
	return Random
}
