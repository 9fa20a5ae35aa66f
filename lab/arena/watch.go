package arena

import (
	"context"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/lab/config"
	"clustergym/simulator/sim"
)

// Watch plays a test window again, as Evaluate with the same arguments plays it, and shows o every point from the one
// on at which a job of the window has arrived. policy is the name of a checkpoint or policy in the report of Evaluate;
// of one that draws at random it is the first seed. first is the position of the window's first job; the jobs before it
// fill the cluster.
func (w *Scenario) Watch(ctx context.Context, cfg config.Config, opt EvalOptions, policy string, window int,
	o sim.Observer) (first int, err error) {
	opt.External = nil // they are elsewhere
	r, err := w.testing(ctx, &cfg, &opt)
	if err != nil {
		return 0, err
	}
	for i := range r.policies {
		if r.policies[i].name != policy {
			continue
		}
		e, err := r.open()
		if err != nil {
			return 0, err
		}
		play, err := r.policies[i].player(e)
		if err != nil {
			return 0, err
		}
		ep := r.episode(window)
		_, err = play(ctx, ep, rng.At(ep.Seed, 0), onlooker{o})
		return e.(sched.Arena).First(), err
	}
	return 0, fault.Mistakef("there is no policy %s to watch", policy)
}

// onlooker is an observer as an audience.
type onlooker struct{ sim.Observer }

// End implements audience.
func (onlooker) End(*sim.View) {}
