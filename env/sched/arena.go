package sched

import (
	"context"

	"clustergym/env"
	"clustergym/simulator/sim"
)

// Arena is an environment over the cluster simulator that can compare two kinds of policies on the same episodes: those
// that act through the environment, and schedulers that see the whole queue and decide in the agent's place.
type Arena interface {
	env.Env
	// Watch shows o every point of later episodes; nil stops it. The first point is the one at which a counted job has
	// arrived, the last the one at which the last counted job finishes, even if the episode itself ends earlier. A
	// truncated episode shows no points after its end. If o has a method Reset, it is called whenever an episode begins,
	// also by RestoreSnapshot. Errors of o are ignored, so an observer cannot fail an episode.
	Watch(o sim.Observer)
	// Simulate plays episode ep with sch in the agent's place, on the same jobs, cluster, communication model and warm
	// start. sch sees the whole queue. o sees the points that Watch would show; its errors end the episode. The
	// environment needs a Reset afterwards.
	Simulate(ctx context.Context, ep env.Episode, sch sim.Scheduler, o sim.Observer) error
	// First returns the position of the first job that the current episode is judged by. Those before it fill the cluster,
	// or belong to the time before an Ongoing episode.
	First() int
	// View returns the simulator's state, for rules and observers. It is valid after Reset and until the next Step.
	View() *sim.View
}

// Decider is an environment in which a window may leave the agent nothing to decide.
type Decider interface {
	// Decides reports whether the part of the workload that the environment was made for has a window with a decision. If
	// it has, a Reset without a window always finds one. The environment needs a Reset afterwards.
	Decides(ctx context.Context) (bool, error)
	// Undecided says why it may have none, and what would be right.
	Undecided() string
}

var _ Arena = (*Env)(nil)

// Watch implements Arena.
func (e *Env) Watch(o sim.Observer) { e.watch = o }

// Simulate implements Arena. A heuristic must be reseeded with the episode's seed to see the agent's noisy estimates.
func (e *Env) Simulate(ctx context.Context, ep env.Episode, sch sim.Scheduler, o sim.Observer) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	part, _, err := SplitPart(e.spec.ID, ep.Split, e.parts.Part)
	if err != nil {
		return err
	}
	if err := e.draw(ctx, ep, part); err != nil {
		return err
	}
	return e.whole.Play(ctx, e.win.Play(), sch, o)
}

// Stoppable returns the position from which on running jobs can be stopped: those before it fill the cluster.
func (e *Env) Stoppable() int {
	if e.win.Mode != Drained {
		return 0
	}
	return e.win.First
}

// First implements Arena.
func (e *Env) First() int { return e.win.First }

// View implements Arena.
func (e *Env) View() *sim.View { return e.state.View }
