package mbmpo

import (
	"context"
	"errors"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/env/workerplace"
	"clustergym/experiments/metascheduler/perfmodel"
	"clustergym/internal/rng"
	"clustergym/replay"
)

// crowd predicts the total speed of all jobs.
type crowd struct {
	view  *perfmodel.View
	place workerplace.Placement
	on    []int32
	speed []float64
}

// after returns that speed after action k, which places a worker, in e.
func (c *crowd) after(e *workerplace.Env, k int32) (float64, error) {
	for len(c.on) < e.Config().Servers {
		c.on = append(c.on, 0)
	}
	e.After(k, &c.place, c.on[:e.Config().Servers])
	for len(c.speed) < len(c.place.Jobs) {
		c.speed = append(c.speed, 0)
	}
	v := c.speed[:len(c.place.Jobs)]
	if err := c.view.Speeds(v, &c.place); err != nil {
		return 0, err
	}
	sum := 0.0
	for _, x := range v {
		sum += min(x, 1)
	}
	return sum, nil
}

// planner places workers where the models predict the highest total speed, and waits where they predict that waiting
// pays. It does not look ahead.
func (l *Loop) planner(view *perfmodel.View) chooser {
	p := &workerplace.Planner{Speeds: view, Wait: l.cfg.Wait}
	return func(_ context.Context, e *workerplace.Env, _ *env.TimeStep, _ *rand.Rand) (int32, error) {
		return p.Choose(e)
	}
}

// guide makes the policy imitate the planner of every model in that model, on workloads seen before.
func (l *Loop) guide(ctx context.Context) error {
	if l.cfg.Guide == 0 {
		return nil
	}
	shown, err := replay.NewEpisodes(l.learner.Spec(), l.cfg.Maml.Gamma)
	if err != nil {
		return err
	}
	open, err := l.world.Open()
	if err != nil {
		return err
	}
	e := open.(*believer)
	defer e.Close() //nolint:errcheck // it holds nothing
	src := rng.Stream(rng.At(l.seed, uint64(l.rounds)), "mbmpo/guide")
	ts := env.NewTimeStep(e.Spec())
	for k := range l.models.Members() * l.cfg.Guided {
		k %= l.models.Members()
		w := l.world.seen[src.IntN(len(l.world.seen))]
		if err := l.world.Enter(e, l.world.task(k, w)); err != nil {
			return err
		}
		plan := l.planner(l.models.View(k))
		_, _, err := env.Play(ctx, e, env.Episode{Seed: w.seed, Window: -1, Task: w.values}, ts,
			func(ts *env.TimeStep, a env.Action) (err error) {
				if a.Disc[0], err = plan(ctx, e.Env, ts, src); err == nil {
					shown.Act(ts, a, nil)
				}
				return err
			}, func(_ env.Action, ts *env.TimeStep) { shown.After(ts) })
		if err != nil {
			return err
		}
	}
	return l.imitate(ctx, shown, l.cfg.Guide)
}

// Plan returns the outcome of each workload of seeds in world when every worker is placed where the models together
// predict the highest speed of all jobs, without a policy.
func (l *Loop) Plan(ctx context.Context, world Real, seeds []uint64) ([]Outcome, error) {
	if l.episodes == 0 {
		return nil, errors.New("mbmpo: no model before Begin")
	}
	e, err := world.Open()
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	plan, ts := l.planner(l.models.View()), env.NewTimeStep(e.Spec())
	out := make([]Outcome, len(seeds))
	for i, s := range seeds {
		ret, _, err := env.Play(ctx, e, env.Episode{Seed: s, Window: -1, Task: world.Values}, ts,
			func(ts *env.TimeStep, a env.Action) (err error) {
				a.Disc[0], err = plan(ctx, e, ts, nil)
				return err
			})
		if err != nil {
			return nil, err
		}
		out[i] = OutcomeOf(e, ret)
	}
	return out, nil
}
