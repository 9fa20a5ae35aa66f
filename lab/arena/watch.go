package arena

import (
	"context"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/lab/config"
	"clustergym/simulator/sim"
)

// Watched says which jobs a Watch has shown.
type Watched struct {
	First int // position of the first job that counts; those before it only fill the cluster
	// Jobs is how many jobs of a stream count from there on: others arrive after them. 0 = all jobs of the window.
	Jobs int
}

// watchedJobs is how many counted jobs of a stream Watch shows.
const watchedJobs = 256

// Watch plays a test window or stream again, as Evaluate with the same arguments plays it, and shows o every point from
// the one on at which a counted job has arrived. A stream ends when its first 256 counted jobs have ended. policy is
// the name of a checkpoint or policy in the report of Evaluate; of one that draws at random it is the first seed.
func (w *Scenario) Watch(ctx context.Context, cfg config.Config, opt EvalOptions, policy string, window int,
	o sim.Observer) (at Watched, err error) {
	opt.External = nil // they are elsewhere
	r, err := w.testing(ctx, &cfg, &opt)
	if err != nil {
		return at, err
	}
	for i := range r.policies {
		if r.policies[i].name != policy {
			continue
		}
		e, err := r.open()
		if err != nil {
			return at, err
		}
		play, err := r.policies[i].player(e)
		if err != nil {
			return at, err
		}
		ep := r.episode(window)
		if r.streams == nil {
			_, err = play(ctx, ep, rng.At(ep.Seed, 0), onlooker{o})
			return Watched{First: e.(sched.Arena).First()}, err
		}
		at = Watched{r.streams.Warm(), min(watchedJobs, r.streams.Counted())}
		playing, stop := context.WithCancel(ctx)
		defer stop()
		x := &excerpt{Observer: o, at: at, stop: stop}
		if _, err = play(playing, ep, rng.At(ep.Seed, 0), onlooker{x}); x.over && ctx.Err() == nil {
			err = nil
		}
		return at, err
	}
	return at, fault.Mistakef("there is no policy %s to watch", policy)
}

// excerpt shows an observer some jobs of a stream: every point from the arrival of the first to the end of the last.
type excerpt struct {
	sim.Observer
	at    Watched
	ended int // of the jobs that count
	over  bool
	stop  func() // ends the play
}

// Observe implements sim.Observer.
func (x *excerpt) Observe(v *sim.View, p *sim.Point) error {
	if x.over || v.Arrived() <= x.at.First {
		return nil
	}
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Finish {
			if pos := v.Pos(e.Job) - x.at.First; pos >= 0 && pos < x.at.Jobs {
				x.ended++
			}
		}
	}
	if x.over = x.ended == x.at.Jobs; x.over {
		x.stop()
	}
	return x.Observer.Observe(v, p)
}

// onlooker is an observer as an audience.
type onlooker struct{ sim.Observer }

// End implements audience.
func (onlooker) End(*sim.View) {}
