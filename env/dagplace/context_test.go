package dagplace

import (
	"context"
	"errors"
	"slices"
	"testing"

	"clustergym/env"
)

// counted is a context that ends at the call number `last` of Err.
type counted struct {
	context.Context
	calls, last int
}

func (c *counted) Err() error {
	if c.calls++; c.last > 0 && c.calls >= c.last {
		return context.Canceled
	}
	return nil
}

// A reset looks at its context for every task of every plan that it makes, and while it draws the graph. Wherever that
// ends it, the error is the context's, and the next reset is as if nothing had been.
func TestAResetOfALargeGraphEndsWithItsContext(t *testing.T) {
	for _, kind := range []string{"erdos", "layered"} {
		cfg := DefaultConfig()
		cfg.Graph, cfg.Tasks, cfg.GPUs, cfg.Degree = kind, 1500, 12, 12
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		whole := &counted{Context: t.Context()}
		want := env.NewTimeStep(e.Spec())
		if err := e.Reset(whole, env.Episode{Seed: 3}, want); err != nil {
			t.Fatal(err)
		}
		// Three plans, and an edge in 4096.
		if least := 3*cfg.Tasks + int(cfg.Degree)*cfg.Tasks/2/4096; whole.calls < least {
			t.Fatalf("%s: a reset looks at its context %d times, want %d or more", kind, whole.calls, least)
		}
		ts := env.NewTimeStep(e.Spec())
		for last := 1; last <= whole.calls; last += 1 + whole.calls/40 {
			if err := e.Reset(&counted{Context: t.Context(), last: last}, env.Episode{Seed: 3}, ts); !errors.Is(err,
				context.Canceled) {
				t.Fatalf("%s: a reset whose context ends at its look number %d: %v", kind, last, err)
			}
			if err := e.Step(t.Context(), env.Action{Disc: []int32{0}}, ts); !errors.Is(err, env.ErrResetNeeded) {
				t.Fatalf("%s: a step after a reset that was ended: %v", kind, err)
			}
		}
		if err := e.Reset(t.Context(), env.Episode{Seed: 3}, ts); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ts.Obs, want.Obs) || !slices.Equal(ts.Info, want.Info) {
			t.Errorf("%s: the episode is another after resets that were ended", kind)
		}
		for _, planner := range Planners() {
			if _, _, err := e.Plan(&counted{Context: t.Context(), last: 5}, env.Episode{Seed: 3}, planner); !errors.Is(err,
				context.Canceled) {
				t.Errorf("%s: planner %s with a context that has ended: %v", kind, planner, err)
			}
		}
	}
}
