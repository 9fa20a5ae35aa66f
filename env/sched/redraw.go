package sched

import (
	"fmt"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// ErrUndecided is the env.ErrEpisode that Reset returns for a window in which the agent has nothing to decide. The
// window has been played to its end then, or to where it is truncated, and a watcher has seen all of it.
var ErrUndecided = fmt.Errorf("%w", env.ErrEpisode)

// Redraw finds the window of an episode for an environment in whose windows the agent may have nothing to decide. The
// seed draws up to a hundred windows; the first that has a decision is the episode's. If none has one, the episode is
// the first window of the part, by number, that has one with seed 0. So the same seed always gives the same episode,
// and a Reset succeeds if the part has such a window. A window that an episode names is never exchanged.
type Redraw struct {
	stream uint64 // hash of the name of the stream of seeds
	count  func(p traces.Part) int
	firsts [len(splits)]firstWindow
}

// firstWindow is the first window of a part with a decision, -1 = there is none.
type firstWindow struct {
	known  bool
	window int
}

// NewRedraw returns a Redraw whose second and later windows come from the stream of seeds called stream. w are the
// windows of the workload; a count of their type says how many can be named.
func NewRedraw(stream string, w Windows) *Redraw {
	r := &Redraw{stream: rng.Hash(stream), count: func(traces.Part) int { return 0 }}
	if w, ok := w.(interface{ Count(traces.Part) int }); ok {
		r.count = w.Count
	}
	return r
}

// draws is how many windows the seed draws.
const draws = 100

// Find calls begin with the windows that episode ep of part p may have until one has a decision, and returns false if
// none has. begin plays a window up to its first decision and reports whether there is one.
func (r *Redraw) Find(ep env.Episode, p traces.Part, begin func(env.Episode) (bool, error)) (bool, error) {
	if decides, err := begin(ep); decides || err != nil || ep.Window >= 0 {
		return decides, err
	}
	asked := ep
	for try := uint64(1); try < draws; try++ {
		asked.Seed = rng.At(ep.Seed, r.stream, try)
		if decides, err := begin(asked); decides || err != nil {
			return decides, err
		}
	}
	asked.Seed = 0
	if f := r.firsts[p]; f.known && f.window >= 0 {
		asked.Window = f.window
		return begin(asked)
	}
	return r.Some(p, asked, begin)
}

// Some plays windows of part p by number, with seed 0 and the split of ep, until one has a decision, and returns false
// if none has.
func (r *Redraw) Some(p traces.Part, ep env.Episode, begin func(env.Episode) (bool, error)) (decides bool, err error) {
	if r.firsts[p].known && r.firsts[p].window < 0 {
		return false, nil
	}
	found := firstWindow{known: true, window: -1}
	for k := range r.count(p) {
		if decides, err = begin(env.Episode{Window: k, Split: ep.Split}); err != nil {
			return false, err
		}
		if decides {
			found.window = k
			break
		}
	}
	r.firsts[p] = found
	return decides, nil
}
