package run

import (
	"fmt"
	"strings"

	"clustergym/env/heuristic"
	"clustergym/experiments/envs"
)

// rival is one policy to compare with: a heuristic over the whole queue, a rule that acts through the action space, or a
// planner.
type rival struct {
	name    string // with its admission
	rule    *envs.Rule
	planner *envs.Planner
	sched   heuristic.Config // where neither is there
}

// randomPolicy is uniform play, the one policy that any environment can be compared with.
const randomPolicy = "random"

// slotsSuffix ends the names of rules in scheduling environments.
const slotsSuffix = "@slots"

// parseRival reads the name of a policy for the environment of d with settings s: in one of PolicyForms for an environment
// on the simulator, a planner or RULE@slots for the others over graphs and workers, random alone for a problem.
func parseRival(name string, d *envs.Descriptor, s envs.Settings) (rival, error) {
	if !d.Scheduling() {
		if r, ok := d.Rule(name); ok {
			return rival{name: name, rule: &r}, nil
		}
		return rival{}, fmt.Errorf("%s has no heuristics", d.ID)
	}
	estimates := ""
	if d.Simulated() {
		estimates = d.Cut(s).Estimates
	}
	if name, ok := strings.CutSuffix(name, slotsSuffix); ok {
		r, ok := d.Rule(name)
		if !ok {
			return rival{}, fmt.Errorf("rule %q is unknown, want one of %s", name, strings.Join(d.RuleNames(), ", "))
		}
		if estimates == "none" && r.Estimates {
			return rival{}, heuristic.Hidden(name)
		}
		return rival{name: name + slotsSuffix, rule: &r}, nil
	}
	if !d.Simulated() {
		var names []string
		for i := range d.Planners {
			if d.Planners[i].Name == name {
				return rival{name: name, planner: &d.Planners[i]}, nil
			}
			names = append(names, d.Planners[i].Name)
		}
		for _, r := range d.RuleNames() {
			names = append(names, r+slotsSuffix)
		}
		return rival{}, fmt.Errorf("policy %q is unknown, want one of %s", name, strings.Join(names, ", "))
	}
	p := rival{sched: heuristic.DefaultConfig()}
	var ok bool
	if p.sched.Order, p.sched.Admission, p.sched.Backfill, ok = heuristic.SplitName(name); !ok {
		return rival{}, fmt.Errorf("%q: want an order, then +strict or +skip, then +easy or +conservative, where wanted", name)
	}
	if place := d.Placement(s); place != "" {
		p.sched.Placement = place
	}
	if estimates != "none" {
		p.sched.Estimates = estimates
	}
	if err := p.sched.Validate(); err != nil {
		return rival{}, err
	}
	if estimates == "none" && p.sched.Estimating() {
		return rival{}, heuristic.Hidden(p.sched.Order)
	}
	// Policies play in the environment's own simulator, from its warm start on.
	if p.sched.Clairvoyant() || p.sched.Admission == "commit" {
		return rival{}, fmt.Errorf("%s can be played by gymctl sim only: it knows the whole workload beforehand, or has its own order of events", name)
	}
	p.name = p.sched.Name()
	return p, nil
}

// policyForms says in words how a policy of the environment can be named.
func policyForms(d *envs.Descriptor) string {
	switch {
	case d.Simulated():
		return PolicyForms
	case d.Scheduling():
		return "a planner or RULE@slots"
	}
	return randomPolicy
}
