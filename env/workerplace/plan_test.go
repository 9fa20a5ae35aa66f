package workerplace

import (
	"math"
	"testing"

	"clustergym/env"
)

// Two jobs of one worker on one server of room for both, that take two intervals and one. The shorter one goes first;
// beside it the other adds what both keep less what it was: 2·0.4 − 1 < 0, so that a planner that waits has it come
// when the first has gone.
func TestAPlannerWaitsWhereThatPays(t *testing.T) {
	for _, c := range []struct{ keep, wait, want float64 }{
		{0.4, 0, -2},        // 1, then 1 + 2: (1 + 3)/2
		{0.4, Never, -3.15}, // the first ends after 2.5, the other is slow until 3 and ends after 3.8
		{0.9, 0, -1.655556}, // adds 0.8: the first ends after 1 + 1/9, the other after 2.2
		{0.9, 0.9, -2},      // adds less than 0.9 of its own
	} {
		e := newEnv(t, func(c *Config) { c.Jobs, c.Servers = 2, 1 })
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts); err != nil {
			t.Fatal(err)
		}
		for i := range e.jobs {
			e.jobs[i].kind, e.jobs[i].workers, e.jobs[i].work, e.jobs[i].arrives = 0, 1, float64(2-i), e.time
		}
		e.truth.logs[0][0] = math.Log(c.keep)
		e.next, e.waiting = 0, e.waiting[:0]
		e.arrive()
		e.look()
		ret := 0.0
		for p := (&Planner{Wait: c.wait}); !ts.Kind.Last(); {
			k, err := p.Choose(e)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{k}}, ts); err != nil {
				t.Fatal(err)
			}
			ret += ts.Reward
		}
		if math.Abs(ret-c.want) > 1e-4 {
			t.Errorf("keeping %v, waiting %v: return %v, want %v", c.keep, c.wait, ret, c.want)
		}
	}
}
