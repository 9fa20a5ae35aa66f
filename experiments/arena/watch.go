package arena

import (
	"context"

	"clustergym/env/sim"
	"clustergym/experiments/config"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// Watch plays a test window again, as Evaluate with the same arguments plays it, and shows o every point from the one on at
// which a job of the window has arrived. policy is the name of a checkpoint or policy in the report of Evaluate; of one that
// draws at random it is the first seed. first is the position of the window's first job; the jobs before it fill the cluster.
func (w *World) Watch(ctx context.Context, cfg config.Config, opt EvalOptions, policy string, window int, o sim.Observer) (first int, err error) {
	opt.External = nil // they are elsewhere
	cs, err := w.contestants(&cfg, &opt)
	if err != nil {
		return 0, err
	}
	e, err := w.NewEnv(traces.Test, 1)
	if err != nil {
		return 0, err
	}
	v := &evaluation{world: w, cfg: &cfg.Eval, part: traces.Test}
	for i := range cs {
		if cs[i].name != policy {
			continue
		}
		p, err := cs[i].player(e)
		if err != nil {
			return 0, err
		}
		ep := v.episode(window)
		_, err = p(ctx, ep, rng.At(ep.Seed, 0), onlooker{o})
		return e.First(), err
	}
	return 0, fault.Mistakef("there is no policy %s to watch", policy)
}

// onlooker is an observer as an audience.
type onlooker struct{ o sim.Observer }

// Observe implements sim.Observer.
func (l onlooker) Observe(v *sim.View, p *sim.Point) error { return l.o.Observe(v, p) }

// End implements audience.
func (l onlooker) End(*sim.View) {}
