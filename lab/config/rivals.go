package config

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/lab/envs"
	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// Rival is a policy that agents are compared with: a heuristic over the whole queue, a rule that acts through the
// action space, or a planner.
type Rival struct {
	Name    string // including its admission
	Rule    *envs.Rule
	Planner *envs.Planner
	Sched   schedulers.Config // the heuristic; used if Rule and Planner are nil
	// Rollout says how the heuristic looks ahead, or the rule; nil = it does not.
	Rollout *rollout.Config
	// Hindsight says that the schedule is searched with all jobs known, beginning with that of Sched.
	Hindsight bool
}

// Random is uniform play, the one policy that every environment has.
const Random = "random"

// ParseRival returns the policy called name for the environment of d with settings s, or says in one sentence why it
// cannot play there (Names).
//
// A policy that plays the simulator on does so as the default settings say; Config.Rival takes those of eval.rollout.
func ParseRival(name string, d *envs.Descriptor, s envs.Settings) (Rival, error) {
	return (&rivals{d: d, s: s, look: rollout.DefaultConfig()}).parse(name)
}

// Rival is ParseRival for a policy of c.
func (c *Config) Rival(name string) (Rival, error) { return c.rival(name, c.Descriptor()) }

func (c *Config) rival(name string, d *envs.Descriptor) (Rival, error) {
	hold := c.Eval.Hold
	if hold.IsZero() && d != nil && d.Ongoing {
		hold = tuned.SteadyHold(d.Cut(c.Env.Settings).Estimates)
	}
	r, err := (&rivals{d, c.Env.Settings, c.Eval.Rollout, hold, c.Eval.Index}).parse(name)
	r.Sched.Hold, r.Sched.Index = hold, c.Eval.Index
	return r, err
}

// Names resolves the names of policies in the environment of d with settings s: orders and rules for an environment on
// the simulator, planners and rules for the others over graphs and workers, random alone for a problem.
func Names(d *envs.Descriptor, s envs.Settings) *policyname.Resolver {
	return (&rivals{d: d, s: s, look: rollout.DefaultConfig()}).names()
}

// rivals makes the policies of one environment.
type rivals struct {
	d    *envs.Descriptor
	s    envs.Settings
	look rollout.Config
	// The weights of policies that have some; zero = the default ones.
	hold  tuned.Hold
	index tuned.Index
}

func (p *rivals) names() *policyname.Resolver {
	r := &policyname.Resolver{Rules: p.d.RuleNames(), Check: func(n policyname.Name) error {
		_, err := p.make(n)
		return err
	}}
	switch {
	case p.d.Simulated():
		r.Orders, r.Ahead = schedulers.Orders(), []policyname.Ahead{policyname.Rollout, policyname.Hindsight}
		r.Written = p.d.CheckWritten
	case p.d.Scheduling():
		for i := range p.d.Planners {
			r.Planners = append(r.Planners, p.d.Planners[i].Name)
		}
	default:
		r.Rules, r.Planners = nil, r.Rules
	}
	return r
}

func (p *rivals) parse(name string) (Rival, error) {
	n, err := p.names().Find(name)
	if err != nil {
		return Rival{}, err
	}
	return p.make(n)
}

func (p *rivals) make(n policyname.Name) (Rival, error) {
	switch {
	case n.Kind == policyname.Planner && p.d.Scheduling():
		i := slices.IndexFunc(p.d.Planners, func(x envs.Planner) bool { return x.Name == n.Base })
		return Rival{Name: n.Base, Planner: &p.d.Planners[i]}, nil
	case n.Kind == policyname.Queue:
		return p.queue(n)
	case n.Ahead == policyname.Hindsight:
		return Rival{}, fmt.Errorf("%s: %s does not see the whole queue; %s", n, n.Plain(), foreseeing)
	}
	if err := p.d.Cannot(n, p.s); err != nil {
		return Rival{}, err
	}
	if n.Ahead == policyname.Rollout {
		return p.lookingRule(n)
	}
	r, _ := p.d.Rule(n.Base)
	if held := n.Base == "hold" && !p.hold.IsZero(); held || n.Base == "index" && !p.index.IsZero() {
		r.Policy = func(e env.Env) (agents.Policy, error) {
			j, err := slotted(n, e)
			if err != nil {
				return nil, err
			}
			if held {
				return jobselect.NewHold(j, p.hold)
			}
			return jobselect.NewIndex(j, p.index)
		}
	}
	return Rival{Name: n.String(), Rule: &r}, nil
}

// lookingRule returns a rule that looks ahead through the slots of JobSelect-v1.
func (p *rivals) lookingRule(n policyname.Name) (Rival, error) {
	if !jobselect.Is(p.d.ID) {
		return Rival{}, fmt.Errorf("%s starts jobs of slots or waits, which %s does not; use an order, or %s", n, p.d.ID,
			jobselect.ID)
	}
	if r, _ := p.d.Rule(n.Base); r.Draws {
		return Rival{}, fmt.Errorf("%s: %s draws at random, so there is nothing to play on with", n, n.Base)
	}
	stops := slices.Contains(rollout.Stopping(), n.Base)
	if h := schedulers.Passing(n.Base); !stops {
		if err := rollout.CheckBase(&h); err != nil {
			return Rival{}, err
		}
	}
	// Instances share the futures of the workload that the first of them meets.
	var once sync.Once
	var futures *rollout.Recorded
	var fault error
	name := n
	name.Kind = policyname.Queue
	return Rival{Name: n.String(), Rollout: &p.look,
		Rule: &envs.Rule{Name: name.String(), About: n.Plain().String() + ", looking ahead", Estimates: true,
			Policy: func(e env.Env) (agents.Policy, error) {
				j, err := slotted(n, e)
				if err != nil {
					return nil, err
				}
				if once.Do(func() { futures, fault = rollout.RecordedOf(j) }); fault != nil {
					return nil, fault
				}
				setup := rollout.Setup{Config: p.look, Source: futures, Workers: 1, Clock: Clock(), Hold: p.hold}
				if !stops {
					return rollout.NewActor(setup, n.Base, j)
				}
				rule, err := jobselect.NewRule(n.Base, j)
				if err != nil {
					return nil, err
				}
				return rollout.NewStopper(setup, n.Base, rule, j)
			},
		}}, nil
}

// slotted returns e as an environment with slots, in which the policy called name acts.
func slotted(name policyname.Name, e env.Env) (*sched.Env, error) {
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

// queue returns a heuristic over the whole queue, which plays in the environment's own simulator, from its warm start
// on.
func (p *rivals) queue(n policyname.Name) (Rival, error) {
	r := Rival{Sched: schedulers.Named(n)}
	h := &r.Sched
	if place := p.d.Placement(p.s); place != "" {
		h.Placement = place
	}
	estimates := p.d.Cut(p.s).Estimates
	if estimates.Mode != sim.EstimateNone {
		h.Estimates = estimates
	}
	if err := h.Validate(); err != nil {
		return Rival{}, err
	}
	if estimates.Mode == sim.EstimateNone && h.Estimating() {
		return Rival{}, schedulers.Hidden(h.Order)
	}
	if h.Clairvoyant() || h.Admission == "commit" {
		return Rival{},
			fmt.Errorf(
				"%s can be played by gymctl sim only: it knows the whole workload beforehand, or has its own order of events",
				n.Plain())
	}
	r.Name = n.Ahead.String() + h.Name()
	switch n.Ahead {
	case policyname.Rollout:
		r.Rollout, h.Estimates = &p.look, estimates
		if err := rollout.CheckBase(h); err != nil {
			return Rival{}, err
		}
	case policyname.Hindsight:
		r.Hindsight = true
		if schedulers.Preemptive(h.Order) {
			return Rival{}, fmt.Errorf("%s: %s stops running jobs; %s", n, h.Order, foreseeing)
		}
		if _, err := cluster.NewPlacement(h.Placement); err != nil {
			return Rival{}, fmt.Errorf("%s: placement %s looks at running jobs; use one that does not, as closest-b", n,
				h.Placement)
		}
	}
	return r, nil
}

// foreseeing says what can know the whole window.
const foreseeing = "use an order over the whole queue that never stops a job, such as sjf+skip"

// FormsOf says in words how policies of the environment are named.
func FormsOf(d *envs.Descriptor) string { return Names(d, nil).Forms() }
