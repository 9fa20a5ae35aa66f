package ppo

import (
	"context"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/replay"
)

// collector is a replica that takes its steps at its own pace (Wijmans et al. 2020, section 3, "preemption of
// stragglers"). While replicas collect, they only read what they share, except the count of full rollouts:
// observations and rewards are added to the scales at the end of Collect.
type collector struct {
	*Agent
	all   *Replicas
	least int              // steps that it has before it can be cut short
	seen  *replay.ObsScale // observations of this collection; nil without Config.NormObs
	paid  []payment        // [steps, rows] of this collection
}

// payment is what the scale of rewards needs of a step.
type payment struct {
	kind             env.Kind
	reward, discount float64
}

var _ agents.Collector = (*collector)(nil)

// separate turns the replicas into collectors.
func (r *Replicas) separate() {
	for _, a := range r.members {
		r.collectors = append(r.collectors, collector{
			Agent: a, all: r, least: max(1,
				a.cfg.Steps/4), seen: newObsScale(a.cfg, a.spec), paid: make([]payment, 0, a.cfg.Steps*a.rows),
		})
	}
	for k := range r.collectors {
		r.list = append(r.list, &r.collectors[k])
	}
}

// Collectors returns the replicas as collectors that take steps each at its own pace; none without
// Config.PreemptShare.
func (r *Replicas) Collectors() []agents.Collector { return r.list }

// Collect calls play with the rank of every replica, each in its own goroutine, and waits for all of them. play takes
// steps with the collector of that rank as long as it wants more. play may stop earlier; the next Collect then
// continues. Once PreemptShare of the replicas have full rollouts, each of the others ends its rollout after the
// first step at which it has at least a quarter of it; a step under way is not interrupted. Learn is ready when all
// rollouts have ended.
//
// The scale of observations is fixed during Collect. At the end, observations are counted in order of ranks, and
// rewards in order of steps and, within a step, of rows. Except with NormObs, replicas of which none was cut short
// have therefore learnt what they would have learnt by stepping together, bit for bit.
func (r *Replicas) Collect(play func(k int) error) error {
	full := int32(0)
	for _, a := range r.members {
		if a.roll.Len() == a.roll.Steps {
			full++
		}
	}
	r.full.Store(full)
	n := len(r.collectors)
	err := par.For(context.Background(), n, n, func(_, k int) error { return play(k) })
	r.settle()
	return err
}

// settle adds the observations and rewards of the collection to the scales.
func (r *Replicas) settle() {
	longest := 0
	for k := range r.collectors {
		c := &r.collectors[k]
		longest = max(longest, len(c.paid))
		if c.seen != nil {
			r.members[0].act.scale.Merge(c.seen) // shared by all
			c.seen = newObsScale(c.cfg, c.spec)
		}
	}
	for t := 0; t < longest; t += r.rows {
		for k := range r.collectors {
			paid := r.collectors[k].paid
			for i := t; i < min(t+r.rows, len(paid)); i++ {
				r.scale.ObserveRow(k*r.rows+i-t, paid[i].kind, paid[i].reward, paid[i].discount)
			}
		}
	}
	for k := range r.collectors {
		r.collectors[k].paid = r.collectors[k].paid[:0]
	}
}

// Act is Agent.Act; with Config.NormObs the observations are remembered.
func (c *collector) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if err := c.Agent.Act(ctx, b, dst, src); err != nil {
		return err
	}
	if c.seen != nil {
		c.seen.Observe(b.Obs, b.N)
	}
	return nil
}

// Observe is Agent.Observe, and ends the rollout if it is time.
func (c *collector) Observe(b *env.Batch, a *env.Actions, next *env.Batch) error {
	if err := c.Agent.Observe(b, a, next); err != nil {
		return err
	}
	for i := range next.N {
		c.paid = append(c.paid, payment{next.Kind[i], next.Reward[i], c.spec.Discount(c.cfg.Gamma, next.Elapsed[i])})
	}
	if c.roll.Full() {
		c.all.full.Add(1)
		return nil
	}
	if int(c.all.full.Load()) < c.cfg.quorum() || c.roll.Len() < c.least {
		return nil
	}
	c.roll.Cut()
	return c.bootstrap(next)
}

// Len is the number of steps in the rollout.
func (c *collector) Len() int { return c.roll.Len() }

// More reports whether the rollout has not ended.
func (c *collector) More() bool { return !c.roll.Full() }

// sizes returns the number of rollouts that were cut short and the share of all steps that the rollouts hold.
func (r *Replicas) sizes() (preempted int, collected float64) {
	steps := 0
	for _, a := range r.members {
		steps += a.roll.Len()
		if a.roll.Len() < a.roll.Steps {
			preempted++
		}
	}
	return preempted, float64(steps) / float64(len(r.members)*r.members[0].roll.Steps)
}

// sameBeginning makes all replicas follow the schedules from where the first of their rollouts began. The beginnings
// differ if a run was stopped before some rollouts had begun, and copies of the weights stay equal only with one
// learning rate for all.
func (r *Replicas) sameBeginning() {
	begun := r.members[0].begun
	for _, a := range r.members {
		begun = min(begun, a.begun)
	}
	for _, a := range r.members {
		a.begun = begun
	}
}
