package gpupick_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/env/gpupick"
	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var ctx = context.Background()

// tree is 2 racks of 4 machines with 4 GPUs.
func tree() cluster.Spec {
	return cluster.Spec{Name: "tree",
		Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}}
}

// windows are the jobs of every episode.
type windows []traces.Job

func (w windows) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: w, Counted: len(w)}, nil
}

func job(submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: "j", Submit: submit, Work: work, GPUs: gpus, GPUMilli: 1000}
}

func open(t *testing.T, cfg gpupick.Config, jobs ...traces.Job) (*gpupick.Env, *env.TimeStep) {
	t.Helper()
	e, err := gpupick.New(cfg, tree(), windows(jobs), traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
		t.Fatal(err)
	}
	return e, ts
}

func plain() gpupick.Config {
	c := gpupick.DefaultConfig()
	c.Load = 0
	return c
}

func pick(t *testing.T, e *gpupick.Env, g int, ts *env.TimeStep) {
	t.Helper()
	if err := e.Step(ctx, env.Action{Disc: []int32{int32(g)}}, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Spec().Check(ts); err != nil {
		t.Fatal(err)
	}
}

// Two GPUs of an empty tree: in one machine the best, 0.8; in one rack 1.05; in two 1.55, the worst. So 1, 2/3 and 0.
func TestTwoGPUsByHand(t *testing.T) {
	for _, c := range []struct {
		a, b int
		want float64
	}{{0, 1, 1}, {0, 3, 1}, {0, 4, 2. / 3}, {5, 13, 2. / 3}, {0, 16, 0}, {15, 31, 0}} {
		e, ts := open(t, plain(), job(0, time.Hour, 2))
		pick(t, e, c.a, ts)
		if ts.Reward != 0 || ts.Kind != env.Mid || ts.Mask[c.a] {
			t.Errorf("the first pick: reward %v, kind %v, GPU %d legal again: %v", ts.Reward, ts.Kind, c.a, ts.Mask[c.a])
		}
		pick(t, e, c.b, ts)
		if math.Abs(ts.Reward-c.want) > 1e-9 || ts.Kind != env.Terminated {
			t.Errorf("GPUs %d and %d: reward %v, kind %v, want %v and the end", c.a, c.b, ts.Reward, ts.Kind, c.want)
		}
		if got, want := ts.Info[gpupick.InfoJCT], 3600*cost(c.want); math.Abs(got-want) > 1e-6 {
			t.Errorf("GPUs %d and %d: JCT %v, want %v", c.a, c.b, got, want)
		}
	}
}

// cost is that of two GPUs with a closeness, in units of the best.
func cost(closeness float64) float64 { return (0.8 + (1-closeness)*0.75) / 0.8 }

// Of the 31 others 3 are in the machine, 12 in the rack, 16 in the other: (3 + 12·2/3)/31 = 11/31.
func TestRandomPicksEarnElevenParts(t *testing.T) {
	sum := 0.0
	for b := 1; b < 32; b++ {
		e, ts := open(t, plain(), job(0, time.Hour, 2))
		pick(t, e, 0, ts)
		pick(t, e, b, ts)
		sum += ts.Reward
	}
	if math.Abs(sum/31-11./31) > 1e-12 {
		t.Errorf("a mean of %v, want 11/31", sum/31)
	}
}

func TestClosestBIsBestOnAnEmptyTree(t *testing.T) {
	rule, err := cluster.NewPlacement("closest-b")
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 8; n++ {
		e, ts := open(t, plain(), job(0, time.Hour, n))
		for range n {
			g, err := e.Pick(rule)
			if err != nil {
				t.Fatal(err)
			}
			pick(t, e, int(g), ts)
		}
		want := 1.0
		if n == 1 {
			want = 0 // there is nothing to win
		}
		if ts.Reward != want || ts.Kind != env.Terminated {
			t.Errorf("%d GPUs: reward %v, kind %v, want %v and the end", n, ts.Reward, ts.Kind, want)
		}
	}
}

// A job of 30 GPUs, then one of 4, which must wait for it although a third would fit.
func TestJobsStartInOrderOfSubmit(t *testing.T) {
	e, ts := open(t, plain(), job(0, 100*time.Second, 30), job(time.Second, 10*time.Second, 4),
		job(2*time.Second, 10*time.Second, 1))
	for g := range 30 {
		pick(t, e, g, ts)
	}
	// 30 GPUs on 8 machines in 2 racks cost 1 + 2 + 0.75, the least for 30.
	if ts.Elapsed != 100*time.Second || e.View().Now() != 100*time.Second {
		t.Fatalf("the second job's turn is after %v at %v, want 100 s", ts.Elapsed, e.View().Now())
	}
	for g := range 4 {
		pick(t, e, g, ts)
	}
	if ts.Reward != 1 || ts.Elapsed != 0 || ts.Kind != env.Mid {
		t.Errorf("reward %v after %v, kind %v", ts.Reward, ts.Elapsed, ts.Kind)
	}
	pick(t, e, 4, ts)
	if ts.Kind != env.Terminated || math.Abs(ts.Info[gpupick.InfoWait]-(0+99+98)/3.) > 1e-9 ||
		ts.Info[gpupick.InfoMakespan] != 110 {
		t.Errorf("kind %v, wait %v, makespan %v", ts.Kind, ts.Info[gpupick.InfoWait], ts.Info[gpupick.InfoMakespan])
	}
}

func TestIdlingLetsTimePassAndIsCapped(t *testing.T) {
	cfg := plain()
	if e, ts := open(t, cfg, job(0, time.Hour, 1)); ts.Mask[32] || e.Spec().NoOp != -1 {
		t.Error("idling is legal without idle")
	}
	cfg.Idle, cfg.MaxSteps = true, 3
	e, ts := open(t, cfg, job(0, time.Hour, 1), job(time.Minute, time.Hour, 2), job(2*time.Minute, time.Hour, 1))
	if !ts.Mask[32] || e.Spec().NoOp != 32 {
		t.Error("idling is masked, although a job will arrive")
	}
	pick(t, e, 32, ts)
	if ts.Elapsed != time.Minute || ts.Reward != 0 {
		t.Errorf("idled %v for %v", ts.Elapsed, ts.Reward)
	}
	pick(t, e, 0, ts)
	pick(t, e, 1, ts)
	if ts.Kind != env.Truncated || ts.Mask[32] {
		t.Errorf("after three steps: kind %v; idling amid a pick: %v", ts.Kind, ts.Mask[32])
	}
}

func TestContract(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var jobs []traces.Job
	at := time.Duration(0)
	for range 400 {
		at += time.Duration(r.IntN(400)) * time.Second
		jobs = append(jobs, job(at, time.Duration(1+r.IntN(4000))*time.Second, 1+r.IntN(8)))
	}
	for name, change := range map[string]func(c *gpupick.Config){
		"default": func(*gpupick.Config) {},
		"idle, linear, no tree": func(c *gpupick.Config) {
			c.Idle, c.TimeAxis, c.Comm, c.MaxSteps = true, "linear", "none",
				60
		},
		"a row of each GPU": func(c *gpupick.Config) { c.Table = true },
		"blind":             func(c *gpupick.Config) { c.Estimates, c.Load = sim.MustEstimates("none"), 0 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := gpupick.DefaultConfig()
			cfg.Window = 12
			change(&cfg)
			w, err := traces.NewWindows(jobs, cfg.Window, 0)
			if err != nil {
				t.Fatal(err)
			}
			options := []envtest.Option{envtest.Cap(2000)}
			if !checked {
				options = append(options, envtest.NoAllocs())
			}
			envtest.Run(t, func() env.Env {
				e, err := gpupick.New(cfg, tree(), w, traces.Training)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}, options...)
		})
	}
}

func TestFaultsAreAllTold(t *testing.T) {
	cfg := gpupick.DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg = gpupick.Config{Gamma: 2, Load: -1, Comm: "pigeon", MaxSteps: -1, TimeAxis: "cubic"}
	var keys []string
	for _, f := range fault.All(cfg.Validate()) {
		keys = append(keys, f.Key)
	}
	if got, want := strings.Join(keys, " "),
		"gamma window load max_gpus comm estimates max_steps time_axis row forecast"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := gpupick.New(gpupick.DefaultConfig(), cluster.Spec{Pool: 8}, windows(nil), traces.Training); err == nil ||
		!strings.Contains(err.Error(), "a counter of 8 GPUs has no machines") {
		t.Errorf("a counter: %v", err)
	}
}
