package rltune

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/env/queuerank/rltune"
	"clustergym/env/sched"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// measure is sums over the jobs of a window that have started. Nothing stops or slows a job, so its end is known.
type measure struct {
	jobs                    int
	wait, jct, bounded, use float64 // times in seconds, use in GPU-seconds
	end                     time.Duration
}

// Reset implements what environments do when an episode begins.
func (m *measure) Reset() { *m = measure{} }

// Observe implements sim.Observer.
func (m *measure) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		if e.Kind != sim.Start {
			continue
		}
		j := v.Trace(e.Job)
		wait, run := (e.At - j.Submit).Seconds(), j.Work.Seconds()
		m.jobs++
		m.wait += wait
		m.jct += wait + run
		m.bounded += max(1, (wait+run)/max(run, 10))
		m.use += run * float64(j.GPUs)
		m.end = max(m.end, e.At+j.Work)
	}
	return nil
}

// rows returns the figures of a window of n jobs on so many GPUs.
func (m *measure) rows(table string, labels map[string]string, n, gpus int) ([]study.Row, error) {
	if m.jobs != n {
		return nil, fmt.Errorf("rltune: %d jobs have started in a window of %d: %v", m.jobs, n, labels)
	}
	k, row := float64(n), study.RowOf(table, labels)
	return []study.Row{
		row("wait_h", m.wait/k/3600), row("jct_h", m.jct/k/3600), row("bsld", m.bounded/k),
		row("used", m.use/(float64(gpus)*m.end.Seconds())),
	}, nil
}

// choice chooses a slot.
type choice func(e *queuerank.Env, ts *env.TimeStep, r *rand.Rand) int32

// head chooses the first job in the order of the base: the base policy itself.
func head(*queuerank.Env, *env.TimeStep, *rand.Rand) int32 { return 0 }

// fitting reports whether the row of a slot says that the job can start.
func fitting(ts *env.TimeStep, slot int) bool {
	return ts.Obs[slot*rltune.Features+rltune.Features-1] > 0.5
}

// firstThatFits chooses the first job that can start, or the first.
func firstThatFits(e *queuerank.Env, ts *env.TimeStep, _ *rand.Rand) int32 {
	for i := range e.Slots() {
		if fitting(ts, i) {
			return int32(i)
		}
	}
	return 0
}

// smallestThatFits chooses the job of the fewest GPUs that can start, or the one of the fewest.
func smallestThatFits(e *queuerank.Env, ts *env.TimeStep, _ *rand.Rand) int32 {
	at := 0
	for i, j := range e.Slots() {
		old, own := fitting(ts, at), fitting(ts, i)
		if own && !old || own == old && e.View().Request(j).GPUs < e.View().Request(e.Slots()[at]).GPUs {
			at = i
		}
	}
	return int32(at)
}

// anyOf chooses any visible job with equal probability.
func anyOf(e *queuerank.Env, _ *env.TimeStep, r *rand.Rand) int32 {
	return int32(r.IntN(len(e.Slots())))
}

// episode is the window i of a part. Its seed draws nothing but random choices, which are the same for all policies.
func episode(split string, i int) env.Episode {
	return env.Episode{Seed: env.EpisodeSeed(rng.Hash("rltune/windows"), i), Window: i, Split: split}
}

// player plays an episode to its end. m watches the environment; a player that plays on a machine of its own lets m
// observe that one.
type player func(ctx context.Context, ep env.Episode, m *measure) error

// maker makes a player of an environment.
type maker func(e *queuerank.Env) (player, error)

// windows plays the policy of maker's players on all windows of a part of w, and returns their rows.
func windows(
	ctx context.Context, b *study.Bench, w *arena.Scenario, part traces.Part, table string, labels map[string]string,
	maker maker,
) ([]study.Row, error) {
	split := env.SplitTest
	if part == traces.Validation {
		split = env.SplitValidation
	}
	out, err := arena.EachWindow(ctx, w, part, math.MaxInt, b.Workers,
		func(on sched.Arena) (func(i int) ([]study.Row, error), error) {
			e := on.(*queuerank.Env)
			play, err := maker(e)
			return func(i int) ([]study.Row, error) {
				var m measure
				e.Watch(&m)
				if err := play(ctx, episode(split, i), &m); err != nil {
					return nil, fmt.Errorf("%v: %w", labels, err)
				}
				return m.rows(table, study.With(labels, "window", i), w.Settings.(*queuerank.Config).Window, w.GPUs)
			}, err
		})
	return slices.Concat(out...), err
}

// choosing makes a player that chooses slots by hand.
func choosing(choose choice) maker {
	return func(e *queuerank.Env) (player, error) {
		ts := env.NewTimeStep(e.Spec())
		return func(ctx context.Context, ep env.Episode, _ *measure) error {
			r := rng.Stream(ep.Seed, "rltune/choices")
			_, _, err := env.Play(ctx, e, ep, ts, func(ts *env.TimeStep, a env.Action) error {
				a.Disc[0] = choose(e, ts, r)
				return nil
			})
			return err
		}, nil
	}
}

// acting makes a player that chooses by the agent trained in a folder.
func acting(run string) maker {
	return func(e *queuerank.Env) (player, error) {
		p, err := arena.Trained(run, e.Spec())
		if err != nil {
			return nil, err
		}
		agent := agents.NewPlayer(e, p)
		return func(ctx context.Context, ep env.Episode, _ *measure) error {
			_, _, err := agent.Play(ctx, ep, rng.Stream(ep.Seed, "eval/act"))
			return err
		}, nil
	}
}

// playBases plays every base: on the validation windows to find the best, and on the test windows.
func (s *settings) playBases(ctx context.Context, b *study.Bench, w *workloadSpec, rung,
	path string) ([]study.Row, error) {
	made, err := s.load(ctx, w, rung, bases[0], path)
	if err != nil {
		return nil, err
	}
	var all []study.Row
	won, least := "", 0.0
	tests := map[string][]study.Row{}
	for i, of := range bases {
		own := changed(made, func(c *queuerank.Config) { c.Base, c.RLTune, c.Reward = of.order, "first", "minus" })
		labels := map[string]string{"workload": w.Name, "run times": rung, "policy": of.name}
		rows, err := windows(ctx, b, own, traces.Validation, "validation", labels, choosing(head))
		if err != nil {
			return nil, err
		}
		sum := 0.0
		for _, r := range rows {
			if r.Metric == "wait_h" {
				sum += r.Value
			}
		}
		if won == "" || sum < least {
			won, least = of.name, sum
		}
		all = append(all, rows...)
		if tests[of.name], err = windows(ctx, b, own, traces.Test, "bases", labels, choosing(head)); err != nil {
			return nil, err
		}
		all = append(all, tests[of.name]...)
		b.Progress(int64(i+1), int64(len(bases)))
	}
	for _, r := range tests[won] {
		r.Labels = study.With(r.Labels, "policy", best)
		all = append(all, r)
	}
	return all, nil
}

// playAll plays on the queue of a base what is made by hand, and the agents that were trained in runs.
func (s *settings) playAll(ctx context.Context, b *study.Bench, w *workloadSpec, rung string, of base, path string,
	runs []string) ([]study.Row, error) {
	made, err := s.load(ctx, w, rung, of, path)
	if err != nil {
		return nil, err
	}
	var all []study.Row
	play := func(policy string, seed int, change func(c *queuerank.Config), maker maker) error {
		labels := map[string]string{"workload": w.Name, "run times": rung, "base": of.name, "policy": policy}
		if seed > 0 {
			labels["seed"] = fmt.Sprint(seed)
		}
		own := changed(made, func(c *queuerank.Config) {
			c.Reward = "minus" // nobody asks for the base's score
			change(c)
		})
		rows, err := windows(ctx, b, own, traces.Test, "play", labels, maker)
		all = append(all, rows...)
		return err
	}
	programme := func(c *queuerank.Config) { c.RLTune = "programme" }
	first := func(c *queuerank.Config) { c.RLTune = "first" }
	for _, x := range []struct {
		policy string
		change func(c *queuerank.Config)
		maker  maker
	}{
		{itself, first, choosing(head)},
		{placed, programme, choosing(head)},
		{easy, func(c *queuerank.Config) { c.RLTune, c.Backfill = "first", "easy" }, choosing(head)},
		{fits, programme, choosing(firstThatFits)},
		{smallest, programme, choosing(smallestThatFits)},
		{uniform, programme, choosing(anyOf)},
		{elsewhere, first, func(e *queuerank.Env) (player, error) {
			p, err := outside(of, rung)
			return func(ctx context.Context, ep env.Episode, m *measure) error {
				p.Reseed(ep.Seed)
				m.Reset()
				return e.Simulate(ctx, ep, p, m)
			}, err
		}},
	} {
		if err := play(x.policy, 0, x.change, x.maker); err != nil {
			return nil, err
		}
	}
	for k, dir := range runs {
		if err := play(learned, k+1, programme, acting(dir)); err != nil {
			return nil, err
		}
		if err := play(unplaced, k+1, first, acting(dir)); err != nil {
			return nil, err
		}
		if err := play(filled, k+1, func(c *queuerank.Config) { c.RLTune, c.Backfill = "programme", "easy" },
			acting(dir)); err != nil {
			return nil, err
		}
	}
	return all, nil
}
