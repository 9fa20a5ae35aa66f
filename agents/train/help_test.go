package train

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/vec"
)

// counting is an environment whose episodes can be worked out by hand: its episode e = 1, 2, … has 1 + e mod 3
// steps of reward e, and its infos at the end are e and, for even e only, 10·e.
type counting struct {
	e, step int
	fail    error // of Step, once set
}

var spec = env.Spec{
	ID:     "Counting-v1",
	Obs:    []env.Field{{Name: "zero", Shape: []int{1}, Unit: "none"}},
	Action: env.ActionSpec{Sizes: []int{2}},
	Info:   []env.Field{{Name: "number"}, {Name: "even"}},
	Solved: math.NaN(), NoOp: -1,
}

func (c *counting) Spec() env.Spec { return spec }

func (c *counting) Reset(_ context.Context, _ env.Episode, ts *env.TimeStep) error {
	c.e++
	c.step = 0
	c.fill(ts, 0, env.First)
	return nil
}

func (c *counting) Step(_ context.Context, _ env.Action, ts *env.TimeStep) error {
	if c.fail != nil {
		return c.fail
	}
	c.step++
	kind := env.Mid
	if c.step == 1+c.e%3 {
		kind = env.Terminated
	}
	c.fill(ts, float64(c.e), kind)
	return nil
}

func (c *counting) fill(ts *env.TimeStep, reward float64, kind env.Kind) {
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, 0
	ts.Obs[0] = 0
	ts.Mask[0], ts.Mask[1] = true, true
	ts.Info[0], ts.Info[1] = math.NaN(), math.NaN()
	if kind.Last() {
		ts.Info[0] = float64(c.e)
		if c.e%2 == 0 {
			ts.Info[1] = 10 * float64(c.e)
		}
	}
}

func (c *counting) Close() error { return nil }

// scripted is an agent that learns after every second observation, twice, and reports what is told in the test.
type scripted struct {
	act       func(ctx context.Context) error // called by Act, nil = nothing
	observe   error
	learn     error
	observed  int
	pending   int
	updates   int
	shares    []float64
	different bool // rows' streams drew different numbers
}

var _ agents.Agent = (*scripted)(nil)

func (a *scripted) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if a.act != nil {
		if err := a.act(ctx); err != nil {
			return err
		}
	}
	for i := range b.N {
		dst.Disc[i] = int32(src[i].IntN(2))
		a.different = a.different || dst.Disc[i] != dst.Disc[0]
	}
	return ctx.Err()
}

func (a *scripted) Observe(*env.Batch, *env.Actions, *env.Batch) error {
	if a.observed++; a.observed%2 == 0 {
		a.pending = 2
	}
	return a.observe
}

// Learn reports the number of the update, and every other time another number as well.
func (a *scripted) Learn(context.Context) (agents.Stats, error) {
	if a.learn != nil {
		return nil, a.learn
	}
	if a.pending == 0 {
		return nil, agents.ErrNotReady
	}
	a.pending--
	a.updates++
	s := agents.Stats{{Name: "update", Value: float64(a.updates)}}
	if a.updates%2 == 0 {
		s = append(s, agents.Stat{Name: "even", Value: 100})
	}
	return s, nil
}

func (a *scripted) Greedy() agents.Policy  { return a }
func (a *scripted) Parts() []agents.Part   { return nil }
func (a *scripted) Progress(share float64) { a.shares = append(a.shares, share) }

// newScripted is a trainer of a scripted agent in rows counting environments.
func newScripted(t *testing.T, cfg Config) (*Trainer, *scripted, []*counting) {
	t.Helper()
	var (
		envs []env.Env
		own  []*counting
	)
	for range cfg.Envs {
		own = append(own, &counting{})
		envs = append(envs, own[len(own)-1])
	}
	v, err := vec.New(vec.Config{Workers: 1, Autoreset: vec.SameStep}, envs...)
	if err != nil {
		t.Fatal(err)
	}
	a := &scripted{}
	tr, err := New(cfg, v, a, 1)
	if err != nil {
		t.Fatal(err)
	}
	return tr, a, own
}

// bytesOf is what every part writes.
func bytesOf(t *testing.T, parts []agents.Part) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, p := range parts {
		var b bytes.Buffer
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		out[p.Name()] = b.Bytes()
	}
	return out
}
