package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestFaultsSayKeyValueAndWish(t *testing.T) {
	for _, c := range []struct {
		f    *Fault
		want string
	}{
		{New("agent.gamma", 1.5, "a number in (0, 1]"), "agent.gamma: got 1.5, want a number in (0, 1]"},
		{New("mode", "medium", "fast or slow"), `mode: got "medium", want fast or slow`},
		{New("list", []int{1}, "two"), "list: got [1], want two"},
	} {
		if got := c.f.Error(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestListCollectsAllFaultsAndNothingElse(t *testing.T) {
	var l List
	l.Add(true, "fine", 1, "1")
	l.Join("", nil)
	l.Join("section", nil)
	if err := l.Err(); err != nil {
		t.Fatalf("an empty list is %v", err)
	}
	l.Add(false, "a", 1, "2")
	l.Add(false, "b", "x", "y")
	if got, want := l.Err().Error(), "a: got 1, want 2\nb: got \"x\", want y"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestJoinPutsThePrefixBeforeEveryKey(t *testing.T) {
	var inner, middle, outer List
	inner.Add(false, "gamma", 2, "1")
	inner.Add(false, "[3].x", 2, "1")
	middle.Join("ppo", inner.Err())
	middle.Join("", inner.Err())
	outer.Join("runs[0]", fmt.Errorf("wrapped: %w", middle.Err()))
	var keys []string
	for _, f := range All(outer.Err()) {
		keys = append(keys, f.Key)
	}
	want := "[runs[0].ppo.gamma runs[0].ppo[3].x runs[0].gamma runs[0][3].x]"
	if got := fmt.Sprint(keys); got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
	if f := All(inner.Err())[0]; f.Key != "gamma" {
		t.Errorf("Join changed the inner fault's key to %s", f.Key)
	}
}

func TestJoinKeepsErrorsThatAreNoFaults(t *testing.T) {
	cause := errors.New("disk on fire")
	var l List
	l.Join("x", cause)
	if err := l.Err(); !errors.Is(err, cause) || len(All(err)) != 0 {
		t.Errorf("error %v", err)
	}
}

func TestAllLooksIntoJoinedAndWrappedErrors(t *testing.T) {
	a, b, c := New("a", 1, ""), New("b", 2, ""), New("c", 3, "")
	err := fmt.Errorf("config: %w", errors.Join(a, errors.New("other"), fmt.Errorf("deep: %w", errors.Join(b, c))))
	all := All(err)
	if len(all) != 3 || all[0] != a || all[1] != b || all[2] != c {
		t.Errorf("All = %v", all)
	}
	if All(nil) != nil || All(errors.New("plain")) != nil {
		t.Error("faults out of nothing")
	}
}
