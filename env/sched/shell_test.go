package sched_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/sched"
)

// adder is an environment without jobs or a cluster: each step adds its action, and 7 ends the episode.
type adder struct {
	shell sched.Shell
	sum   int
	fault error // of the next step
}

func adderSpec() env.Spec {
	return env.Spec{ID: "Adder-v1", Action: env.ActionSpec{Sizes: []int{3}}, MaxSteps: 5}
}

func (c *adder) Spec() env.Spec { return adderSpec() }
func (c *adder) Close() error   { return c.shell.Close() }

func (c *adder) Reset(_ context.Context, ep env.Episode, ts *env.TimeStep) error {
	if err := c.shell.Leave(); err != nil {
		return err
	}
	if ep.Split == "" {
		return env.ErrEpisode
	}
	c.sum = 0
	c.shell.Begin(ep)
	ts.Kind = c.shell.Kind()
	return nil
}

func (c *adder) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := c.shell.Ready(ctx); err != nil {
		return err
	}
	if err := c.shell.Legal(a, []bool{c.sum > 0, true, true}); err != nil {
		return err
	}
	if c.fault != nil {
		c.shell.Break()
		return c.fault
	}
	c.sum += int(a.Disc[0])
	kind := env.Mid
	if c.sum >= 7 {
		kind = env.Terminated
	}
	ts.Kind, ts.Reward = c.shell.Took(a, kind), float64(c.sum)
	return nil
}

func take(k ...int32) env.Action { return env.Action{Disc: k} }

func began(t *testing.T, actions ...int32) (*adder, *env.TimeStep) {
	t.Helper()
	c := &adder{shell: sched.NewShell(adderSpec())}
	ts := env.NewTimeStep(c.Spec())
	if err := c.Reset(context.Background(), env.Episode{Seed: 3, Split: env.SplitTest}, ts); err != nil {
		t.Fatal(err)
	}
	for _, a := range actions {
		if err := c.Step(context.Background(), take(a), ts); err != nil {
			t.Fatal(err)
		}
	}
	return c, ts
}

func TestShellRefusesInTheOrderOfTheContract(t *testing.T) {
	ctx := context.Background()
	c, ts := began(t)
	for _, x := range []struct {
		a    env.Action
		want string
	}{
		{env.Action{}, "env: illegal action: Adder-v1: 0 indices and 0 numbers, want 1 and 0"},
		{env.Action{Disc: []int32{1}, Cont: []float32{2}},
			"env: illegal action: Adder-v1: 1 indices and 1 numbers, want 1 and 0"},
		{take(3), "env: illegal action: Adder-v1: 3, want 0 to 2"},
		{take(-1), "env: illegal action: Adder-v1: -1, want 0 to 2"},
		{take(0), "env: illegal action: Adder-v1: 0 is masked"},
	} {
		err := c.Step(ctx, x.a, ts)
		if !errors.Is(err, env.ErrIllegalAction) || err.Error() != x.want {
			t.Errorf("%v: %v, want %s", x.a, err, x.want)
		}
		if len(x.a.Disc) == 1 && len(x.a.Cont) == 0 {
			if _, err := c.shell.Index(x.a); (err != nil) != (x.a.Disc[0] != 0) || err != nil && err.Error() != x.want {
				t.Errorf("Index of %v: %v", x.a, err)
			}
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Step(stopped, take(1), ts); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled step: %v", err)
	}
	c.fault = errors.New("the workload broke off")
	if err := c.Step(ctx, take(1), ts); err != c.fault {
		t.Errorf("a broken step: %v", err)
	}
	for range 2 {
		if err := c.Step(stopped, take(1), ts); !errors.Is(err, env.ErrResetNeeded) {
			t.Errorf("after a broken step: %v", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Step(ctx, take(1), ts), c.Close()); !errors.Is(err, env.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := c.Reset(ctx, env.Episode{}, ts); !errors.Is(err, env.ErrClosed) {
		t.Errorf("Reset after Close: %v", err)
	}
	if _, err := c.shell.AppendSnapshot(nil); !errors.Is(err, env.ErrClosed) {
		t.Errorf("AppendSnapshot after Close: %v", err)
	}
	if err := c.shell.RestoreSnapshot(c, nil, ts); !errors.Is(err, env.ErrClosed) {
		t.Errorf("RestoreSnapshot after Close: %v", err)
	}
}

func TestShellTruncatesAfterTheMostSteps(t *testing.T) {
	c, ts := began(t, 1, 1, 1, 1)
	if ts.Kind != env.Mid || c.shell.Steps() != 4 {
		t.Fatalf("kind %v after %d steps", ts.Kind, c.shell.Steps())
	}
	if err := c.Step(context.Background(), take(1), ts); err != nil || ts.Kind != env.Truncated {
		t.Errorf("the fifth step: %v, kind %v", err, ts.Kind)
	}
	if _, ts := began(t, 1, 1, 1, 2, 2); ts.Kind != env.Terminated {
		t.Errorf("an episode whose last step is its end: %v", ts.Kind)
	}
}

func TestShellSavesAndRestores(t *testing.T) {
	c, _ := began(t, 1, 2, 0)
	saved, err := c.shell.AppendSnapshot([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	// Magic, seed, window 0, part 2, three actions.
	if want := "xCGS2\x03\x00\x00\x00\x00\x00\x00\x00\x00\x02\x03\x01\x02\x00"; string(saved) != want {
		t.Fatalf("got %q, want %q", saved, want)
	}
	other, ts := began(t, 2)
	if err := other.shell.RestoreSnapshot(other, saved[1:], ts); err != nil || other.sum != 3 || ts.Reward != 3 ||
		other.shell.Steps() != 3 {
		t.Errorf("restored: %v, sum %d, reward %v", err, other.sum, ts.Reward)
	}
	// An action that is masked there: nothing changes.
	bad := bytes.Clone(saved[1:])
	bad[len(bad)-3] = 0
	for _, c := range []*adder{other, {shell: sched.NewShell(adderSpec())}} {
		was := *ts
		if err := c.shell.RestoreSnapshot(c, bad, ts); !errors.Is(err, env.ErrSnapshot) ||
			!strings.Contains(err.Error(), "step 0") {
			t.Errorf("a snapshot that cannot be played: %v", err)
		}
		if ts.Reward != was.Reward || ts.Kind != was.Kind {
			t.Error("it changed the time step")
		}
	}
	if again, err := other.shell.AppendSnapshot(nil); err != nil || !bytes.Equal(again, saved[1:]) || other.sum != 3 {
		t.Errorf("after it: %v, %q, sum %d", err, again, other.sum)
	}
	if _, err := (&adder{shell: sched.NewShell(adderSpec())}).shell.AppendSnapshot(nil); !errors.Is(err,
		env.ErrResetNeeded) {
		t.Errorf("before Reset: %v", err)
	}
}

func TestShellKeepsItsOwnTask(t *testing.T) {
	task := []float64{1, 2}
	s := sched.NewShell(adderSpec())
	s.Begin(env.Episode{Task: task})
	task[0] = 9
	if got := s.Episode().Task; len(got) != 2 || got[0] != 1 {
		t.Errorf("the episode's task is %v", got)
	}
	s.Begin(env.Episode{})
	if s.Episode().Task != nil {
		t.Error("an episode without a task has one")
	}
}

func TestShellRenders(t *testing.T) {
	c, _ := began(t, 2)
	var b strings.Builder
	draw := func(b *strings.Builder) {
		fmt.Fprintf(b, "Adder-v1  seed %d, step %d, sum 2\n", c.shell.Episode().Seed, c.shell.Steps())
	}
	if err := c.shell.Render(&b, "ansi", draw); err != nil || b.String() != "Adder-v1  seed 3, step 1, sum 2\n" {
		t.Errorf("%v, %q", err, b.String())
	}
	if err := c.shell.Render(&b, "rgb", draw); err == nil ||
		err.Error() != `Adder-v1: render mode "rgb", want ansi; Paint draws rgb_array` {
		t.Errorf("mode rgb: %v", err)
	}
	fresh := sched.NewShell(adderSpec())
	if err := fresh.Render(&b, "ansi", draw); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("before Reset: %v", err)
	}
}
