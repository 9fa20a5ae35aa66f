package ppo

import (
	"testing"

	"clustergym/env"
)

// Ten like jobs share what the policy gives to starting one; a wait that is likelier than each of them alone must
// not win against all of them together.
func TestGreedyWaitsOnlyWhereWaitingIsLikelierThanActing(t *testing.T) {
	for _, c := range []struct {
		name   string
		noop   int
		logits []float32
		mask   []bool
		want   int32
	}{
		{"a split vote", 3, []float32{1, 1.1, 1, 1.5}, []bool{true, true, true, true}, 1},
		{"a clear wait", 3, []float32{1, 1.1, 1, 4}, []bool{true, true, true, true}, 3},
		{"two actions are compared as they are", 3, []float32{1, 0, 0, 1.5}, []bool{true, false, false, true}, 3},
		{"the wait is masked", 3, []float32{1, 0, 2, 9}, []bool{true, true, false, false}, 0},
		{"only the wait is legal", 3, []float32{1, 0, 2, -9}, []bool{false, false, false, true}, 3},
		{"no action does nothing", -1, []float32{1, 1.1, 1, 1.5}, []bool{true, true, true, true}, 3},
	} {
		s := env.Spec{ID: "test", Action: env.ActionSpec{Sizes: []int{4}}, NoOp: c.noop}
		a := newActor(DefaultConfig(), s, nil, nil)
		b := env.NewBatch(s, 1)
		copy(b.Mask, c.mask)
		act := env.NewActions(s, 1)
		if err := a.fit(b, act, nil, false); err != nil {
			t.Fatal(err)
		}
		copy(a.head, c.logits)
		if err := a.best(b, 0, act); err != nil || act.Disc[0] != c.want {
			t.Errorf("%s: got action %d (%v), want %d", c.name, act.Disc[0], err, c.want)
		}
	}
}
