package delayoffer

import (
	"fmt"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/reward"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/delay"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// The actions.
const (
	Decline = iota
	Accept
)

// Env is the environment. Agents' gangs run under leases: when a lease ends, the gang takes part in the offers again.
// Schedulers in the agent's place (Simulate) play without leases unless they have their own, as the policy dally has.
// Not safe for concurrent use.
type Env struct {
	*sched.Env
	offers *offers
}

// New returns an environment of version 1 over the windows w. Episodes without a Split are of part.
func New(cfg Config, spec cluster.Spec, w sched.Windows, part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o, parts, err := assembly(cfg, spec)
	if err != nil {
		return nil, err
	}
	x := &inTime{cfg: &o.cfg}
	if cfg.Relative {
		if x.base, err = newBaseline(&cfg, spec); err != nil {
			return nil, err
		}
	}
	parts.ID, parts.Windows, parts.Part, parts.Cold, parts.Score = V1, w, part, true, x
	return o.assemble(cfg.common(), parts)
}

// NewOngoing returns an environment of version 2 over the windows w. Episodes without a Split are of part. The rule
// that makes the offers plays the warm-up by its timers, so it knows the leases and delays of the time before.
func NewOngoing(cfg Ongoing, spec cluster.Spec, w sched.Windows, part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o, parts, err := assembly(cfg.Config, spec)
	if err != nil {
		return nil, err
	}
	parts.ID, parts.Windows, parts.Part, parts.Warm = ID, w, part, o.rule
	if parts.Rival, err = schedulers.NewDelay(cfg.Heuristic()); err != nil {
		return nil, err
	}
	if parts.Reward, err = reward.New(cfg.Reward, 0); err != nil {
		return nil, err
	}
	if parts.Baseline, err = reward.New(cfg.Reward, 0); err != nil {
		return nil, err
	}
	common := cfg.common()
	if common.Warm = cfg.Warm; cfg.Relative {
		common.Relative = "fifo" // which is parts.Rival
	}
	return o.assemble(common, parts)
}

// common returns the settings that other environments have too.
func (c *Config) common() sched.Config {
	s := sched.DefaultConfig()
	s.Gamma, s.Tau, s.Window, s.Warm, s.Load = c.Gamma, c.Tau, c.Window, 0, c.Load
	s.MaxSteps, s.Estimates, s.Forecast, s.Mode = c.MaxSteps, c.Estimates, c.Forecast, c.Mode
	return s
}

// assemble returns the environment of o.
func (o *offers) assemble(common sched.Config, parts sched.Parts) (*Env, error) {
	e, err := sched.New(common, parts)
	if err != nil {
		return nil, err
	}
	o.view = e.View()
	return &Env{e, o}, nil
}

// assembly returns what both versions have: the offers, and the parts but for windows and what is paid.
func assembly(cfg Config, spec cluster.Spec) (*offers, sched.Parts, error) {
	est := cfg.Estimates
	none := sched.Parts{}
	c, err := cluster.New(spec)
	if err != nil {
		return nil, none, err
	}
	if c.Pool() {
		return nil, none, fmt.Errorf("%s: on a counter of %d GPUs nothing lies near or far; want a cluster of nodes", V1,
			c.GPUs())
	}
	o := &offers{cfg: cfg, est: est, shown: newEncoder(c, cfg.Comm)}
	if o.rule, err = schedulers.NewDelay(cfg.Heuristic()); err != nil {
		return nil, none, err
	}
	o.shown.seen = encode.ForecastsOf(cfg.Forecast, est, c.GPUs())
	return o, sched.Parts{
		Sim: cfg.Simulator(), Cluster: spec, Redraw: "delayoffer/redraw",
		Undecided: "no job of %s is ever offered more than a node; want larger jobs, longer windows, a higher load, or a " +
			"smaller cluster of several nodes",
		Slots: o, Actions: o, Encoder: observer{o},
	}, nil
}

// Offer returns the offer that the agent is asked about, nil before the first and after the last. It belongs to the
// environment.
func (e *Env) Offer() *delay.Offer { return e.offers.offer }

// Timely returns the policy dally's answer to the offer.
func (e *Env) Timely() int32 { return e.offers.timely() }

// offers are the pass of the current point: slots, actions and pilot of the environment. The rule remembers answers:
// over facts it is marked before the pass of a point, and goes back unless the answers are kept.
type offers struct {
	cfg    Config
	est    sim.Estimates
	view   *sim.View
	rule   *delay.Delay
	offer  *delay.Offer // that the agent is asked about, nil = none
	shown  encoder
	moment int // the pass is that of this moment

	open bool   // the pass of the current point has begun
	over bool   // over facts: what follows from the answers has been imagined
	kept bool   // and is kept
	own  []bool // by job: its start was imagined and kept, so the rule has counted its delay
}

var (
	_ sched.Slots   = (*offers)(nil)
	_ sched.Actions = (*offers)(nil)
	_ sched.Pilot   = (*offers)(nil)
	_ sched.Mindful = (*offers)(nil)
	_ sched.Hider   = (*offers)(nil)
	_ sched.Teller  = (*offers)(nil)
	_ sched.Asker   = (*offers)(nil)
	_ sched.Encoder = observer{}
)

// Reset implements sched.Slots.
func (o *offers) Reset() {
	o.rule.Reset(o.view)
	o.offer, o.open, o.over, o.kept = nil, false, false, false
}

// Add implements sched.Slots: the rule sees the queue itself.
func (*offers) Add(*sched.State, sim.Job) {}

// Remove implements sched.Slots.
func (*offers) Remove(*sched.State, sim.Job) {}

// Fill implements sched.Slots: the job that is asked.
func (o *offers) Fill(s *sched.State) {
	if o.moment != s.Moment && !s.Facts {
		o.moment, o.open = s.Moment, false
	}
	if s.View.Over() {
		o.open, o.offer = true, nil
	}
	o.pass(s)
	o.ask(s)
}

// pass begins the pass of the current point, if it has not begun.
func (o *offers) pass(s *sched.State) {
	if o.open {
		return
	}
	if s.Facts {
		o.rule.Mark()
	}
	o.rule.Open(o.view, s.Point)
	o.offer, o.open = o.rule.Next(o.view), true
}

// ask shows the offer.
func (o *offers) ask(s *sched.State) {
	s.Slots, s.Fits, s.Picked = s.Slots[:0], s.Fits[:0], s.Picked[:0]
	if o.offer != nil {
		s.Slots, s.Fits, s.Picked = append(s.Slots, o.offer.Job), append(s.Fits, true), append(s.Picked, o.offer.GPUs...)
	}
}

// Spec implements sched.Actions.
func (*offers) Spec() env.ActionSpec { return env.ActionSpec{Sizes: []int{2}} }

// NoOp implements sched.Actions.
func (*offers) NoOp() int { return -1 }

// Mask implements sched.Actions.
func (o *offers) Mask(dst []bool, _ *sched.State) (legal int) {
	dst[Accept] = true
	if dst[Decline] = o.offer == nil || !o.rule.Forced(o.view); dst[Decline] {
		return 2
	}
	return 1
}

// Decode implements sched.Actions: after the answer to the last offer of a point the rule decides.
func (o *offers) Decode(a env.Action, s *sched.State, _ *sim.Decision) (bool, error) {
	if o.offer == nil {
		return false, fmt.Errorf("%w: %s: there is no offer to answer", env.ErrIllegalAction, V1)
	}
	o.answer(s, a.Disc[0] == Accept)
	return o.offer == nil, nil
}

// answer answers the offer and turns to the next.
func (o *offers) answer(s *sched.State, accept bool) {
	o.rule.Answer(o.view, accept)
	o.offer = o.rule.Next(o.view)
	o.ask(s)
}

// Pilot implements sched.Pilot: offers of a machine are accepted without asking.
func (o *offers) Pilot(s *sched.State) sim.Scheduler {
	if o.pass(s); o.offer != nil || o.over {
		return nil
	}
	o.over = s.Facts
	return o.rule
}

// Holds implements sched.Pilot.
func (*offers) Holds() bool { return true }

// Looked implements sched.Mindful: the delays of jobs that another scheduler has started count.
func (o *offers) Looked(s *sched.State) {
	for i := range s.Point.Events {
		switch ev := &s.Point.Events[i]; ev.Kind {
		case sim.Submit:
			for int(ev.Job) >= len(o.own) {
				o.own = append(o.own, false)
			}
			o.own[ev.Job] = false
		case sim.Start:
			if !o.own[ev.Job] {
				o.rule.Took(o.view, ev.Job, ev.At, ev.GPUs)
			}
			o.own[ev.Job] = false
		}
	}
	o.rule.Note(o.view, s.Point)
	o.open, o.over, o.kept = false, false, false
}

// Mark implements sched.Mindful: the rule is marked when the pass begins.
func (*offers) Mark() {}

// Back implements sched.Mindful.
func (o *offers) Back() {
	if o.open && !o.kept {
		o.rule.Back()
		o.open, o.over, o.offer = false, false, nil
	}
}

// Keep implements sched.Mindful: answers are kept once all offers of the point have been answered.
func (o *offers) Keep(made []sim.Decision) {
	if o.over && !o.kept {
		o.kept = true
		for _, d := range made {
			if d.Op == sim.StartJob {
				o.own[d.Job] = true
			}
		}
	}
	o.Back()
}

// Hide implements sched.Hider: the job declines what it is offered.
func (o *offers) Hide(s *sched.State, j sim.Job) error {
	if o.offer == nil || o.offer.Job != j {
		return fmt.Errorf("%s: job %d is offered nothing", V1, j)
	}
	o.answer(s, false)
	return nil
}

// tiers names where the GPUs of an offer are, by place.Tier.
var tiers = [...]string{"one machine", "one rack", "several racks"}

// Tell implements sched.Teller.
func (o *offers) Tell() string {
	if o.offer == nil {
		return "No offer"
	}
	return fmt.Sprintf("Offer: %s; %d jobs are asked after it", tiers[o.offer.Tier], o.offer.Behind)
}

// Asked implements sched.Asker.
func (*offers) Asked() string { return "asked" }

// timely returns the policy dally's answer to the offer.
func (o *offers) timely() int32 {
	if o.rule.Timely(o.view, o.offer) {
		return Accept
	}
	return Decline
}

// observer is the encoder of the environment.
type observer struct{ *offers }

// Fields implements sched.Encoder.
func (x observer) Fields() []env.Field { return x.shown.fields() }

// Reset implements sched.Encoder.
func (x observer) Reset(s *sched.State) {
	x.est.Seed = s.Seed
	x.shown.seen.Reset()
}

// Learn implements sched.Encoder.
func (x observer) Learn(s *sched.State, j sim.Job) {
	x.shown.seen.Learn(s.View, j, s.Known[j].Estimate)
}

// Encode implements sched.Encoder.
func (x observer) Encode(dst []float32, _ *sched.State) {
	if clear(dst); x.offer != nil {
		x.shown.encode(dst, x.offers)
	}
}
