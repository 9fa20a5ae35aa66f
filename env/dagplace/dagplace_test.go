package dagplace

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
	"clustergym/simulator/dag"
	"clustergym/traces"
)

var ctx = context.Background()

// small are settings with which every branch is walked.
func small() map[string]Config {
	all := map[string]Config{}
	c := DefaultConfig()
	c.Tasks, c.GPUs = 20, 6
	all["default"] = c
	c.Reward, c.Order, c.Insert, c.Scale = "makespan", "rank", true, "local"
	all["makespan"] = c
	c.Vary, c.Slots = true, 4
	all["varied"] = c
	c.MaxSteps = 7
	all["truncated"] = c
	return all
}

func TestContract(t *testing.T) {
	for name, c := range small() {
		t.Run(name, func(t *testing.T) {
			envtest.Run(t, func() env.Env {
				e, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				return e
			})
		})
	}
}

// chain is two tasks of work 10 with a transfer of 5 s, on two GPUs.
func chain(t *testing.T) *dag.Problem {
	t.Helper()
	g, err := dag.NewGraph("chain", []dag.Task{{ID: "a", Work: 10}, {ID: "b", Work: 10}},
		[]dag.Edge{{From: 0, To: 1, Bytes: 50}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.NewPlatform([]dag.Processor{{ID: "0", Speed: 1}, {ID: "1", Speed: 1}}, 10)
	if err != nil {
		t.Fatal(err)
	}
	q, err := dag.NewProblem(g, p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func play(t *testing.T, e *Env, seed uint64, choose func(e *Env) int32) (sum float64, ts *env.TimeStep) {
	t.Helper()
	ts = env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	for !ts.Kind.Last() {
		if err := e.Step(ctx, env.Action{Disc: []int32{choose(e)}}, ts); err != nil {
			t.Fatal(err)
		}
		sum += ts.Reward
	}
	return sum, ts
}

func TestAChainOfTwoByHand(t *testing.T) {
	c := DefaultConfig()
	c.Reward = "makespan"
	for second, want := range []float64{-1, -1.25} {
		e, err := newFixed(c, chain(t))
		if err != nil {
			t.Fatal(err)
		}
		k := int32(-1)
		got, ts := play(t, e, 1, func(*Env) int32 { k++; return k * int32(second) })
		if got != want || ts.Kind != env.Terminated || ts.Info[0] != -20*want || ts.Info[1] != 20 {
			t.Errorf("second task on %d: %v, %+v; want %v", second, got, ts, want)
		}
	}
	// What is seen before the second task, the first on GPU 0: it is free from 10, the other at once, inputs at 10 and 15.
	e, _ := newFixed(c, chain(t))
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); err != nil {
		t.Fatal(err)
	}
	h := e.ep.hope[1]
	off := func(x float64) float32 { return float32(min(4, math.Abs(h-x)/20)) }
	want := []float32{1, 0.5, 0.5, off(20), 0.5, 1, 1, 0, 0, off(10), 0.75, 1.25, 0.5, 1, 1. / 16, 0, 0.5,
		float32(min(4, max(0, h/20))), 0.5, 0.5}
	for k, v := range want {
		if math.Abs(float64(ts.Obs[k]-v)) > 1e-6 {
			t.Errorf("observation %d is %v, want %v (%v)", k, ts.Obs[k], v, ts.Obs)
		}
	}
}

func TestReturnsAreWhatThePageSays(t *testing.T) {
	for name, c := range small() {
		if c.MaxSteps > 0 {
			continue
		}
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			src := rng.Stream(seed, "dagplace/test")
			miss := 0.0
			got, ts := play(t, e, seed, func(e *Env) int32 {
				k := src.IntN(len(e.mask))
				for !e.mask[k] {
					k = src.IntN(len(e.mask))
				}
				i, g := e.ep.b.Task(), e.ep.enc.Slots()[k]
				miss += math.Abs(e.ep.hope[i] - e.ep.b.Load()[g] - e.ep.b.q.Exec(i, g))
				return int32(k)
			})
			want := -ts.Info[0] / ts.Info[1]
			if c.Reward == "hope" {
				want = (ts.Info[2] - ts.Info[0] - miss) / ts.Info[1]
			}
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, seed %d: return %v, want %v", name, seed, got, want)
			}
			if err := dag.Check(e.ep.b.q, e.ep.b.Plan(), true); err != nil {
				t.Error(err)
			}
		}
	}
}

// The order that the page promises: random, nearest to the hope, earliest end.
func TestKnownRulesComeInTheirOrder(t *testing.T) {
	c := DefaultConfig()
	c.Reward = "makespan"
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	src := rng.Stream(1, "dagplace/test")
	var random, near, early float64
	for seed := range uint64(200) {
		r, _ := play(t, e, seed, func(e *Env) int32 { return int32(src.IntN(len(e.mask))) })
		n, _ := play(t, e, seed, func(e *Env) int32 { return toHope(e.ep.b, e.ep.hope[e.ep.b.Task()]) })
		f, _ := play(t, e, seed, func(e *Env) int32 { return e.ep.b.Earliest() })
		random, near, early = random+r/200, near+n/200, early+f/200
	}
	t.Logf("random %.2f, nearest %.2f, earliest %.2f", random, near, early)
	if !(random < near && near < early) {
		t.Errorf("random %v, nearest %v, earliest %v", random, near, early)
	}
}

func TestSlotsHoldTheBestGPUs(t *testing.T) {
	c := DefaultConfig()
	c.Slots, c.Tasks, c.GPUs = 6, 50, 40
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	play(t, e, 3, func(e *Env) int32 {
		b, hope := e.ep.b, e.ep.hope[e.ep.b.Task()]
		slots := e.ep.enc.Slots()
		seen := map[int32]bool{}
		for _, g := range slots {
			if g < 0 || seen[g] {
				t.Fatalf("slots %v", slots)
			}
			seen[g] = true
		}
		if slots[0] != b.Earliest() || !seen[toHope(b, hope)] {
			t.Errorf("slots %v lack the earliest, %d, or the nearest, %d", slots, b.Earliest(), toHope(b, hope))
		}
		later := 0
		for _, f := range b.Finish() {
			if f < b.Finish()[slots[2]] {
				later++
			}
		}
		if later > 2 {
			t.Errorf("%d GPUs end before the third slot's", later)
		}
		return 1
	})
}

func TestHopesFollowTheirRule(t *testing.T) {
	src := rng.Stream(1, "dagplace/test")
	target, current, hope := []float64{10, 10, 10, 10}, []float64{4, 4, 4, 4}, make([]float64, 4)
	Pull{A: 0.5}.Hopes(hope, target, current, 1, src)
	for _, h := range hope {
		if h != 13 && h != 7 {
			t.Errorf("hope %v, want 10 ± 0.5·6", h)
		}
	}
	spirals, random := 0, 0
	for range 4000 {
		p := NewPull(0, src)
		if math.Abs(p.A) > 2 || p.Random != (math.Abs(p.A) >= 1) || p.Spiral && p.Random {
			t.Fatalf("%+v", p)
		}
		if p.Random {
			random++
		}
		if p.Spiral {
			spirals++
		}
	}
	if random < 1850 || random > 2150 || spirals < 850 || spirals > 1150 {
		t.Errorf("%d towards a random whale, want about a half; %d along a spiral, want about a quarter", random, spirals)
	}
	if p := NewPull(1, src); p.A != 0 {
		t.Errorf("at the end A is %v", p.A)
	}
	for range 100 {
		f := Pull{Spiral: true}.Factor(1, src)
		if math.Abs(f) > math.E {
			t.Errorf("factor %v", f)
		}
	}
}

func TestPositionsByHand(t *testing.T) {
	q := chain(t)
	loads, total := make([]float64, 2), make([]float64, 2)
	PrefixLoads(q, q.Graph.Order(), []int32{1, 1}, loads, total)
	if loads[0] != 10 || loads[1] != 20 {
		t.Errorf("prefix loads %v", loads)
	}
	FinalLoads(q, q.Graph.Order(), []int32{1, 1}, loads, total)
	if loads[0] != 20 || loads[1] != 20 {
		t.Errorf("final loads %v", loads)
	}
}

func TestStepsAllocateNothing(t *testing.T) {
	c := DefaultConfig()
	c.Tasks, c.Slots, c.Insert = 2000, 8, true
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{}, ts); err != nil {
		t.Fatal(err)
	}
	a := env.Action{Disc: []int32{0}}
	for range 1000 { // gaps take their room
		_ = e.Step(ctx, a, ts)
	}
	if n := testing.AllocsPerRun(500, func() { _ = e.Step(ctx, a, ts) }); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestHostileSnapshotsChangeNothing(t *testing.T) {
	e, _ := New(small()["default"])
	ts := env.NewTimeStep(e.Spec())
	if _, err := e.AppendSnapshot(nil); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("%v", err)
	}
	_ = e.Reset(ctx, env.Episode{Seed: 4}, ts)
	s, err := e.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	for k := range s {
		bad := append([]byte(nil), s...)
		bad[k] ^= 1
		if err := e.RestoreSnapshot(bad, ts); !errors.Is(err, env.ErrSnapshot) {
			t.Fatalf("byte %d: %v", k, err)
		}
	}
	other, _ := New(DefaultConfig())
	if err := other.RestoreSnapshot(s, env.NewTimeStep(other.Spec())); !errors.Is(err, env.ErrSnapshot) {
		t.Errorf("%v", err)
	}
}

func TestFaultsNameTheirKeys(t *testing.T) {
	err := (Config{Slots: 1, MaxSteps: -1}).Validate()
	for _, key := range []string{"graph", "tasks", "gpus", "speeds", "links", "order", "reward", "scale", "slots",
		"max_steps"} {
		if err == nil || !strings.Contains(err.Error(), key+": got") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestTheQueueKeepsTheContract(t *testing.T) {
	for name, c := range small() {
		t.Run(name, func(t *testing.T) {
			envtest.Run(t, func() env.Env {
				e, err := NewQueue(c)
				if err != nil {
					t.Fatal(err)
				}
				return e
			})
		})
	}
}

// a and b, of 10 s each, on two GPUs; b needs a.
func TestTheQueueByHand(t *testing.T) {
	e, err := NewQueue(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var seen [][]float32
	var rewards []float64
	q := chain(t)
	plan, err := e.Play(q, func(obs []float32, mask []bool) (int, error) {
		if !mask[0] || mask[1] {
			t.Errorf("mask %v", mask)
		}
		seen = append(seen, append([]float32(nil), obs[:8]...))
		rewards = append(rewards, e.s.reward)
		return 0, nil
	})
	if err != nil || plan.Makespan != 20 || plan.Proc[0] != plan.Proc[1] {
		t.Fatalf("%+v, %v", plan, err)
	}
	if err := dag.Check(q, plan, true); err != nil {
		t.Error(err)
	}
	// b joins the queue when a has ended, at 10: no GPU is at work, and nobody has waited.
	for k, want := range []float32{0.5, 0, 1. / 16, 1, 1, 1, 0, 0} {
		if seen[1][k] != want {
			t.Errorf("observation %d is %v, want %v", k, seen[1][k], want)
		}
	}
	// Play's leader takes 1 s: 10 s pass until b can be picked, and 10 until it has ended.
	if rewards[1] != -10 || e.s.reward != -10 {
		t.Errorf("rewards %v and %v", rewards[1], e.s.reward)
	}
}

// Three tasks without edges on one GPU: they are picked one by one as the GPU becomes idle, and the second pick shows
// that the tasks left have waited.
func TestTheQueueHasAClock(t *testing.T) {
	g, err := dag.NewGraph("g", []dag.Task{{ID: "a", Work: 4}, {ID: "b", Work: 2}, {ID: "c", Work: 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.NewPlatform([]dag.Processor{{ID: "0", Speed: 1}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	q, err := dag.NewProblem(g, p)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewQueue(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var nows []float64
	plan, err := e.Play(q, func(obs []float32, _ []bool) (int, error) {
		nows = append(nows, e.s.now)
		if wait := obs[globalFeatures+2]; wait != float32(e.s.now/4) {
			t.Errorf("at %v the oldest has waited %v of the longest task", e.s.now, wait)
		}
		return len(e.s.shown) - 1, nil
	})
	if err != nil || !slices.Equal(nows, []float64{0, 1, 3}) || !slices.Equal(plan.Start, []float64{3, 1, 0}) {
		t.Errorf("picks at %v, starts %v, %v", nows, plan, err)
	}
}

// The plan to be improved is a few times as long as HEFT's if it is random, and a little longer if it is one of a
// search.
func TestPlansOfASearchAreAlmostAsShortAsHEFTs(t *testing.T) {
	mean := map[string]float64{}
	for _, h := range hopes {
		c := DefaultConfig()
		c.Hopes = h
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1}, env.NewTimeStep(e.Spec())); err != nil {
				t.Fatal(err)
			}
			mean[h] += e.ep.current / e.ep.leader / 20
		}
	}
	if mean["search"] > 1.8 || mean["search"] < 1 || mean["random"] < 2.5 {
		t.Errorf("over HEFT's: %v", mean)
	}
}

// toHope is the processor whose load comes nearest to hope with the next task, the greedy generator of RTGS.
func toHope(b *Builder, hope float64) int32 {
	best, least := int32(-1), math.Inf(1)
	for g, x := range b.q.Row(b.Task()) {
		if math.IsInf(x, 1) {
			continue
		}
		if d := math.Abs(hope - (b.load[g] + x)); best < 0 || d < least {
			best, least = int32(g), d
		}
	}
	return best
}

// one is a workload of one problem.
type one struct{ q *dag.Problem }

func (o one) Count(traces.Part) int { return 1 }

func (o one) At(traces.Part, uint64, int) (*dag.Graph, *dag.Platform, error) {
	return o.q.Graph, o.q.Platform, nil
}

func (o one) Place(traces.Part, int) string { return "one" }

func (o one) SHA256() string { return "one" }

// newFixed returns the environment over one problem, whatever the seed.
func newFixed(cfg Config, q *dag.Problem) (*Env, error) {
	cfg.GPUs = q.Procs()
	w, err := NewWorkload(cfg, nil, one{q})
	if err != nil {
		return nil, err
	}
	return NewRecorded(cfg, w, traces.Training)
}
