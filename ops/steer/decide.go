package steer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/queuerank"
	"clustergym/env/queuerank/rlscheduler"
	"clustergym/env/queuerank/rltune"
	"clustergym/env/sched"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// ask makes p a scheduler that sees the whole queue.
func (p *Policy) ask(sch sim.Scheduler) {
	p.starts = func(ctx context.Context, add func(d *sim.Decision)) error {
		decided := 0
		err := p.Env.Ask(sch, func(d *sim.Decision) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			add(d)
			if decided++; p.late(decided) {
				return errEnough
			}
			return nil
		})
		if p.cut = errors.Is(err, errEnough); p.cut {
			return nil
		}
		return err
	}
}

// rankBy orders queues by the keys of an order; what is started now comes first if that follows from more than the order.
func (p *Policy) rankBy(order string, known sim.Estimates, first bool) {
	r, err := schedulers.NewRanker(order, known)
	if err != nil {
		p.NoOrder = fmt.Sprintf("%s gives no order of the whole queue: what it does depends on what is free; want mode gate, or one of %s", p.Name, strings.Join(schedulers.Ranking(), ", "))
		return
	}
	p.order = func(_ context.Context, _ int, starts []Start) ([]sim.Job, int, error) {
		v := p.Env.View()
		type keyed struct {
			j   sim.Job
			key float64
		}
		before := map[sim.Job]int{}
		if first {
			for i, s := range starts {
				before[s.Job] = i - len(starts)
			}
		}
		all := make([]keyed, 0, len(v.Waiting()))
		for _, j := range v.Waiting() {
			all = append(all, keyed{j, r.Key(v, j)})
		}
		slices.SortFunc(all, func(a, b keyed) int {
			return cmp.Or(cmp.Compare(before[a.j], before[b.j]), cmp.Compare(a.key, b.key), cmp.Compare(v.Pos(a.j), v.Pos(b.j)))
		})
		list := make([]sim.Job, len(all))
		for i := range all {
			list[i] = all[i].j
		}
		return list, len(list), nil
	}
}

// mostActions bounds the actions of one moment, so that a policy which never waits is found out.
const mostActions = 100_000

// act makes p a policy that acts through the environment.
func (p *Policy) act(a agents.Policy) {
	spec := p.Env.Spec()
	ts, b, action := env.NewTimeStep(spec), env.NewBatch(spec, 1), env.NewActions(spec, 1)
	src := []*rand.Rand{rand.New(rand.NewPCG(1, 1))} //nolint:gosec // policies that draw are not opened; the contract wants a source
	choose := func(ctx context.Context, mask []bool) error {
		copy(b.Obs, ts.Obs)
		copy(b.Mask, mask)
		b.Kind[0] = env.Mid
		return a.Act(ctx, b, action, src)
	}
	p.starts = func(ctx context.Context, add func(d *sim.Decision)) error {
		defer func() {
			if p.keeps {
				p.Env.Keep()
			}
			p.Env.Forget()
		}()
		for n := range mostActions {
			if p.cut = p.late(n); p.cut {
				break
			}
			asks, err := p.Env.Observe(ts)
			if err != nil || !asks {
				break
			}
			if err := choose(ctx, ts.Mask); err != nil {
				return err
			}
			if err := p.decided(ctx, b, action, src); err != nil {
				return err
			}
			decisions, waits, err := p.Env.Imagine(env.Action{Disc: action.Disc, Cont: action.Cont})
			if err != nil {
				return err
			}
			for i := range decisions {
				add(&decisions[i])
			}
			if waits {
				break
			}
		}
		decisions, err := p.Env.Proceed()
		for i := range decisions {
			add(&decisions[i])
		}
		return err
	}
	if !slices.Contains([]string{jobselect.ID, queuerank.ID, rlscheduler.ID, rltune.ID}, spec.ID) {
		p.NoOrder = fmt.Sprintf("%s acts in %s, whose actions give no order of the queue; "+
			"want mode shadow or gate, or a policy of %s or %s",
			p.Name, spec.ID, jobselect.ID, queuerank.ID)
		return
	}
	mask, fits := make([]bool, spec.MaskLen()), make([]bool, spec.MaskLen())
	scorer, scored := a.(agents.Scorer)
	values := make([]float32, spec.MaskLen())
	each := 1
	if scored && len(spec.Action.Sizes) == 1 {
		each = spec.MaskLen()
	}
	p.order = func(ctx context.Context, most int, _ []Start) ([]sim.Job, int, error) {
		done := 0
		list, err := sched.Rank(p.Env, ts, each, nil, func(_ *env.TimeStep, jobs []sim.Job) ([]float64, error) {
			if done >= most || p.late(done) {
				return nil, errEnough
			}
			scores := make([]float64, len(jobs))
			done += min(each, len(jobs))
			clear(mask)
			copy(fits, ts.Mask)
			for i := range jobs { // an order is wanted of those that do not fit, too
				mask[i] = true
			}
			if err := choose(ctx, mask); err != nil {
				return nil, err
			}
			if each == 1 {
				if k := int(action.Disc[0]); k < len(jobs) {
					scores[k] = 1
				}
				return scores, nil
			}
			if _, err := scorer.Scores(ctx, b, values); err != nil {
				return nil, err
			}
			low, high := slices.Min(values[:len(jobs)]), slices.Max(values[:len(jobs)])
			for i := range scores { // those that fit are what the network has learned to choose among: they come first
				scores[i] = float64(values[i] - low)
				if fits[i] {
					scores[i] += float64(high-low) + 1
				}
			}
			return scores, nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return nil, 0, err
		}
		return p.others(list), len(list), nil
	}
}

// others appends to list the jobs that wait and are not in it, in order of arrival.
func (p *Policy) others(list []sim.Job) []sim.Job {
	v := p.Env.View()
	ranked := make(map[sim.Job]bool, len(list))
	for _, j := range list {
		ranked[j] = true
	}
	n := len(list)
	for _, j := range v.Waiting() {
		if !ranked[j] {
			list = append(list, j)
		}
	}
	slices.SortFunc(list[n:], func(a, b sim.Job) int { return cmp.Compare(v.Pos(a), v.Pos(b)) })
	return list
}
