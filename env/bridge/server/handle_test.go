package server

import (
	"math/rand/v2"
	"testing"

	"clustergym/env"
	"clustergym/env/bridge/wire"
)

func (e savedToy) SampleTask(src *rand.Rand, dst []float64) {
	dst[0] = 2 * src.Float64()
	dst[1], dst[2] = 2*src.Float64()-1, 2*src.Float64()-1
}

// toys is a factory of toys. edit may change the k-th one.
func toys(edit func(k int, e *toy)) *testFactory {
	k := -1
	next := func() *toy {
		k++
		e := newToy()
		if edit != nil {
			edit(k, e)
		}
		return e
	}
	return &testFactory{makers: map[string]makeOne{
		"Toy-v3":  func(wire.Map) (env.Env, error) { return savedToy{next()}, nil },
		"Bare-v3": func(wire.Map) (env.Env, error) { return next(), nil },
	}}
}

func TestStepsAreAnsweredByColumn(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3))
	m := d.do(wire.OpReset, field("seed", 10))
	is(t, "obs aa", at(m, "obs", "aa"), 10, 0, 11, 0, 12, 0)
	is(t, "obs zz", at(m, "obs", "zz"), 0.5, 0.5, 0.5)
	is(t, "mask", at(m, "info", "action_mask"), 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1)
	m = d.do(wire.OpStep, field("a", i64s(0, 2, 3)))
	is(t, "obs aa", at(m, "obs", "aa"), 10, 1, 11, 1, 12, 1)
	is(t, "r", m.Get("r"), 0, 2, 3)
	is(t, "te", m.Get("te"), 0, 0, 0)
	is(t, "tr", m.Get("tr"), 0, 0, 0)
	is(t, "discount", at(m, "info", "discount"), 0.9, 0.9, 0.9)
	is(t, "elapsed", at(m, "info", "elapsed_s"), 60, 60, 60)
}
