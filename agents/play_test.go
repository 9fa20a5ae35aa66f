package agents_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/sched"
)

var _ agents.Policy = (*sched.Actor)(nil) // rules of environments are policies

// drawn takes an action at random and counts the first time steps that it is shown.
type drawn struct {
	firsts int
	fault  error
}

func (d *drawn) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if b.Kind[0] == env.First {
		d.firsts++
	}
	dst.Disc[0] = src[0].Int32N(2)
	return d.fault
}

func TestPlayerPlaysWholeEpisodes(t *testing.T) {
	ctx := context.Background()
	e, err := control.New("CartPole-v1")
	if err != nil {
		t.Fatal(err)
	}
	d := new(drawn)
	p := agents.NewPlayer(e, d)
	play := func(seed uint64) (ret float64, obs float32) {
		ret, steps, err := p.Play(ctx, env.Episode{Seed: seed, Window: -1}, rand.New(rand.NewPCG(seed, 1)))
		if err != nil || p.TimeStep().Kind != env.Terminated || ret != float64(steps) {
			t.Fatalf("return %v after %d steps, kind %v, %v", ret, steps, p.TimeStep().Kind, err)
		}
		return ret, p.TimeStep().Obs[0]
	}
	a, x := play(1)
	_, other := play(2)
	again, y := play(1)
	if a != again || x != y || x == other {
		t.Errorf("returns %v and %v again; last observations %v and %v again, %v of another episode", a, again, x, y, other)
	}
	if d.firsts != 3 {
		t.Errorf("the policy saw %d first time steps, want 3", d.firsts)
	}
	d.fault = errors.New("no idea")
	if _, _, err := p.Play(ctx, env.Episode{Seed: 1, Window: -1}, rand.New(rand.NewPCG(1, 1))); err != d.fault {
		t.Errorf("a policy that fails: %v", err)
	}
}
