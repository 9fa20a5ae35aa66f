package control

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/internal/rng"
)

func open(t testing.TB, id string) env.Env {
	e, err := New(id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// instance opens the problem as an *Env, without its tasks.
func instance(t testing.TB, id string) *Env {
	e := open(t, id)
	if f, ok := e.(*Family); ok {
		return f.Env
	}
	return e.(*Env)
}

func TestContract(t *testing.T) {
	for _, id := range IDs() {
		t.Run(id, func(t *testing.T) {
			envtest.Run(t, func() env.Env { return open(t, id) }, envtest.NoAllocs(), envtest.Sealed())
		})
	}
}

func TestIDsAreSortedAndOthersAreRefused(t *testing.T) {
	if ids := IDs(); len(ids) != 16 || !slices.IsSorted(ids) {
		t.Errorf("IDs = %v", ids)
	}
	e, err := New("CartPole-v9")
	if e != nil || err == nil || !strings.Contains(err.Error(), "InvalidAction-v1") {
		t.Errorf("New of an unknown id = %v, %v; want an error that lists the known ones", e, err)
	}
}

// Every published result depends on what a seed starts, so these values must never change.
func TestStartsGolden(t *testing.T) {
	for _, c := range []struct {
		id   string
		want []float32
	}{
		{"CartPole-v1", []float32{0.036402322, 0.03794957, 0.008181542, -0.006859843}},
		{"MountainCar-v0", []float32{-0.4965624, 0}},
		{"Acrobot-v1", []float32{0.9987589, -0.049806, 0.9980599, 0.062261008, -0.02620767, -0.0026453086}},
	} {
		e := open(t, c.id)
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(context.Background(), env.Episode{Seed: 42}, ts); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ts.Obs, c.want) {
			t.Errorf("%s starts at %#v", c.id, ts.Obs)
		}
	}
	for _, c := range []struct {
		id   string
		want []float64 // the first two numbers of the task
	}{
		{"Bandit-v1", []float64{0.04151640607720697, 0.6931289718798602}},
		{"Nav2D-v1", []float64{0.0893786519960108, -0.2873715294937277}},
	} {
		e := instance(t, c.id)
		if err := e.Reset(context.Background(), env.Episode{Seed: 42}, env.NewTimeStep(e.Spec())); err != nil {
			t.Fatal(err)
		}
		var got []float64
		switch p := e.p.(type) {
		case *arms:
			got = p.pays
		case *point:
			got = []float64{p.goalX, p.goalY}
		}
		if !slices.Equal(got[:2], c.want) {
			t.Errorf("%s draws the task %#v", c.id, got)
		}
	}
}

// run plays episodes with choose, and returns their mean return and the discounted return of the first.
func run(t *testing.T, e env.Env, episodes int, gamma float64, choose func(ts *env.TimeStep) int) (mean,
	discounted float64) {
	ctx, ts := context.Background(), env.NewTimeStep(e.Spec())
	a := env.Action{Disc: make([]int32, 1)}
	for k := range episodes {
		if err := e.Reset(ctx, env.Episode{Seed: env.EpisodeSeed(3, k), Window: -1}, ts); err != nil {
			t.Fatal(err)
		}
		for g := 1.0; !ts.Kind.Last(); g *= gamma {
			a.Disc[0] = int32(choose(ts))
			if err := e.Step(ctx, a, ts); err != nil {
				t.Fatal(err)
			}
			mean += ts.Reward / float64(episodes)
			if k == 0 {
				discounted += g * ts.Reward
			}
		}
	}
	return mean, discounted
}

func best(mask []bool) int {
	for a := len(mask) - 1; ; a-- {
		if mask[a] {
			return a
		}
	}
}

// Each row is a policy and the return worked out on paper.
func TestKnownAnswers(t *testing.T) {
	const gamma = 0.9
	src := rng.Stream(1, "test")
	uniform := func(ts *env.TimeStep) int {
		for {
			if a := src.IntN(len(ts.Mask)); ts.Mask[a] {
				return a
			}
		}
	}
	always := func(a int) func(*env.TimeStep) int { return func(*env.TimeStep) int { return a } }
	for _, c := range []struct {
		id, policy       string
		choose           func(*env.TimeStep) int
		mean, discounted float64 // discounted is NaN if it depends on the draw
		tolerance        float64
	}{
		{"ProbeConstant-v1", "the only", always(0), 1, 1, 0},
		{"ProbeObservation-v1", "the only", always(0), 0, math.NaN(), 0.1},
		{"ProbeDiscount-v1", "the only", always(0), 1, gamma, 0},
		{"ProbeAction-v1", "right", always(1), 1, 1, 0},
		{"ProbeAction-v1", "wrong", always(0), -1, -1, 0},
		{"ProbeContext-v1", "right", func(ts *env.TimeStep) int { return int(ts.Obs[0]+1) / 2 }, 1, 1, 1e-9},
		{"ProbeContext-v1", "blind", always(1), 0, math.NaN(), 0.1},
		{"ProbeMaskedAction-v1", "best", func(ts *env.TimeStep) int { return best(ts.Mask) }, 0.7, math.NaN(), 0.03},
		{"ProbeMaskedAction-v1", "uniform", uniform, 0.4375, math.NaN(), 0.03},
		{"ProbeMaskedContext-v1", "right", func(ts *env.TimeStep) int { return 1 + int(ts.Obs[0]+1)/2 }, 1, 1, 1e-9},
		{"ProbeMaskedContext-v1", "wrong", func(ts *env.TimeStep) int { return best(ts.Mask) / 3 * 3 }, -1, -1, 1e-9},
		{"ProbeMaskedTarget-v1", "best", func(ts *env.TimeStep) int { return best(ts.Mask) }, 1, 1, 0},
		{"ProbeTruncation-v1", "the only", always(0), 10, (1 - math.Pow(gamma, 10)) / (1 - gamma), 1e-12},
		{"ProbeDeadStep-v1", "go on", always(1), 0.5, -1 + 1.5*gamma, 1e-12},
		{"ProbeDeadStep-v1", "stop", always(0), 0, 0, 0},
		{"InvalidAction-v1", "right", func(ts *env.TimeStep) int { return slices.Index(ts.Obs, 1) }, 100,
			(1 - math.Pow(gamma, 100)) / (1 - gamma), 1e-9},
		{"InvalidAction-v1", "uniform", uniform, 5, math.NaN(), 0.3},
	} {
		mean, discounted := run(t, instance(t, c.id), 1000, gamma, c.choose)
		if math.Abs(mean-c.mean) > c.tolerance+1e-9 {
			t.Errorf("%s, %s policy: mean return %v, want %v ± %v", c.id, c.policy, mean, c.mean, c.tolerance)
		}
		if !math.IsNaN(c.discounted) && math.Abs(discounted-c.discounted) > 1e-9 {
			t.Errorf("%s, %s policy: discounted return %v, want %v", c.id, c.policy, discounted, c.discounted)
		}
	}
}

func TestEveryProbeEndsAsItsPageSays(t *testing.T) {
	for _, d := range append(probes(), invalidAction()) {
		e, ts := instance(t, d.spec.ID), env.NewTimeStep(d.spec)
		ctx := context.Background()
		if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
			t.Fatal(err)
		}
		for !ts.Kind.Last() {
			if err := e.Step(ctx, env.Action{Disc: []int32{int32(best(ts.Mask))}}, ts); err != nil {
				t.Fatal(err)
			}
		}
		want := env.Terminated
		_, end, _ := strings.Cut(Page(d.spec.ID), "## Episode end\n\n")
		end, _, _ = strings.Cut(end, "\n")
		if strings.HasPrefix(end, "Truncated") {
			want = env.Truncated
		}
		if ts.Kind != want {
			t.Errorf("%s ends %v, its page says %q", d.spec.ID, ts.Kind, end)
		}
	}
}

func TestInvalidActionHas20LegalActionsOneOfWhichPays(t *testing.T) {
	e := instance(t, "InvalidAction-v1")
	ts, ctx := env.NewTimeStep(e.Spec()), context.Background()
	masked := make([]int, invalidDim)
	const episodes = 20
	for k := range episodes {
		if err := e.Reset(ctx, env.Episode{Seed: uint64(k)}, ts); err != nil {
			t.Fatal(err)
		}
		for !ts.Kind.Last() {
			legal, state := 0, slices.Index(ts.Obs, 1)
			for a, ok := range ts.Mask {
				if ok {
					legal++
				} else {
					masked[a]++
				}
			}
			if legal != 20 || !ts.Mask[state] {
				t.Fatalf("%d actions are legal, the paying one %v", legal, ts.Mask[state])
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{int32(state)}}, ts); err != nil || ts.Reward != 1 {
				t.Fatalf("the right action pays %v, error %v", ts.Reward, err)
			}
		}
	}
	// Each action is masked with probability 60/80: 1500 of 2000 draws, standard deviation 19.
	for a, n := range masked {
		if n < 1400 || n > 1600 {
			t.Errorf("action %d is masked in %d of 2000 draws, want about 1500", a, n)
		}
	}
}

func TestASnapshotOfAnotherProblemIsRefused(t *testing.T) {
	a, b := instance(t, "ProbeConstant-v1"), instance(t, "ProbeAction-v1")
	ts := env.NewTimeStep(a.Spec())
	if _, err := a.AppendSnapshot(nil); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("snapshot before Reset: error %v", err)
	}
	if err := a.Reset(context.Background(), env.Episode{}, ts); err != nil {
		t.Fatal(err)
	}
	blob, err := a.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.RestoreSnapshot(blob, env.NewTimeStep(b.Spec())); !errors.Is(err, env.ErrSnapshot) {
		t.Errorf("error %v, want %v", err, env.ErrSnapshot)
	}
}

// Forged snapshots have the right checksum and an impossible state.
func TestForgedSnapshotsAreRefused(t *testing.T) {
	for _, id := range IDs() {
		e := instance(t, id)
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(context.Background(), env.Episode{}, ts); err != nil {
			t.Fatal(err)
		}
		for name, forge := range map[string]func(*Env){
			"negative steps":       func(e *Env) { e.steps = -1 },
			"steps at the start":   func(e *Env) { e.steps = 1 },
			"reward at the start":  func(e *Env) { e.reward = 1 },
			"NaN reward":           func(e *Env) { e.reward, e.kind, e.steps = math.NaN(), env.Mid, 1 },
			"too many steps":       func(e *Env) { e.kind, e.steps = env.Mid, 1<<40 },
			"truncated in between": func(e *Env) { e.kind, e.steps = env.Truncated, 1 },
			"kind 4":               func(e *Env) { e.kind, e.steps = 4, 1 },
			"a draw out of range": func(e *Env) {
				switch p := e.p.(type) {
				case *probe:
					p.drawn = 99
				case *invalid:
					p.state = 99
				case *cart:
					p.angle = 1
				case *car:
					p.v = 0.08
				case *robot:
					p.s[3] = 29
				case *arms:
					p.pays[3] = 1.1
				case *point:
					p.goalY = 0.6
				}
			},
			"a NaN": func(e *Env) {
				switch p := e.p.(type) {
				case *probe:
					p.drawn = -1
				case *invalid:
					p.state = -1
				case *cart:
					p.x = math.NaN()
				case *car:
					p.x = math.NaN()
				case *robot:
					p.s[0] = math.NaN()
				case *arms:
					p.pays[0] = math.NaN()
				case *point:
					p.x = math.NaN()
				}
			},
		} {
			f := instance(t, id)
			if err := f.Reset(context.Background(), env.Episode{}, env.NewTimeStep(e.Spec())); err != nil {
				t.Fatal(err)
			}
			forge(f)
			blob, err := f.AppendSnapshot(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.RestoreSnapshot(blob, ts); !errors.Is(err, env.ErrSnapshot) {
				t.Errorf("%s: %s: error %v, want %v", id, name, err, env.ErrSnapshot)
			}
		}
	}
}

func TestPagesHaveAllHeadings(t *testing.T) {
	for _, id := range IDs() {
		page := Page(id)
		for _, want := range []string{"# " + id + "\n", "## Description\n", "## Action space\n", "## Observation space\n",
			"## Rewards\n",
			"## Starting state\n", "## Episode end\n", "## Known answer\n", "## Arguments\n", "## Version history\n",
			"## Source\n", "| Action space | "} {
			if !strings.Contains(page, want) {
				t.Errorf("page of %s lacks %q", id, want)
			}
		}
		for _, f := range instance(t, id).Spec().Obs {
			if !strings.Contains(page, "| `"+f.Name+"` |") {
				t.Errorf("page of %s lacks the field %s", id, f.Name)
			}
		}
		if _, tasks := open(t, id).(env.Tasker); tasks != strings.Contains(page, "## Tasks\n") {
			t.Errorf("page of %s and its tasks disagree", id)
		}
		if strings.Contains(page, "\n\n\n") || strings.Contains(page, "%!") {
			t.Errorf("page of %s is badly set:\n%s", id, page)
		}
	}
	if Page("nonsense") != "" {
		t.Error("an unknown id has a page")
	}
}

func BenchmarkStep(b *testing.B) {
	for _, id := range []string{"ProbeTruncation-v1", "InvalidAction-v1", "CartPole-v1", "MountainCar-v0", "Acrobot-v1",
		"Bandit-v1", "Nav2D-v1"} {
		b.Run(id, func(b *testing.B) {
			e := open(b, id)
			ts, ctx := env.NewTimeStep(e.Spec()), context.Background()
			ts.Kind = env.Terminated
			a := env.NewActions(e.Spec(), 1).Row(0)
			k := 0
			b.ReportAllocs()
			for b.Loop() {
				if ts.Kind.Last() {
					if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
						b.Fatal(err)
					}
				}
				if len(a.Disc) > 0 {
					k++ // alternate, and choose the best legal action if some are masked
					if n := len(ts.Mask); ts.Mask[k%n] {
						a.Disc[0] = int32(k % n)
					} else {
						a.Disc[0] = int32(best(ts.Mask))
					}
				}
				if err := e.Step(ctx, a, ts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
