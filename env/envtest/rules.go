package envtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"clustergym/env"
)

func (s *suite) episodesKeepToTheSpec() error {
	empty := make([][]float32, len(s.spec.Obs))                                     // by field: the first empty row seen
	before, atEnd := make([]bool, len(s.spec.Info)), make([]bool, len(s.spec.Info)) // whether an info was ever a number
	for k := range s.episodes {
		steps, last := -1, env.First
		err := s.play(s.first(), s.episode(k), func(ts *env.TimeStep) error {
			steps++
			last = ts.Kind
			if (ts.Kind == env.First) != (steps == 0) {
				return fmt.Errorf("kind is %v", ts.Kind)
			}
			if limit := s.spec.MaxSteps; limit > 0 && steps == limit && !ts.Kind.Last() {
				return fmt.Errorf("MaxSteps is %d and the episode goes on", limit)
			}
			for i, f := range s.spec.Info {
				if v := ts.Info[i]; math.IsInf(v, 0) || f.Low < f.High && (v < float64(f.Low) || v > float64(f.High)) {
					return fmt.Errorf("info %q is %v, outside [%v, %v]", f.Name, v, f.Low, f.High)
				} else if !math.IsNaN(v) {
					before[i], atEnd[i] = before[i] || !ts.Kind.Last(), atEnd[i] || ts.Kind.Last()
				}
			}
			if err := s.spec.Check(ts); err != nil {
				return err
			}
			return emptyRowsAreAlike(s.spec, ts, empty)
		})
		if err != nil {
			return fmt.Errorf("episode %d: %w", k, err)
		}
		if !last.Last() {
			return fmt.Errorf("episode %d has not ended after %d steps", k, steps)
		}
	}
	for i, f := range s.spec.Info {
		if atEnd[i] && !before[i] && !f.Metric {
			return fmt.Errorf("info %q is known only with last steps: want it to be a Metric, so that clients get it with them",
				f.Name)
		}
	}
	return nil
}

// emptyRowsAreAlike checks the rows that a table's column Filled says are empty: as they hold nothing, they all look
// the same.
func emptyRowsAreAlike(sp env.Spec, ts *env.TimeStep, empty [][]float32) error {
	at := 0
	for i, f := range sp.Obs {
		x := ts.Obs[at : at+f.Len()]
		at += f.Len()
		if f.Filled == 0 {
			continue
		}
		for r, w := 0, f.Shape[1]; r < f.Shape[0]; r++ {
			row := x[r*w : (r+1)*w]
			switch v := row[f.Filled-1]; {
			case v < 0:
				return fmt.Errorf("observation %q: column %d, which says that row %d is filled, is %v, want at least 0", f.Name,
					f.Filled-1, r, v)
			case v > 0:
			case empty[i] == nil:
				empty[i] = slices.Clone(row)
			case !slices.Equal(row, empty[i]):
				return fmt.Errorf("observation %q: row %d is empty and holds %v, another empty row %v", f.Name, r, row, empty[i])
			}
		}
	}
	return nil
}

// refused checks that err is want and that ts still equals its copy before.
func refused(what string, err, want error, ts, before *env.TimeStep) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: error is %v, want %v", what, err, want)
	}
	if d := digestOf(ts).differs(digestOf(before)); d != nil {
		return fmt.Errorf("%s: the error changed the time step: %w", what, d)
	}
	return nil
}

// anyAction returns an action of the right lengths.
func (s *suite) anyAction() env.Action { return s.player(0).a }

func (s *suite) stepNeedsAnEpisode() error {
	ctx, e := context.Background(), s.first()
	ts := env.NewTimeStep(s.spec)
	litter(ts)
	before := clone(ts)
	if err := refused("Step before Reset", e.Step(ctx, s.anyAction(), ts), env.ErrResetNeeded, ts, before); err != nil {
		return err
	}
	for k := range 2 {
		var last *env.TimeStep
		if err := s.play(e, s.episode(k), func(ts *env.TimeStep) error { last = ts; return nil }); err != nil {
			return err
		}
		if !last.Kind.Last() {
			return skip("no episode ended")
		}
		before := clone(last)
		for range 2 { // the refusal itself must not begin anything
			if err := refused("Step after the end", e.Step(ctx, s.anyAction(), last), env.ErrResetNeeded, last, before); err !=
				nil {
				return err
			}
		}
	}
	return nil
}

func (s *suite) illegalActionsChangeNothing() error {
	e := s.first()
	want, err := s.record(s.open(), s.episode(0))
	if err != nil {
		return err
	}
	ts, p, err := s.advance(e, s.episode(0), 0)
	if err != nil {
		return err
	}
	tried, draw, see := 0, s.player(99).src, follow(want, 0)
	return s.playOn(e, ts, p, func(ts *env.TimeStep) error {
		if err := see(ts); err != nil {
			return fmt.Errorf("after illegal actions: %w", err)
		}
		if tried++; tried > 50 || ts.Kind.Last() {
			return nil
		}
		before := clone(ts)
		for _, c := range s.illegal(ts, draw.IntN) {
			if err := refused(c.what, e.Step(context.Background(), c.a, ts), env.ErrIllegalAction, ts, before); err != nil {
				return err
			}
		}
		return nil
	})
}

type illegalAction struct {
	what string
	a    env.Action
}

// illegal lists actions that are illegal at ts. intN picks the masked values to try.
func (s *suite) illegal(ts *env.TimeStep, intN func(int) int) []illegalAction {
	var all []illegalAction
	base := s.player(uint64(intN(1 << 30))).choose(ts)
	add := func(what string, change func(a *env.Action)) {
		a := env.Action{Disc: append([]int32(nil), base.Disc...), Cont: append([]float32(nil), base.Cont...)}
		change(&a)
		all = append(all, illegalAction{what, a})
	}
	at := 0
	for f, n := range s.spec.Action.Sizes {
		for _, v := range []int32{-1, int32(n), math.MinInt32, math.MaxInt32} {
			add(fmt.Sprintf("factor %d is %d of %d", f, v, n), func(a *env.Action) { a.Disc[f] = v })
		}
		var masked []int32
		for i, ok := range ts.Mask[at : at+n] {
			if !ok {
				masked = append(masked, int32(i))
			}
		}
		if len(masked) > 0 {
			v := masked[intN(len(masked))]
			add(fmt.Sprintf("factor %d is %d, which is masked", f, v), func(a *env.Action) { a.Disc[f] = v })
		}
		at += n
	}
	for i := range s.spec.Action.Low {
		lo, hi := s.spec.Action.Low[i], s.spec.Action.High[i]
		values := []float32{float32(math.NaN())}
		if !math.IsInf(float64(hi), 0) {
			values = append(values, math.Nextafter32(hi, float32(math.Inf(1))), float32(math.Inf(1)))
		}
		if !math.IsInf(float64(lo), 0) {
			values = append(values, math.Nextafter32(lo, float32(math.Inf(-1))), float32(math.Inf(-1)))
		}
		for _, v := range values {
			add(fmt.Sprintf("dimension %d is %v, outside [%v, %v]", i, v, lo, hi), func(a *env.Action) { a.Cont[i] = v })
		}
	}
	if len(base.Disc) > 0 {
		add("no indices", func(a *env.Action) { a.Disc = nil })
	}
	if len(base.Cont) > 0 {
		add("no numbers", func(a *env.Action) { a.Cont = nil })
	}
	add("an index too many", func(a *env.Action) { a.Disc = append(a.Disc, 0) })
	add("a number too many", func(a *env.Action) { a.Cont = append(a.Cont, 0) })
	return all
}

func (s *suite) cancelledContextChangesNothing() error {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	e := s.first()
	want, err := s.record(s.open(), s.episode(0))
	if err != nil {
		return err
	}
	ts, p, err := s.advance(e, s.episode(0), 0)
	if err != nil {
		return err
	}
	seen := 0
	err = s.playOn(e, ts, p, func(ts *env.TimeStep) error {
		if err := digestOf(ts).differs(want[seen]); err != nil {
			return fmt.Errorf("after a cancelled Step: %w", err)
		}
		if seen++; seen > 20 || ts.Kind.Last() {
			return nil
		}
		// The player that chooses here must not be the one that continues the episode.
		a := s.player(uint64(seen)).choose(ts)
		return refused("Step with a cancelled context", e.Step(cancelled, a, ts), context.Canceled, ts, clone(ts))
	})
	if err != nil {
		return err
	}
	if ts, _, err = s.advance(e, s.episode(0), 0); err != nil { // begins an episode, which the failed Reset ends
		return err
	}
	litter(ts)
	before := clone(ts)
	if err := refused("Reset with a cancelled context", e.Reset(cancelled, s.episode(0), ts), context.Canceled, ts,
		before); err != nil {
		return err
	}
	if err := refused("Step after a failed Reset", e.Step(context.Background(), s.anyAction(), ts), env.ErrResetNeeded, ts,
		before); err != nil {
		return err
	}
	return s.repeat(e, s.episode(0), want)
}

func (s *suite) closedIsClosed() error {
	ctx, e := context.Background(), s.first()
	ts := env.NewTimeStep(s.spec)
	if err := e.Reset(ctx, s.episode(0), ts); err != nil {
		return err
	}
	var blob []byte
	snapper, snaps := e.(env.Snapshotter)
	if snaps {
		var err error
		if blob, err = snapper.AppendSnapshot(nil); errors.Is(err, errors.ErrUnsupported) {
			snaps = false
		}
	}
	for range 2 {
		if err := e.Close(); err != nil {
			return fmt.Errorf("Close: %w", err)
		}
	}
	before := clone(ts)
	if err := refused("Reset after Close", e.Reset(ctx, s.episode(0), ts), env.ErrClosed, ts, before); err != nil {
		return err
	}
	if err := refused("Step after Close", e.Step(ctx, s.anyAction(), ts), env.ErrClosed, ts, before); err != nil {
		return err
	}
	if snaps {
		if _, err := snapper.AppendSnapshot(nil); !errors.Is(err, env.ErrClosed) {
			return fmt.Errorf("AppendSnapshot after Close: error is %v, want %v", err, env.ErrClosed)
		}
		if err := refused("RestoreSnapshot after Close", snapper.RestoreSnapshot(blob, ts), env.ErrClosed, ts, before); err !=
			nil {
			return err
		}
	}
	// Closing one instance must not affect the others.
	_, err := s.record(s.open(), s.episode(0))
	return err
}
