package control

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
)

func TestOnlyFamiliesHaveTasks(t *testing.T) {
	for _, id := range IDs() {
		_, ok := open(t, id).(env.Tasker)
		if want := id == "Bandit-v1" || id == "Nav2D-v1"; ok != want {
			t.Errorf("%s has tasks: %v, want %v", id, ok, want)
		}
	}
}

// A given task replaces the drawn one, and changes nothing else of the episode.
func TestWithoutATaskOneIsDrawnFromTheSeed(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		id   string
		task func(p problem) []float64
	}{
		{"Bandit-v1", func(p problem) []float64 { return append([]float64(nil), p.(*arms).pays...) }},
		{"Nav2D-v1", func(p problem) []float64 { return []float64{p.(*point).goalX, p.(*point).goalY} }},
	} {
		own, given := instance(t, c.id), instance(t, c.id)
		a, b := env.NewTimeStep(own.Spec()), env.NewTimeStep(own.Spec())
		var tasks [2][]float64
		for seed := range uint64(2) {
			if err := own.Reset(ctx, env.Episode{Seed: seed}, a); err != nil {
				t.Fatal(err)
			}
			tasks[seed] = c.task(own.p)
			if err := given.Reset(ctx, env.Episode{Seed: seed, Task: tasks[seed]}, b); err != nil {
				t.Fatal(err)
			}
			act := env.NewActions(own.Spec(), 1).Row(0)
			for i := range act.Cont {
				act.Cont[i] = 0.05
			}
			for !a.Kind.Last() {
				errA, errB := own.Step(ctx, act, a), given.Step(ctx, act, b)
				if errA != nil || errB != nil || a.Reward != b.Reward {
					t.Fatalf("%s: reward %v (%v) with the task drawn, %v (%v) with it given", c.id, a.Reward, errA, b.Reward, errB)
				}
			}
		}
		if tasks[0][0] == tasks[1][0] {
			t.Errorf("%s: two seeds draw the same task %v", c.id, tasks[0])
		}
	}
}

func TestTasksOutsideTheirBoundsAreRefused(t *testing.T) {
	for _, c := range []struct {
		id   string
		task []float64
		want string
	}{
		{"Nav2D-v1", []float64{0, 0.51}, "task goal[1] is 0.51, want -0.5 to 0.5"},
		{"Nav2D-v1", []float64{math.NaN(), 0}, "task goal[0] is NaN"},
		{"Nav2D-v1", []float64{0}, "a task of 1 numbers, want 2"},
		{"Bandit-v1", []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, -0.1}, "task pays[9] is -0.1, want 0 to 1"},
		{"CartPole-v1", []float64{1}, "a task of 1 numbers, want none"},
	} {
		e := open(t, c.id)
		err := e.Reset(context.Background(), env.Episode{Task: c.task}, env.NewTimeStep(e.Spec()))
		if !errors.Is(err, env.ErrEpisode) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, task %v: error %v, want %q", c.id, c.task, err, c.want)
		}
	}
}

// Goal (0.3, 0): three steps to the right end at distances 0.2, 0.1 and 0; then one up, at 0.1.
func TestNav2DByHand(t *testing.T) {
	e := open(t, "Nav2D-v1")
	ts, ctx := env.NewTimeStep(e.Spec()), context.Background()
	if err := e.Reset(ctx, env.Episode{Task: []float64{0.3, 0}}, ts); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		dx, dy float32
		reward float64
		x, y   float32
	}{{0.1, 0, -0.2, 0.1, 0}, {0.1, 0, -0.1, 0.2, 0}, {0.1, 0, 0, 0.3, 0}, {0, 0.1, -0.1, 0.3, 0.1}} {
		if err := e.Step(ctx, env.Action{Cont: []float32{c.dx, c.dy}}, ts); err != nil {
			t.Fatal(err)
		}
		if math.Abs(ts.Reward-c.reward) > 1e-15 || ts.Obs[0] != c.x || ts.Obs[1] != c.y || ts.Kind != env.Mid {
			t.Errorf("step %d: reward %v at %v, %v; want %v at (%v, %v)", i+1, ts.Reward, ts.Obs, ts.Kind, c.reward, c.x, c.y)
		}
	}
	err := e.Step(ctx, env.Action{Cont: []float32{0, -0.11}}, ts)
	if !errors.Is(err, env.ErrIllegalAction) || !strings.Contains(err.Error(), "number 1 is -0.11, want -0.1 to 0.1") {
		t.Errorf("a step too long: error %v", err)
	}
}

// An arm of probability 1 always pays and one of 0 never does, for any draw.
func TestBanditArmsPayAsTheTaskSays(t *testing.T) {
	b, err := NewBandit(BanditConfig{Arms: 3, Pulls: 20, History: true})
	if err != nil {
		t.Fatal(err)
	}
	ts, ctx := env.NewTimeStep(b.Spec()), context.Background()
	if err := b.Reset(ctx, env.Episode{Task: []float64{0, 1, 0.5}}, ts); err != nil {
		t.Fatal(err)
	}
	want := []float32{0, 0, 0, 0, 0} // last action one-hot, last reward, share done
	for i := 0; ; i++ {
		for k, v := range want {
			if ts.Obs[k] != v {
				t.Fatalf("after %d pulls: observation %v, want %v", i, ts.Obs, want)
			}
		}
		if ts.Kind.Last() {
			break
		}
		arm := i % 2
		if err := b.Step(ctx, env.Action{Disc: []int32{int32(arm)}}, ts); err != nil || ts.Reward != float64(arm) {
			t.Fatalf("arm %d pays %v, error %v", arm, ts.Reward, err)
		}
		want = []float32{float32(1 - arm), float32(arm), 0, float32(arm), float32(i+1) / 20}
	}
	if ts.Kind != env.Terminated {
		t.Errorf("ends %v", ts.Kind)
	}
}

// Two policies with the same seed have the same luck: whether an arm pays at pull k does not depend on earlier pulls.
func TestBanditLuckDoesNotDependOnThePolicy(t *testing.T) {
	e := open(t, "Bandit-v1")
	ts, ctx := env.NewTimeStep(e.Spec()), context.Background()
	play := func(arm func(k int) int32) (rewards []float64) {
		if err := e.Reset(ctx, env.Episode{Seed: 4}, ts); err != nil {
			t.Fatal(err)
		}
		for k := 0; !ts.Kind.Last(); k++ {
			if err := e.Step(ctx, env.Action{Disc: []int32{arm(k)}}, ts); err != nil {
				t.Fatal(err)
			}
			rewards = append(rewards, ts.Reward)
		}
		return rewards
	}
	first := play(func(int) int32 { return 6 })
	second := play(func(k int) int32 { return int32(k % 2 * 6) })
	for k := 1; k < len(first); k += 2 {
		if first[k] != second[k] {
			t.Fatalf("pull %d of arm 6 pays %v and %v", k, first[k], second[k])
		}
	}
}

func TestBanditsOfAnySizeKeepTheContractAndTheirSnapshotsApart(t *testing.T) {
	for _, c := range []BanditConfig{{Arms: 1, Pulls: 1}, {Arms: 5, Pulls: 10, History: true}} {
		b, err := NewBandit(c)
		if err != nil {
			t.Fatal(err)
		}
		task := make([]float64, c.Arms)
		b.SampleTask(rng.Stream(1, "task"), task)
		ts := env.NewTimeStep(b.Spec())
		if err := b.Reset(context.Background(), env.Episode{Task: task}, ts); err != nil {
			t.Fatal(err)
		}
		if err := b.Spec().Check(ts); err != nil {
			t.Error(err)
		}
		blob, err := b.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		other := c
		other.Pulls++
		o, err := NewBandit(other)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.RestoreSnapshot(blob, env.NewTimeStep(o.Spec())); !errors.Is(err, env.ErrSnapshot) {
			t.Errorf("%+v restores a snapshot of %+v: %v", other, c, err)
		}
	}
	_, err := NewBandit(BanditConfig{Arms: 0, Pulls: -1})
	if err == nil || !strings.Contains(err.Error(), "arms: got 0, want 1 to 10000") ||
		!strings.Contains(err.Error(), "pulls: got -1") {
		t.Errorf("error %v, want both faults", err)
	}
}
