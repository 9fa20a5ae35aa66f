package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/server"
	"clustergym/env"
	"clustergym/lab/arena"
)

// once is atHome for policies that begin each window once. begun counts the calls that report a beginning.
func once(begun *int, fn func(ctx context.Context, f server.Factory) error) *arena.External {
	x := atHome(30*time.Second, fn, "x")
	x.Once, x.Begun = true, func() error { *begun++; return nil }
	return x
}

// A policy that leaves a window after a step has no result, however it leaves: so it cannot try a window again and
// again.
func TestAWindowThatIsLeftIsNotPlayedAgain(t *testing.T) {
	reset := func(ctx context.Context, e env.Env, steps int) (*env.TimeStep, error) {
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
			return ts, err
		}
		return ts, playOn(ctx, e, "fifo", ts, steps)
	}
	for name, play := range map[string]func(ctx context.Context, f server.Factory) error{
		"by a reset": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 1)
			if err != nil {
				return err
			}
			if _, err := reset(ctx, m.Envs[0], 5); err != nil {
				return err
			}
			if _, err := reset(ctx, m.Envs[0], 0); !errors.Is(err, env.ErrEpisode) ||
				!strings.Contains(err.Error(), "each window is played once") {
				return fmt.Errorf("a window was begun after one that was left: %v", err)
			}
			return closeAll(m)
		},
		"by the end of its session": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 1)
			if err != nil {
				return err
			}
			if _, err := reset(ctx, m.Envs[0], 5); err != nil {
				return err
			}
			if err := closeAll(m); err != nil {
				return err
			}
			if _, err := open(ctx, f, "x", 1); err == nil || !strings.Contains(err.Error(), "each window is played once") {
				return fmt.Errorf("another session was opened: %v", err)
			}
			return nil
		},
		"one of several rows": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 3)
			if err != nil {
				return err
			}
			for _, e := range m.Envs {
				if _, err := reset(ctx, e, 2); err != nil {
					return err
				}
			}
			_, _ = reset(ctx, m.Envs[1], 0) // refused
			return closeAll(m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun := 0
			_, err := arena.Scores(t.Context(), evalRun(), arena.EvalOptions{Workers: 1, External: once(&begun, play)})
			if err == nil || !strings.Contains(err.Error(), "policy x left window") || begun != 1 {
				t.Errorf("got %v, and it began %d times", err, begun)
			}
		})
	}
}

// What no step was taken of was not played: programs reset twice at the beginning, and the end of a window begins the
// next one. A player that has no window left plays something else, which does not count.
func TestOnceIsEnoughForHonestPlay(t *testing.T) {
	for name, play := range map[string]func(ctx context.Context, f server.Factory) error{
		"resets before the first step": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 1)
			if err != nil {
				return err
			}
			ts := env.NewTimeStep(m.Envs[0].Spec())
			for range 3 {
				if err := m.Envs[0].Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
					return err
				}
			}
			return errors.Join(playRule(ctx, m.Envs[0], "sjf", 6), closeAll(m)) // two more than there are
		},
		"a session between windows": func(ctx context.Context, f server.Factory) error {
			for range 4 {
				m, err := open(ctx, f, "x", 1)
				if err != nil {
					return err
				}
				if err := errors.Join(playRule(ctx, m.Envs[0], "sjf", 1), closeAll(m)); err != nil {
					return err
				}
			}
			return nil
		},
		"rows at once": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 3)
			if err != nil {
				return err
			}
			return playRows(ctx, m.Envs)
		},
		"more rows than windows": func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 7)
			if err != nil {
				return err
			}
			return playRows(ctx, m.Envs)
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun := 0
			r, err := arena.Evaluate(t.Context(), evalRun(), arena.EvalOptions{Workers: 1, External: once(&begun, play)})
			if err != nil {
				t.Fatal(err)
			}
			sameRow(t, r, "x")
			if begun != 1 {
				t.Errorf("it began %d times", begun)
			}
		})
	}
}
