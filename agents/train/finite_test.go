package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/vec"
)

// spoiling is a counting environment that writes one number at its third step.
type spoiling struct {
	counting
	n    int
	obs  float32
	rew  float64
	last bool // at the end of an episode only
}

func (s *spoiling) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := s.counting.Step(ctx, a, ts); err != nil {
		return err
	}
	if s.n++; s.n < 3 || s.last && !ts.Kind.Last() {
		return nil
	}
	ts.Obs[0] = s.obs
	ts.Reward += s.rew
	return nil
}

// A number that is not finite ends training before the agent sees it, is named with its row and step, and no
// checkpoint is made afterwards.
func TestNumbersThatAreNoneEndTheRun(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		env  spoiling
		want string
	}{
		{"NaN seen", spoiling{obs: float32(math.NaN())}, "row 1: the observation zero[0] is NaN"},
		{"infinity seen", spoiling{obs: float32(-inf)}, "row 1: the observation zero[0] is -Inf"},
		{"infinity at the end", spoiling{obs: float32(inf), last: true}, "row 1: the final observation zero[0] is +Inf"},
		{"NaN paid", spoiling{rew: math.NaN()}, "row 1: the reward is NaN"},
		{"infinity paid", spoiling{rew: inf}, "row 1: the reward is +Inf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := vec.New(vec.Config{Workers: 1, Autoreset: vec.SameStep}, &counting{}, &c.env)
			if err != nil {
				t.Fatal(err)
			}
			agent := &scripted{}
			cfg := Config{Steps: 40, Envs: 2, CheckpointEvery: 2}
			tr, err := New(cfg, v, agent, 1)
			if err != nil {
				t.Fatal(err)
			}
			var checkpoints []int64
			err = tr.Run(context.Background(), Hooks{Checkpoint: func(step int64) error {
				checkpoints = append(checkpoints, step)
				return nil
			}})
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), fmt.Sprintf("step %d:", tr.Step()+2)) {
				t.Fatalf("error %v, want one with %q and the step", err, c.want)
			}
			if int64(agent.observed)*2 != tr.Step() || !slices.Equal(checkpoints[len(checkpoints)-1:], []int64{tr.Step()}) {
				t.Errorf("%d steps were observed and the last of the checkpoints %v is not at step %d", 2*agent.observed,
					checkpoints, tr.Step())
			}
		})
	}
}

func TestWhatTheLearnerFindsNamesTheStep(t *testing.T) {
	tr, agent, _ := newScripted(t, Config{Steps: 40, Envs: 2})
	agent.learn = errors.New("ppo: value_loss is NaN at step 7 of the optimiser")
	err := tr.Run(context.Background(),
		Hooks{Checkpoint: func(int64) error { t.Error("a checkpoint was made"); return nil }})
	if !errors.Is(err, agent.learn) || !strings.Contains(err.Error(), "train: step 2: ppo: value_loss") {
		t.Errorf("error %v", err)
	}
}

func TestLookingForNumbersDoesNotAllocate(t *testing.T) {
	b := env.NewBatch(spec, 8)
	if n := testing.AllocsPerRun(100, func() {
		if err := checkFinite(spec, b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
