package ppo

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/env"
	"clustergym/env/control"
	"clustergym/nets"
	"clustergym/replay"
)

// played is a model with some episodes of its own play, longer than what its losses take at a time.
func played(t *testing.T, id string, episodes int) (*Model, *replay.Episodes) {
	t.Helper()
	e, err := control.New(id)
	if err != nil {
		t.Fatal(err)
	}
	c := ModelConfig{ScaleActions: true, Network: small().Network}
	m, err := NewModel(c, e.Spec(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s := e.Spec()
	r, err := replay.NewEpisodes(s, 0.99)
	if err != nil {
		t.Fatal(err)
	}
	b, a, src := env.NewBatch(s, 1), env.NewActions(s, 1), []*rand.Rand{rand.New(rand.NewPCG(1, 2))}
	ts := env.NewTimeStep(s)
	for k := range episodes {
		if err := e.Reset(context.Background(), env.Episode{Seed: uint64(k), Window: -1}, ts); err != nil {
			t.Fatal(err)
		}
		for !ts.Kind.Last() {
			b.Kind[0] = ts.Kind
			copy(b.Obs, ts.Obs)
			copy(b.Mask, ts.Mask)
			if err := m.Act(context.Background(), b, a, src); err != nil {
				t.Fatal(err)
			}
			r.Act(ts, a.Row(0), m.Numbers()[:len(s.Action.Low)])
			if err := e.Step(context.Background(), a.Row(0), ts); err != nil {
				t.Fatal(err)
			}
			r.After(ts)
		}
	}
	if err := m.Score(r); err != nil {
		t.Fatal(err)
	}
	for i := range r.Len() {
		r.Advantage = append(r.Advantage, float32(math.Sin(float64(i))))
	}
	return m, r
}

// Along a direction, the losses change as their gradients say.
func TestAModelsGradientsAreThoseOfItsLosses(t *testing.T) {
	for _, id := range []string{"Nav2D-v1", "InvalidAction-v1"} {
		m, e := played(t, id, 3)
		if e.Len() < modelRows+10 {
			t.Fatalf("%s: %d steps are one piece", id, e.Len())
		}
		theta := m.Params()
		g, start := theta.Like(), theta.Clone()
		src := rand.New(rand.NewPCG(3, 4))
		for i := range theta.Data { // away from the policy that acted
			theta.Data[i] += 0.02 * float32(src.NormFloat64())
		}
		from := theta.Clone()
		for name, loss := range map[string]func(g *nets.Params) (float64, error){
			"surrogate":  func(g *nets.Params) (float64, error) { return m.Surrogate(g, e, 0, 0.01) },
			"divergence": func(g *nets.Params) (float64, error) { return m.Divergence(g, e) },
		} {
			if _, err := loss(g); err != nil {
				t.Fatal(err)
			}
			direction, slope := theta.Like(), 0.0
			for i := range direction.Data {
				direction.Data[i] = float32(src.NormFloat64())
				slope += float64(direction.Data[i]) * float64(g.Data[i])
			}
			const h = 2e-3
			at := func(sign float32) float64 {
				for i, x := range from.Data {
					theta.Data[i] = x + sign*h*direction.Data[i]
				}
				v, err := loss(nil)
				if err != nil {
					t.Fatal(err)
				}
				copy(theta.Data, from.Data)
				return v
			}
			if got := (at(1) - at(-1)) / (2 * h); math.Abs(got-slope) > 0.02*math.Abs(slope)+2e-4 {
				t.Errorf("%s, %s: it changes by %v, its gradient says %v", id, name, got, slope)
			}
		}
		// Without a gradient the values are the same.
		for name, loss := range map[string]func(g *nets.Params) (float64, error){
			"surrogate":  func(g *nets.Params) (float64, error) { return m.Surrogate(g, e, 0.1, 0.01) },
			"divergence": func(g *nets.Params) (float64, error) { return m.Divergence(g, e) },
		} {
			with, err := loss(g)
			if err != nil {
				t.Fatal(err)
			}
			if without, err := loss(nil); err != nil || math.Abs(with-without) > 1e-5 {
				t.Errorf("%s, %s: %v with its gradient, %v (%v) without", id, name, with, without, err)
			}
		}
		// At the policy that acted every ratio is 1: the divergence is 0 and the loss minus the mean advantage.
		copy(theta.Data, start.Data)
		if kl, err := m.Divergence(g, e); err != nil || math.Abs(kl) > 1e-7 {
			t.Errorf("%s: divergence from itself %v, %v", id, kl, err)
		}
		mean := 0.0
		for _, a := range e.Advantage {
			mean -= float64(a) / float64(e.Len())
		}
		if loss, err := m.Surrogate(nil, e, 0.2, 0); err != nil || math.Abs(loss-mean) > 1e-6 {
			t.Errorf("%s: loss %v, %v, want %v", id, loss, err, mean)
		}
	}
}

func TestAModelNeedsEpisodesThatAreScored(t *testing.T) {
	m, e := played(t, "Nav2D-v1", 1)
	e.Advantage = e.Advantage[:3]
	if _, err := m.Surrogate(nil, e, 0, 0); err == nil {
		t.Error("too few advantages: no error")
	}
	e.Head = nil
	if _, err := m.Divergence(nil, e); err == nil {
		t.Error("no outputs of the policy that acted: no error")
	}
}
