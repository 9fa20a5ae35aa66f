package jobselect_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// campaigns draws jobs of users who repeat them.
func campaigns(r *rand.Rand, n int) (jobs []traces.Job) {
	at := time.Duration(0)
	for i := range n {
		if r.IntN(3) == 0 {
			at += time.Duration(1 + r.ExpFloat64()*float64(600*second))
		}
		user := r.IntN(4)
		j := job(fmt.Sprint("j", i), at, time.Duration(60+r.IntN(1000*(1+user*user)))*second, 1<<user)
		j.User, j.Name = fmt.Sprint("u", user), fmt.Sprint("n", r.IntN(2))
		jobs = append(jobs, j)
	}
	return jobs
}

// actions plays an episode and returns the actions of actor.
func actions(t *testing.T, e *sched.Env, a *sched.Actor, ep env.Episode) (all []int32) {
	t.Helper()
	ts := env.NewTimeStep(e.Spec())
	b, dst := &env.Batch{N: 1, Mask: ts.Mask}, env.NewActions(e.Spec(), 1)
	if _, _, err := env.Play(t.Context(), e, ep, ts, func(_ *env.TimeStep, act env.Action) error {
		err := a.Act(t.Context(), b, dst, nil)
		copy(act.Disc, dst.Disc)
		all = append(all, dst.Disc[0])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// With the weights of another order index@slots acts as that order does, and it acts by the weights that it is given.
func TestIndexThroughTheSlots(t *testing.T) {
	seed := ownSeed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Visible, cfg.Load, cfg.Estimates = 60, 30, 8, 1.5, sim.MustEstimates("history")
	preempting(&cfg)
	e := newEnv(t, cfg, cluster.Spec{Pool: 16}, campaigns(r, 600))
	differs := 0
	for range 4 {
		ep := env.Episode{Seed: r.Uint64(), Window: -1}
		for order, w := range map[string]tuned.Index{"srtf": {Left: 1}, "srsf": {Left: 1, Width: 1},
			"gittins": {Gittins: 1, Width: 1}} {
			plain, err := jobselect.NewRule(order, e)
			if err != nil {
				t.Fatal(err)
			}
			index, err := jobselect.NewIndex(e, w)
			if err != nil {
				t.Fatal(err)
			}
			want, got := actions(t, e, plain, ep), actions(t, e, index, ep)
			if !slices.Equal(got, want) {
				t.Errorf("seed %d: %s is not index with its weights", seed, order)
			}
			w.News, w.Elder, w.Stay = 1, 0.5, 0.5
			if index, err = jobselect.NewIndex(e, w); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(actions(t, e, index, ep), want) {
				differs++
			}
		}
	}
	if differs == 0 {
		t.Error("further weights change nothing")
	}
	if _, err := jobselect.NewIndex(e, tuned.Index{Left: math.NaN()}); err == nil ||
		!strings.Contains(err.Error(), "left") {
		t.Error(err)
	}
	if _, err := jobselect.NewIndex(room(t, "pool:3", 6, "exact", six), tuned.Index{}); err == nil ||
		!strings.Contains(err.Error(), "want preempt: true") {
		t.Error(err)
	}
}

// Nothing is remembered: a rule that has played nothing goes on from a snapshot as the one that has played all along.
func TestIndexPlaysOnFromASnapshot(t *testing.T) {
	seed := ownSeed(t)
	r := rand.New(rand.NewPCG(seed, 10))
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Visible, cfg.Load, cfg.Estimates = 60, 30, 8, 1.5, sim.MustEstimates("history")
	preempting(&cfg)
	e := newEnv(t, cfg, cluster.Spec{Pool: 16}, campaigns(r, 600))
	w := tuned.Index{Left: 0.5, Gittins: 0.5, News: 1, Attained: -0.2, Width: 1, Wait: 0.1, Kin: 0.1, Elder: 0.2,
		Stay: 0.1, Wider: -0.3, Longer: -0.2, Busy: 0.1}
	ep := env.Episode{Seed: r.Uint64(), Window: -1}
	ts := env.NewTimeStep(e.Spec())
	var saved []byte
	var want []int32
	play := func(a *sched.Actor, from int) (did []int32) {
		b, dst := &env.Batch{N: 1, Mask: ts.Mask}, env.NewActions(e.Spec(), 1)
		for step := from; !ts.Kind.Last(); step++ {
			if step == 40 && saved == nil {
				var err error
				if saved, err = e.AppendSnapshot(nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.Act(t.Context(), b, dst, nil); err != nil {
				t.Fatal(err)
			}
			did = append(did, dst.Disc[0])
			if err := e.Step(t.Context(), env.Action{Disc: dst.Disc}, ts); err != nil {
				t.Fatal(err)
			}
		}
		return did
	}
	fresh := func() *sched.Actor {
		a, err := jobselect.NewIndex(e, w)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if err := e.Reset(t.Context(), ep, ts); err != nil {
		t.Fatal(err)
	}
	want = play(fresh(), 0)[40:]
	if err := e.RestoreSnapshot(saved, ts); err != nil {
		t.Fatal(err)
	}
	if got := play(fresh(), 40); !slices.Equal(got, want) {
		t.Errorf("seed %d: %v from the snapshot, want %v", seed, got, want)
	}
}
