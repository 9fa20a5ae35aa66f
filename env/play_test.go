package env_test

import (
	"context"
	"errors"
	"testing"

	"clustergym/env"
)

// countdown ends after a number of steps equal to its seed, and pays each action as its reward.
type countdown struct{ left int }

func (c *countdown) Spec() env.Spec { return env.Spec{Action: env.ActionSpec{Sizes: []int{9}}} }
func (c *countdown) Close() error   { return nil }

func (c *countdown) Reset(_ context.Context, ep env.Episode, ts *env.TimeStep) error {
	if ep.Seed == 0 {
		return env.ErrEpisode
	}
	c.left, ts.Kind, ts.Reward = int(ep.Seed), env.First, 0
	return nil
}

func (c *countdown) Step(_ context.Context, a env.Action, ts *env.TimeStep) error {
	if a.Disc[0] > 8 {
		return env.ErrIllegalAction
	}
	c.left--
	ts.Kind, ts.Reward = env.Mid, float64(a.Disc[0])
	if c.left == 0 {
		ts.Kind = env.Truncated
	}
	return nil
}

func TestPlayGoesToTheEndAndShowsEveryStep(t *testing.T) {
	ctx, e, ts := context.Background(), &countdown{}, env.NewTimeStep((&countdown{}).Spec())
	next := int32(0)
	choose := func(_ *env.TimeStep, a env.Action) error {
		next++
		a.Disc[0] = next
		return nil
	}
	var seen []env.Kind
	shown := 0.0
	ret, steps, err := env.Play(ctx, e, env.Episode{Seed: 3}, ts, choose, func(a env.Action, ts *env.TimeStep) {
		seen = append(seen, ts.Kind)
		shown += float64(a.Disc[0])
	})
	if err != nil || ret != 6 || shown != 6 || steps != 3 || ts.Kind != env.Truncated || len(seen) != 3 ||
		seen[1] != env.Mid {
		t.Errorf("return %v (%v) after %d steps, %v, kinds %v, kind %v", ret, shown, steps, err, seen, ts.Kind)
	}
	if _, _, err := env.Play(ctx, e, env.Episode{}, ts, choose); !errors.Is(err, env.ErrEpisode) {
		t.Errorf("an episode that does not exist: %v", err)
	}
	fault := errors.New("no idea")
	if _, steps, err := env.Play(ctx, e, env.Episode{Seed: 2}, ts,
		func(*env.TimeStep, env.Action) error { return fault }); err != fault || steps != 0 {
		t.Errorf("a choice that fails: %v after %d steps", err, steps)
	}
	next = 7
	if _, steps, err := env.Play(ctx, e, env.Episode{Seed: 5}, ts, choose); !errors.Is(err, env.ErrIllegalAction) ||
		steps != 1 {
		t.Errorf("an illegal action: %v after %d steps", err, steps)
	}
}
