package ddppo

import (
	"context"
	"fmt"

	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/experiments/study"
	"clustergym/internal/cem"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	rl "clustergym/peer/rlscheduler"
	"clustergym/traces"
)

// population and windows are those of a generation of the tuned key: keys, and training windows on which each is
// played.
const population, windows = 24, 4

// tune looks for the key of the greatest mean return by the cross-entropy method. It has at most as many episodes as an
// agent, in whole generations, drawn from the same windows with the same reward.
func (s *settings) tune(ctx context.Context, b *study.Bench, x *index, rung string, seed uint64) ([]study.Row, error) {
	generations := max(1, int(s.Steps)/s.Window/(population*windows))
	search := cem.Search{Population: population, Elite: population / 4, MeanStep: 0.5, DeviationStep: 0.3, Least: 0.01}
	p := cem.Point{Mean: make([]float64, rl.Traits), Deviation: make([]float64, rl.Traits)}
	p.Mean[0], p.Mean[1] = 1, 1
	for k := range p.Deviation {
		p.Deviation[k] = 0.7
	}
	type local struct {
		env *queuerank.Env
		ts  *env.TimeStep
	}
	worlds := par.Local[local]{Make: func() (local, error) {
		e, err := queuerank.New(s.config(rung), machine(x.procs), x, x.maxima, traces.Training)
		if err != nil {
			return local{}, err
		}
		return local{e, env.NewTimeStep(e.Spec())}, nil
	}}
	for p.Generation < generations {
		drawn := search.Draw(&p, cem.Stream(seed, "ddppo/key", p.Generation))
		returns := make([]float64, population*windows)
		err := worlds.For(ctx, b.Workers, len(returns), func(h local, i int) error {
			choose := byKey(h.env, (*rl.Linear)(drawn[i/windows]))
			at := rng.At(seed, rng.Hash("ddppo/key/window"), uint64(p.Generation), uint64(i%windows))
			var err error
			returns[i], _, err = env.Play(ctx, h.env, env.Episode{Seed: at, Window: -1}, h.ts,
				func(ts *env.TimeStep, a env.Action) error {
					var err error
					a.Disc[0], err = choose(ts)
					return err
				})
			return err
		})
		if err != nil {
			return nil, err
		}
		cost := make([]float64, population)
		for i, r := range returns {
			cost[i/windows] -= r
		}
		search.Move(&p, drawn, cost)
		b.Progress(int64(p.Generation), int64(generations))
	}
	var rows []study.Row
	for k, w := range p.Mean {
		labels := map[string]string{"run times": rung, "seed": fmt.Sprint(seed), "trait": traits[k]}
		rows = append(rows, study.Row{Table: "key", Labels: labels, Metric: "weight", Value: w})
	}
	return rows, nil
}

// traits names the weights of a key, in their order.
var traits = [rl.Traits]string{"ln r", "ln n", "n/256", "r n/256", "ln r ln n", "submit", "ln r squared", "wide"}

// keyIn returns the key whose weights are in rows.
func keyIn(rows []study.Row) *rl.Linear {
	var key rl.Linear
	for i := range rows {
		key[i] = rows[i].Value
	}
	return &key
}
