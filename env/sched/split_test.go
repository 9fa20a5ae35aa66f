package sched_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// partEnv is an environment over one part of the usual workload.
func partEnv(t *testing.T, part traces.Part, change func(c *jobselect.Config)) *sched.Env {
	t.Helper()
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm = 10, 10
	if change != nil {
		change(&cfg)
	}
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
	w, err := jobselect.NewWorkload(cfg, spec, workload(300))
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, spec, w.Windows, part)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// played returns every time step of an episode in which the first legal action is always taken.
func played(t *testing.T, e *sched.Env, ep env.Episode) string {
	t.Helper()
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, ep, ts); err != nil {
		t.Fatal(err)
	}
	return goOn(t, e, ts)
}

func goOn(t *testing.T, e *sched.Env, ts *env.TimeStep) string {
	t.Helper()
	var b strings.Builder
	for {
		fmt.Fprintln(&b, *ts)
		if ts.Kind.Last() {
			return b.String()
		}
		a := 0
		for !ts.Mask[a] {
			a++
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASplitIsThePartOfThatNameWhateverTheEnvironmentWasMadeFor(t *testing.T) {
	names := map[traces.Part]string{traces.Training: env.SplitTrain, traces.Validation: env.SplitValidation,
		traces.Test: env.SplitTest}
	distinct := map[string]bool{}
	for part, split := range names {
		for _, ep := range []env.Episode{{Seed: 5, Window: 0}, {Seed: 5, Window: -1}} {
			want := played(t, partEnv(t, part, nil), ep)
			distinct[want] = true
			for own := range names {
				named := ep
				named.Split = split
				e := partEnv(t, own, nil)
				if got := played(t, e, named); got != want {
					t.Errorf("%s asked of an environment of the %v part: another episode", split, own)
				}
				// It holds for that reset only.
				if own != part && played(t, e, ep) == want {
					t.Errorf("after one episode of %s, the environment of the %v part stays there", split, own)
				}
			}
		}
	}
	if len(distinct) != 6 {
		t.Errorf("%d different episodes, want 6: the parts do not differ", len(distinct))
	}
}

func TestEpisodesThatAreNotThereAreToldInOneSentence(t *testing.T) {
	e := partEnv(t, traces.Training, nil)
	ts := env.NewTimeStep(e.Spec())
	for _, c := range []struct {
		ep   env.Episode
		want string
	}{
		{env.Episode{Split: "training"}, `JobSelect-v1: split "training", want train, validation, test or nothing`},
		{env.Episode{Window: 20},
			"JobSelect-v1: window 20 of the training part: want 0 to 19, or -1 for one drawn from the seed"},
		{env.Episode{Window: 5, Split: "test"},
			"JobSelect-v1: window 5 of the test part: want 0 to 4, or -1 for one drawn from the seed"},
		{env.Episode{Window: -2, Split: "validation"},
			"JobSelect-v1: window -2 of the validation part: want 0 to 1, or -1 for one drawn from the seed"},
		{env.Episode{Task: []float64{1}}, "JobSelect-v1: this environment has no tasks, got one of 1 numbers"},
	} {
		err := e.Reset(ctx, c.ep, ts)
		if !errors.Is(err, env.ErrEpisode) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.ep, err, c.want)
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); !errors.Is(err, env.ErrResetNeeded) {
			t.Errorf("%+v: Step after the refused Reset: %v", c.ep, err)
		}
		if c.ep.Task != nil {
			continue
		}
		if err := e.Simulate(ctx, c.ep, nil, nil); !errors.Is(err, env.ErrEpisode) {
			t.Errorf("%+v: Simulate: %v", c.ep, err)
		}
	}
}

func TestASnapshotNamesItsPart(t *testing.T) {
	e := partEnv(t, traces.Training, nil)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1, Window: 1, Split: env.SplitTest}, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); err != nil {
		t.Fatal(err)
	}
	blob, err := e.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := goOn(t, e, ts)
	for _, own := range []traces.Part{traces.Training, traces.Validation, traces.Test} {
		other := partEnv(t, own, nil)
		out := env.NewTimeStep(other.Spec())
		if err := other.RestoreSnapshot(blob, out); err != nil {
			t.Fatal(err)
		}
		if got := goOn(t, other, out); got != want {
			t.Errorf("restored in an environment of the %v part, the episode goes on in another way", own)
		}
	}
	unknown := bytes.Clone(blob)
	unknown[13] = 3
	if err := e.RestoreSnapshot(unknown, ts); !errors.Is(err, env.ErrSnapshot) ||
		!strings.Contains(err.Error(), "part 3 of the workload") {
		t.Errorf("a part that does not exist: %v", err)
	}
}

func TestSnapshotsOfTheFormerFormatAreRefused(t *testing.T) {
	e := partEnv(t, traces.Training, nil)
	ts := env.NewTimeStep(e.Spec())
	old := append([]byte("CGS1"), make([]byte, 10)...) // seed 0, window 0, no steps
	err := e.RestoreSnapshot(old, ts)
	if !errors.Is(err, env.ErrSnapshot) || !strings.Contains(err.Error(), "format CGS1") ||
		!strings.Contains(err.Error(), "want CGS2") {
		t.Errorf("got %v", err)
	}
}

// Validation and test windows are not redrawn, however training windows are chosen.
func TestOnlyTrainingWindowsAreContested(t *testing.T) {
	change := func(contested bool) func(c *jobselect.Config) {
		return func(c *jobselect.Config) { c.Contested, c.Load = contested, 0.2 }
	}
	plain, chosen := partEnv(t, traces.Training, change(false)), partEnv(t, traces.Training, change(true))
	redrawn := 0
	for seed := range uint64(8) {
		for _, split := range []string{env.SplitTrain, env.SplitValidation, env.SplitTest} {
			ep := env.Episode{Seed: seed, Window: -1, Split: split}
			same := played(t, plain, ep) == played(t, chosen, ep)
			if split != env.SplitTrain && !same {
				t.Errorf("seed %d: contested draws another window of %s", seed, split)
			} else if !same {
				redrawn++
			}
		}
	}
	if redrawn == 0 {
		t.Error("no training window was drawn again: this tells nothing")
	}
}

// counter counts the points of an episode.
type counter struct{ begun, points int }

func (c *counter) Reset() { c.begun, c.points = c.begun+1, 0 }

func (c *counter) Observe(*sim.View, *sim.Point) error {
	c.points++
	return nil
}

// An observer with a Reset is reset at every beginning. After RestoreSnapshot it has seen the points up to the snapshot
// once.
func TestWatchersAreResetWithTheEpisode(t *testing.T) {
	e := partEnv(t, traces.Training, nil)
	var c counter
	e.Watch(&c)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
		t.Fatal(err)
	}
	here := c.points
	blob, err := e.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	goOn(t, e, ts)
	if here == 0 || c.points <= here || c.begun != 1 {
		t.Fatalf("%d points at first, %d in all, %d beginnings", here, c.points, c.begun)
	}
	if err := e.RestoreSnapshot(blob, ts); err != nil {
		t.Fatal(err)
	}
	if c.points != here || c.begun != 2 {
		t.Errorf("restored: %d points, want %d; %d beginnings, want 2", c.points, here, c.begun)
	}
	if err := e.RestoreSnapshot(blob[:5], ts); err == nil || c.points != here {
		t.Errorf("after a snapshot that was refused (%v): %d points, want %d", err, c.points, here)
	}
}
