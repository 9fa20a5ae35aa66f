package config

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/env/sim"
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
	// Rollout says how the heuristic looks ahead, or the rule; nil = it does not.
	Rollout *rollout.Config
	// Hindsight says that the schedule is searched with all jobs known, beginning with that of Sched.
	Hindsight bool
}

// hindsight begins the names of policies that know the whole window: hindsight:BASE.
const hindsight = "hindsight:"

// Prefixes returns what may stand before the name of a heuristic that acts on the simulator.
func Prefixes() []string { return []string{hindsight, rollout.Prefix} }

// Random is uniform play, the one policy that every environment has.
const Random = "random"

// slotsSuffix ends the names of rules in scheduling environments.
const slotsSuffix = "@slots"

// ParseRival reads the name of a policy for the environment of d with settings s: in one of PolicyForms for an environment
// on the simulator, a planner or RULE@slots for the others over graphs and workers, random alone for a problem.
//
// A policy after rollout: looks ahead as the default settings say; Config.Rival takes those of eval.rollout.
func ParseRival(name string, d *envs.Descriptor, s envs.Settings) (Rival, error) {
	return parseRival(name, d, s, rollout.DefaultConfig(), weights{})
}

// Rival is ParseRival for a policy of c.
func (c *Config) Rival(name string) (Rival, error) { return c.rival(name, c.Descriptor()) }

func (c *Config) rival(name string, d *envs.Descriptor) (Rival, error) {
	r, err := parseRival(name, d, c.Env.Settings, c.Eval.Rollout, weights{c.Eval.Hold, c.Eval.Index})
	r.Sched.Hold, r.Sched.Index = c.Eval.Hold, c.Eval.Index
	return r, err
}

// weights are those of policies that have some; zero = the default ones.
type weights struct {
	hold  heuristic.Hold
	index heuristic.Index
}

// actor returns the maker of the rule called name with weights that are given, nil if none are.
func (w *weights) actor(name string) func(*sched.Env) (*sched.Actor, error) {
	switch {
	case name == "hold" && !w.hold.IsZero():
		return func(e *sched.Env) (*sched.Actor, error) { return jobselect.NewHold(e, w.hold) }
	case name == "index" && !w.index.IsZero():
		return func(e *sched.Env) (*sched.Actor, error) { return jobselect.NewIndex(e, w.index) }
	}
	return nil
}

func parseRival(name string, d *envs.Descriptor, s envs.Settings, look rollout.Config, given weights) (Rival, error) {
	base, ahead := rollout.Split(name)
	if !ahead {
		r, err := parsePlain(name, d, s)
		if make := given.actor(strings.TrimSuffix(name, slotsSuffix)); make != nil && r.Rule != nil {
			r.Rule.Policy = func(e env.Env) (agents.Policy, error) {
				j, err := slotted(name, e)
				if err != nil {
					return nil, err
				}
				return make(j)
			}
		}
		return r, err
	}
	if !d.Simulated() {
		return Rival{}, fmt.Errorf("%s has no simulator that could be looked ahead with", d.ID)
	}
	if slots, ok := strings.CutSuffix(base, slotsSuffix); ok {
		return lookingSlots(slots, d, s, look, given)
	}
	if strings.HasPrefix(base, rollout.Prefix) {
		return Rival{}, fmt.Errorf("%q looks ahead twice; want one %s", name, rollout.Prefix)
	}
	p, err := parsePlain(base, d, s)
	if err != nil {
		return p, err
	}
	if p.Hindsight {
		return Rival{}, fmt.Errorf("%q: %s knows the window already; want a heuristic, as rollout:sjf+skip", name, base)
	}
	p.Sched.Estimates = d.Cut(s).Estimates
	if err := rollout.CheckBase(&p.Sched); err != nil {
		return Rival{}, err
	}
	p.Name, p.Rollout = rollout.Prefix+p.Name, &look
	return p, nil
}

// lookingSlots returns the rule called base that looks ahead through the slots of JobSelect-v1.
func lookingSlots(base string, d *envs.Descriptor, s envs.Settings, look rollout.Config, given weights) (Rival, error) {
	name := rollout.Prefix + base + slotsSuffix
	if d.ID != jobselect.ID {
		return Rival{}, fmt.Errorf("%s starts jobs of slots or waits, which %s does not; want rollout:ORDER+ADMISSION, or %s", name, d.ID, jobselect.ID)
	}
	if _, err := parsePlain(base+slotsSuffix, d, s); err != nil {
		return Rival{}, err
	}
	if r, ok := d.Rule(base); ok && r.Draws {
		return Rival{}, fmt.Errorf("%s: %s draws at random, so there is nothing to play on with", name, base)
	}
	h := heuristic.Passing(base)
	h.Estimates = d.Cut(s).Estimates
	stops := slices.Contains(rollout.Stopping(), base)
	switch {
	case !stops:
		if err := rollout.CheckBase(&h); err != nil {
			return Rival{}, err
		}
	case !h.Estimates.Known():
		return Rival{}, fmt.Errorf("%s: %w", name, rollout.ErrBlind)
	}
	// Instances share the futures of the workload that the first of them meets.
	var once sync.Once
	var futures *rollout.Recorded
	var fault error
	return Rival{Name: name, Rollout: &look, Rule: &envs.Rule{Name: rollout.Prefix + base, About: base + "@slots, looking ahead", Estimates: true,
		Policy: func(e env.Env) (agents.Policy, error) {
			j, err := slotted(name, e)
			if err != nil {
				return nil, err
			}
			if once.Do(func() { futures, fault = rollout.RecordedOf(j) }); fault != nil {
				return nil, fault
			}
			setup := rollout.Setup{Config: look, Source: futures, Workers: 1, Clock: Clock(), Hold: given.hold}
			if !stops {
				return rollout.NewActor(setup, base, j)
			}
			rule, err := jobselect.NewRule(base, j)
			if err != nil {
				return nil, err
			}
			return rollout.NewStopper(setup, base, rule, j)
		},
	}}, nil
}

// slotted returns e as an environment with slots, in which the policy called name acts.
func slotted(name string, e env.Env) (*sched.Env, error) {
	j, ok := e.(*sched.Env)
	if !ok {
		return nil, fmt.Errorf("%s: an environment of type %T has no slots", name, e)
	}
	return j, nil
}

// Clock returns a clock that counts from now, for budgets of time.
func Clock() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// parsePlain is ParseRival for policies that do not look ahead.
func parsePlain(name string, d *envs.Descriptor, s envs.Settings) (Rival, error) {
	if !d.Scheduling() {
		if r, ok := d.Rule(name); ok {
			return Rival{Name: name, Rule: &r}, nil
		}
		return Rival{}, fmt.Errorf("%s has no heuristics", d.ID)
	}
	if base, ok := strings.CutPrefix(name, hindsight); ok {
		return parseHindsight(base, d, s)
	}
	var estimates sim.Estimates
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
		if r.Estimates && estimates.Mode == sim.EstimateNone {
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
	if estimates.Mode != sim.EstimateNone {
		p.Sched.Estimates = estimates
	}
	if err := p.Sched.Validate(); err != nil {
		if meant := suggested(name, d); meant != "" && !slices.Contains(heuristic.Orders(), p.Sched.Order) {
			return Rival{}, fmt.Errorf("%q is unknown%s", name, meant)
		}
		return Rival{}, err
	}
	if estimates.Mode == sim.EstimateNone && p.Sched.Estimating() {
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
	case r.Rule != nil || r.Hindsight || r.Rollout != nil:
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
