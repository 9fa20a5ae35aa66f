package jobselect_test

import (
	"math"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// example is A (2 GPUs, 100 s), B and C (1 GPU, 10 s), all at 0, on two GPUs.
func example(t testing.TB, reward string) (*sched.Env, *env.TimeStep) {
	cfg := small(3)
	cfg.Reward = reward
	jobs := []traces.Job{job("A", 0, 100*second, 2), job("B", 0, 10*second, 1), job("C", 0, 10*second, 1)}
	return hand(t, cfg, cluster.Spec{Pool: 2}, jobs)
}

func closeTo(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("%s is %.12g, want %.12g", what, got, want)
	}
}

// legal is the legal actions as a list; 10 waits.
func legal(ts *env.TimeStep) (list []int) {
	for a, ok := range ts.Mask {
		if ok {
			list = append(list, a)
		}
	}
	return list
}

func wantLegal(t *testing.T, ts *env.TimeStep, want ...int) {
	t.Helper()
	got := legal(ts)
	if len(got) != len(want) {
		t.Fatalf("legal are %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("legal are %v, want %v", got, want)
		}
	}
}

// B, C, then A: the returns that the environment's page states.
func TestShortJobsFirstByHand(t *testing.T) {
	for _, x := range []struct {
		reward  string
		rewards [3]float64
	}{
		{"jct", [3]float64{0, -30.0 / 10800, -100.0 / 10800}},
		{"wait", [3]float64{0, -10.0 / 10800, 0}},
		{"slowdown", [3]float64{0, -(10.0/100 + 10.0/10 + 10.0/10) / 3, -1.0 / 3}},
		{"bsld", [3]float64{0, -(0.1 + 1 + 1) / 3, -1.0 / 3}},
		{"makespan", [3]float64{0, -10.0 / 3600, -100.0 / 3600}},
		{"utilisation", [3]float64{0, -10.0 / 3600, -100.0 / 3600}},
		{"throughput", [3]float64{0, -20.0 / 7200, 200.0 / 7200}},
	} {
		t.Run(x.reward, func(t *testing.T) {
			e, ts := example(t, x.reward)
			wantLegal(t, ts, 0, 1, 2) // waiting would never end
			if ts.Kind != env.First {
				t.Errorf("begins with %v", ts.Kind)
			}
			sum := 0.0
			for i, a := range []int{1, 1, 0} { // after B has left its slot C stands there
				step(t, e, a, ts)
				closeTo(t, "reward", ts.Reward, x.rewards[i])
				sum += ts.Reward
				if want := []time.Duration{0, 10 * second, 100 * second}[i]; ts.Elapsed != want {
					t.Errorf("step %d takes %v, want %v", i, ts.Elapsed, want)
				}
				if ts.Info[sched.InfoDiscount] != 1 {
					t.Errorf("discount %v", ts.Info[sched.InfoDiscount])
				}
				switch i {
				case 0:
					wantLegal(t, ts, 1, 10) // A does not fit any more
				case 1:
					wantLegal(t, ts, 0)
				}
			}
			if ts.Kind != env.Terminated {
				t.Errorf("ends with %v", ts.Kind)
			}
			want := map[string]float64{"jct": -(130.0 / 3) / 3600, "wait": -(10.0 / 3) / 3600, "slowdown": -1.0333333333333333,
				"bsld": -1.0333333333333333, "makespan": -110.0 / 3600, "utilisation": -110.0 / 3600, "throughput": 0.025}[x.reward]
			closeTo(t, "return", sum, want)
			info := ts.Info
			if info[sched.InfoJCT] != 130.0/3 || info[sched.InfoWait] != 10.0/3 || info[sched.InfoMakespan] != 110 ||
				info[sched.InfoUnfinished] != 0 ||
				math.Abs(info[sched.InfoSlowdown]-1.03333333333333) > 1e-12 {
				t.Errorf("info %v", info)
			}
		})
	}
}

func TestLongJobFirstByHand(t *testing.T) {
	for reward, want := range map[string]float64{"jct": -320.0 / 10800, "slowdown": -(1 + 11 + 11) / 3.0,
		"makespan":   -110.0 / 3600,
		"throughput": (220 - 2*200) / 7200.0} {
		e, ts := example(t, reward)
		sum := 0.0
		for _, a := range []int{0, 0, 0} {
			step(t, e, a, ts)
			sum += ts.Reward
		}
		if !ts.Kind.Last() {
			t.Fatal("not over")
		}
		closeTo(t, reward, sum, want)
	}
}

// The expected return of the policy that draws uniformly from the legal actions, from the whole tree of what can
// happen, with states told apart by snapshots.
func TestUniformPolicyByEnumeration(t *testing.T) {
	e, ts := example(t, "jct")
	leaves := 0
	var expect func() float64
	expect = func() float64 {
		if ts.Kind.Last() {
			leaves++
			return 0
		}
		here, err := e.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		actions := legal(ts)
		sum := 0.0
		for _, a := range actions {
			if err := e.RestoreSnapshot(here, ts); err != nil {
				t.Fatal(err)
			}
			step(t, e, a, ts)
			r := ts.Reward
			sum += r + expect()
		}
		return sum / float64(len(actions))
	}
	got := expect()
	if math.Abs(got - -0.0200617) > 5e-8 {
		t.Errorf("expected return %.7f over %d endings, want -0.0200617", got, leaves)
	}
}

// Discounting is over simulated time: two starts at one instant cost nothing, ten seconds cost gamma^(10 s/tau).
func TestDiscountByHand(t *testing.T) {
	cfg := small(3)
	cfg.Gamma, cfg.Tau = 0.5, 10*second
	e, ts := hand(t, cfg, cluster.Spec{Pool: 2},
		[]traces.Job{job("A", 0, 100*second, 2), job("B", 0, 10*second, 1), job("C", 0, 10*second, 1)})
	step(t, e, 1, ts)
	if ts.Info[sched.InfoDiscount] != 1 || ts.Reward != 0 {
		t.Errorf("a start: discount %v, reward %v", ts.Info[sched.InfoDiscount], ts.Reward)
	}
	step(t, e, 1, ts)
	closeTo(t, "discount", ts.Info[sched.InfoDiscount], 0.5)
	// N/(W·tau) = 1/10 per second, weighted by 2^(-s/10): ∫ = 10·(1−1/2)/ln 2 seconds.
	closeTo(t, "reward", ts.Reward, -0.5/math.Ln2)
	if e.Spec().Tau != 10*second || e.Spec().Discount(0.5, 20*second) != 0.25 {
		t.Error("the specification does not say so")
	}
}
