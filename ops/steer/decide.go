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

// rankBy orders queues by the keys of an order; what is started now comes first if that follows from more than the
// order.
func (p *Policy) rankBy(order string, known sim.Estimates, first bool) {
	r, err := schedulers.NewRanker(order, known)
	if err != nil {
		p.NoOrder = fmt.Sprintf(
			"%s gives no order of the whole queue: what it does depends on what is free; want mode gate, or one of %s", p.Name,
			strings.Join(schedulers.Ranking(), ", "))
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
		return list, len(list), r.Err()
	}
}

// mostActions bounds the actions of one moment, so that a policy which never waits is found out.
const mostActions = 100_000

// act makes p a policy that acts through the environment.
func (p *Policy) act(a agents.Policy) {
	spec := p.Env.Spec()
	x := &actor{
		Policy: p, a: a, ts: env.NewTimeStep(spec), b: env.NewBatch(spec, 1), action: env.NewActions(spec, 1),
		// Policies that draw are not opened; the contract needs a source.
		src: []*rand.Rand{rand.New(rand.NewPCG(1, 1))}, //nolint:gosec // nothing is drawn
	}
	p.starts = x.start
	if !slices.Contains([]string{jobselect.ID, jobselect.V1, queuerank.ID, queuerank.V1, rlscheduler.ID, rltune.ID},
		spec.ID) {
		p.NoOrder = fmt.Sprintf("%s acts in %s, whose actions give no order of the queue; "+
			"want mode shadow or gate, or a policy of %s or %s", p.Name, spec.ID, jobselect.ID, queuerank.V1)
		return
	}
	n := spec.MaskLen()
	x.mask, x.fits, x.values, x.each = make([]bool, n), make([]bool, n), make([]float32, n), 1
	if scorer, ok := a.(agents.Scorer); ok && len(spec.Action.Sizes) == 1 {
		x.scorer, x.each = scorer, n
	}
	p.order = x.rank
}

// actor is a policy that acts through the environment.
type actor struct {
	*Policy
	a      agents.Policy
	ts     *env.TimeStep
	b      *env.Batch
	action *env.Actions
	src    []*rand.Rand

	// Of rank: how many jobs one look orders, by their scores if these are more than one.
	each       int
	scorer     agents.Scorer
	mask, fits []bool
	values     []float32
}

func (x *actor) choose(ctx context.Context, mask []bool) error {
	copy(x.b.Obs, x.ts.Obs)
	copy(x.b.Mask, mask)
	x.b.Kind[0] = env.Mid
	return x.a.Act(ctx, x.b, x.action, x.src)
}

// start is Policy.starts.
func (x *actor) start(ctx context.Context, add func(d *sim.Decision)) error {
	defer func() {
		if x.keeps {
			x.Env.Keep()
		}
		x.Env.Forget()
	}()
	for n := range mostActions {
		if x.cut = x.late(n); x.cut {
			break
		}
		asks, err := x.Env.Observe(x.ts)
		if err != nil || !asks {
			break
		}
		if err := x.choose(ctx, x.ts.Mask); err != nil {
			return err
		}
		if err := x.decided(ctx, x.b, x.action, x.src); err != nil {
			return err
		}
		decisions, waits, err := x.Env.Imagine(env.Action{Disc: x.action.Disc, Cont: x.action.Cont})
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
	decisions, err := x.Env.Proceed()
	for i := range decisions {
		add(&decisions[i])
	}
	return err
}

// rank is Policy.order.
func (x *actor) rank(ctx context.Context, most int, _ []Start) ([]sim.Job, int, error) {
	done := 0
	list, err := sched.Rank(x.Env, x.ts, x.each, nil, func(_ *env.TimeStep, jobs []sim.Job) ([]float64, error) {
		if done >= most || x.late(done) {
			return nil, errEnough
		}
		done += min(x.each, len(jobs))
		return x.scores(ctx, len(jobs))
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, 0, err
	}
	return x.others(list), len(list), nil
}

// scores returns how much the policy prefers each of the n jobs that it sees.
func (x *actor) scores(ctx context.Context, n int) ([]float64, error) {
	scores := make([]float64, n)
	clear(x.mask)
	copy(x.fits, x.ts.Mask)
	for i := range n { // an order is wanted of those that do not fit, too
		x.mask[i] = true
	}
	if err := x.choose(ctx, x.mask); err != nil {
		return nil, err
	}
	if x.each == 1 {
		if k := int(x.action.Disc[0]); k < n {
			scores[k] = 1
		}
		return scores, nil
	}
	if _, err := x.scorer.Scores(ctx, x.b, x.values); err != nil {
		return nil, err
	}
	low, high := slices.Min(x.values[:n]), slices.Max(x.values[:n])
	for i := range scores { // those that fit are what the network has learned to choose among: they come first
		scores[i] = float64(x.values[i] - low)
		if x.fits[i] {
			scores[i] += float64(high-low) + 1
		}
	}
	return scores, nil
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
