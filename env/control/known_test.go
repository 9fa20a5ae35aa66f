package control

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
)

// player is a policy with a memory of one episode; begin, if not nil, starts an episode and receives the task.
type player struct {
	begin func(task []float64)
	act   func(ts *env.TimeStep, a env.Action)
	see   func(a env.Action, ts *env.TimeStep)
}

// returns plays episodes and returns the mean return, its standard error, and the smallest and largest return.
func returns(t *testing.T, e env.Env, episodes int, p player) (mean, se, lo, hi float64) {
	t.Helper()
	ctx, ts, a := context.Background(), env.NewTimeStep(e.Spec()), env.NewActions(e.Spec(), 1).Row(0)
	lo, hi = math.Inf(1), math.Inf(-1)
	squares := 0.0
	for k := range episodes {
		ep := env.Episode{Seed: env.EpisodeSeed(11, k), Window: -1}
		if f, ok := e.(*Family); ok {
			n := 0
			for _, field := range f.TaskSpec() {
				n += field.Len()
			}
			ep.Task = make([]float64, n)
			f.SampleTask(rng.Stream(uint64(k), "task"), ep.Task)
		}
		if err := e.Reset(ctx, ep, ts); err != nil {
			t.Fatal(err)
		}
		if p.begin != nil {
			p.begin(ep.Task)
		}
		sum := 0.0
		for !ts.Kind.Last() {
			p.act(ts, a)
			if err := e.Step(ctx, a, ts); err != nil {
				t.Fatal(err)
			}
			if p.see != nil {
				p.see(a, ts)
			}
			sum += ts.Reward
		}
		mean += sum / float64(episodes)
		squares += sum * sum / float64(episodes)
		lo, hi = min(lo, sum), max(hi, sum)
	}
	return mean, math.Sqrt(max(squares-mean*mean, 0) / float64(episodes)), lo, hi
}

// uniformly plays at random.
func uniformly(src *rand.Rand) player {
	return player{act: func(ts *env.TimeStep, a env.Action) {
		for i := range a.Disc {
			a.Disc[i] = int32(src.IntN(len(ts.Mask)))
		}
		for i := range a.Cont {
			a.Cont[i] = float32(0.2*src.Float64() - 0.1)
		}
	}}
}

// when plays hi if cond holds, else lo.
func when(cond func(obs []float32) bool, hi, lo int32) player {
	return player{act: func(ts *env.TimeStep, a env.Action) {
		a.Disc[0] = lo
		if cond(ts.Obs) {
			a.Disc[0] = hi
		}
	}}
}

// thompson is Thompson sampling with uniform priors.
func thompson(src *rand.Rand, arms int) player {
	won, lost := make([]int, arms), make([]int, arms)
	gamma := func(n int) float64 { // of integer shape
		x := 1.0
		for range n {
			x *= 1 - src.Float64()
		}
		return -math.Log(x)
	}
	return player{
		begin: func([]float64) { clear(won); clear(lost) },
		act: func(_ *env.TimeStep, a env.Action) {
			best := -1.0
			for i := range won {
				x, y := gamma(won[i]+1), gamma(lost[i]+1)
				if v := x / (x + y); v > best {
					best, a.Disc[0] = v, int32(i)
				}
			}
		},
		see: func(a env.Action, ts *env.TimeStep) {
			if ts.Reward > 0 {
				won[a.Disc[0]]++
			} else {
				lost[a.Disc[0]]++
			}
		},
	}
}

// commit pulls at random for the first half of an episode and then pulls the arm with the best record.
func commit(src *rand.Rand, arms, half int, late *float64) player {
	won, pulls := make([]int, arms), make([]int, arms)
	n := 0
	return player{
		begin: func([]float64) { clear(won); clear(pulls); n = 0 },
		act: func(_ *env.TimeStep, a env.Action) {
			if n < half {
				a.Disc[0] = int32(src.IntN(arms))
				return
			}
			best := -1.0
			for i := range won {
				if v := float64(won[i]) / float64(max(pulls[i], 1)); v > best {
					best, a.Disc[0] = v, int32(i)
				}
			}
		},
		see: func(a env.Action, ts *env.TimeStep) {
			if n++; n <= half {
				pulls[a.Disc[0]]++
				won[a.Disc[0]] += int(ts.Reward)
			} else {
				*late += ts.Reward
			}
		},
	}
}

// bestArm is told the task, and pulls the best arm.
func bestArm() player {
	arm := 0
	return player{
		begin: func(task []float64) {
			arm = 0
			for i, v := range task {
				if v > task[arm] {
					arm = i
				}
			}
		},
		act: func(_ *env.TimeStep, a env.Action) { a.Disc[0] = int32(arm) },
	}
}

// walkToGoal is told the task, too.
func walkToGoal() player {
	var goal []float64
	return player{
		begin: func(task []float64) { goal = task },
		act: func(ts *env.TimeStep, a env.Action) {
			for i := range a.Cont {
				a.Cont[i] = min(max(float32(goal[i])-ts.Obs[i], -0.1), 0.1)
			}
		},
	}
}

// Each row is a policy and its mean return, either of the same policy in Gymnasium (at least 1500 episodes) or by
// arithmetic. Tolerances are at least three standard errors.
func TestPoliciesReturnWhatTheyShould(t *testing.T) {
	src := rng.Stream(1, "policies")
	still := player{act: func(_ *env.TimeStep, a env.Action) { clear(a.Cont) }}
	for _, c := range []struct {
		id, policy      string
		p               player
		episodes        int
		mean, tolerance float64
	}{
		{"CartPole-v1", "uniform", uniformly(src), 2000, 22.2, 1},
		{"CartPole-v1", "balance", when(func(o []float32) bool { return o[2]+0.5*o[3] > 0 }, 1, 0), 20, 500, 0},
		{"MountainCar-v0", "uniform", uniformly(src), 50, -200, 0},
		{"MountainCar-v0", "swing", when(func(o []float32) bool { return o[1] >= 0 }, 2, 0), 500, -119.4, 0.6},
		{"Acrobot-v1", "uniform", uniformly(src), 30, -498.7, 8},
		{"Acrobot-v1", "against the upper link", when(func(o []float32) bool { return o[4] >= 0 }, 0, 2), 300, -84.9, 4},
		{"Acrobot-v1", "with the upper link", when(func(o []float32) bool { return o[4] >= 0 }, 2, 0), 3, -500, 0},
		{"Bandit-v1", "uniform", uniformly(src), 1000, 50, 1.5},
		{"Bandit-v1", "Thompson sampling", thompson(src, 10), 500, 77.2, 2},
		{"Bandit-v1", "the best arm", bestArm(), 1000, 1000. / 11, 1},
		// The mean distance of a point of the square from its middle is (√2 + ln(1+√2))/6.
		{"Nav2D-v1", "stand still", still, 2000, -100 * (math.Sqrt2 + math.Log(1+math.Sqrt2)) / 6, 1.2},
		{"Nav2D-v1", "go to the goal", walkToGoal(), 2000, -0.506, 0.02},
	} {
		mean, se, lo, hi := returns(t, open(t, c.id), c.episodes, c.p)
		t.Logf("%s, %s: %.2f ± %.2f, from %.2f to %.2f", c.id, c.policy, mean, se, lo, hi)
		if math.Abs(mean-c.mean) > c.tolerance+1e-9 {
			t.Errorf("%s, %s policy: mean return %v ± %v, want %v ± %v", c.id, c.policy, mean, se, c.mean, c.tolerance)
		}
	}
}

// What one step of adaptation can reach: 100 random pulls, then the arm with the best record.
func TestACommittedBanditEarns87OfAHundred(t *testing.T) {
	b, err := NewBandit(BanditConfig{Arms: 10, Pulls: 200})
	if err != nil {
		t.Fatal(err)
	}
	const episodes = 1000
	late := 0.0
	returns(t, b, episodes, commit(rng.Stream(1, "commit"), 10, 100, &late))
	if got := late / episodes; math.Abs(got-87) > 1.5 {
		t.Errorf("%v of a hundred pulls pay, want 87", got)
	}
}
