package sched

import (
	"context"

	"clustergym/env"
	"clustergym/env/sim"
)

// Arena is an environment over the cluster simulator in which policies can be compared: those that act through it, and
// schedulers that see the whole queue and decide in the agent's place, on the same episodes.
type Arena interface {
	env.Env
	// Watch shows every point of later episodes to o, from the first at which a counted job has arrived to the last at
	// which one finishes, though the episode itself may end earlier; nil stops it. If o has a method Reset, that is
	// called as an episode begins, by RestoreSnapshot too. Errors of o are ignored: it cannot fail an episode.
	// A truncated episode shows no more points.
	Watch(o sim.Observer)
	// Simulate plays episode ep with sch in the agent's place: the same jobs, cluster, cost of communication and warm
	// start, with the whole queue in sight. It shows the points that Watch would show to o, whose errors end the
	// episode. The environment needs a Reset afterwards.
	Simulate(ctx context.Context, ep env.Episode, sch sim.Scheduler, o sim.Observer) error
	// First returns the position of the current episode's first counted job; those before it fill the cluster.
	First() int
	// View returns the simulator's state, for rules and observers. It is valid after Reset and until the next Step.
	View() *sim.View
}

var _ Arena = (*Env)(nil)

// Watch implements Arena.
func (e *Env) Watch(o sim.Observer) { e.watch = o }

// Simulate implements Arena. A heuristic must be reseeded with the episode's seed to see the agent's noisy estimates.
func (e *Env) Simulate(ctx context.Context, ep env.Episode, sch sim.Scheduler, o sim.Observer) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	part, err := e.part(ep.Split)
	if err != nil {
		return err
	}
	if err := e.draw(ctx, ep, part); err != nil {
		return err
	}
	return e.whole.Play(ctx, e.win.Traced, e.win.First, sch, o)
}

// First implements Arena.
func (e *Env) First() int { return e.win.First }

// View implements Arena.
func (e *Env) View() *sim.View { return e.state.View }
