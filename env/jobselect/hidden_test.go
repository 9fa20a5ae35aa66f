package jobselect_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// twin plays two workloads side by side with the same actions up to time until, and fails if the agent's observations
// differ.
func twin(t *testing.T, cfg jobselect.Config, a, b []traces.Job, until time.Duration) (steps int) {
	t.Helper()
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
	cfg.Window = len(a)
	ea, ta := hand(t, cfg, spec, a)
	eb, tb := hand(t, cfg, spec, b)
	r := rand.New(rand.NewPCG(1, 1))
	for !ta.Kind.Last() && ea.State().View.Now() < until {
		if eb.State().View.Now() != ea.State().View.Now() || !slices.Equal(ta.Mask, tb.Mask) {
			t.Fatalf("at %v and %v other actions are legal", ea.State().View.Now(), eb.State().View.Now())
		}
		if !slices.Equal(ta.Obs, tb.Obs) {
			at := 0
			for _, f := range ea.Spec().Obs {
				for i := range f.Len() {
					if ta.Obs[at+i] != tb.Obs[at+i] {
						t.Fatalf("at %v field %s[%d] gives it away: %v and %v", ea.State().View.Now(), f.Name, i, ta.Obs[at+i],
							tb.Obs[at+i])
					}
				}
				at += f.Len()
			}
		}
		act := anyLegal(r, ta.Mask)
		step(t, ea, act, ta)
		step(t, eb, act, tb)
		steps++
	}
	return steps
}

// What the agent sees depends only on the past and on estimates, not on future jobs or on the true remaining times of
// running jobs.
func TestTheFutureIsHidden(t *testing.T) {
	var past []traces.Job
	for i := range 30 {
		j := job(string(rune('A'+i)), time.Duration(i)*20*second, time.Duration(1000+i)*second, 1+i%2)
		j.Estimate = time.Duration(30+7*i) * second
		past = append(past, j)
	}
	const now = 600 * second
	other := func(change func(i int, j *traces.Job)) []traces.Job {
		jobs := slices.Clone(past)
		for i := range jobs {
			change(i, &jobs[i])
		}
		return jobs
	}
	for _, estimates := range []string{"trace", "none"} {
		for _, slots := range []string{"mixed", "oldest"} {
			cfg := small(0)
			cfg.Estimates, cfg.Slots, cfg.Visible, cfg.Running = sim.MustEstimates(estimates), slots, 6, 4
			longer := other(func(i int, j *traces.Job) { j.Work *= time.Duration(2 + i%3) })
			if n := twin(t, cfg, past, longer, now); n < 10 {
				t.Errorf("only %d steps", n)
			}
			preempting(&cfg)
			cfg.MinRun = 45 * second
			if n := twin(t, cfg, past, longer, now); n < 10 {
				t.Errorf("only %d steps where jobs can be stopped", n)
			}
			later := other(func(i int, j *traces.Job) {
				if i >= 20 {
					j.Submit += 300 * second
					j.GPUs, j.Work, j.Estimate = 4, second, second
				}
			})
			if n := twin(t, cfg, past, later, 400*second); n < 10 {
				t.Errorf("only %d steps", n)
			}
		}
	}
	// With estimates: none, the trace's estimates are not visible either.
	cfg := small(0)
	cfg.Estimates, cfg.Visible, cfg.Running = sim.MustEstimates("none"), 6, 4
	twin(t, cfg, past, other(func(_ int, j *traces.Job) { j.Estimate *= 10 }), now)
}

// With exact estimates the work must be visible, so the test above can fail.
func TestEstimatesDoShow(t *testing.T) {
	cfg := small(1)
	_, a := hand(t, cfg, cluster.Spec{Pool: 2}, []traces.Job{job("A", 0, 100*second, 1)})
	_, b := hand(t, cfg, cluster.Spec{Pool: 2}, []traces.Job{job("A", 0, 200*second, 1)})
	if slices.Equal(a.Obs, b.Obs) {
		t.Error("exact estimates are not shown")
	}
}

// The noise on an estimate, a job's model and the window depend on the episode alone, never on the policy.
func TestDrawsDoNotDependOnThePolicy(t *testing.T) {
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Estimates = 30, 20, sim.MustEstimates("noisy:1")
	e := newEnv(t, cfg, topdrl(), tangled(rand.New(rand.NewPCG(13, 13)), 300))
	type known struct {
		estimate time.Duration
		features [5]float32 // model and batch among them
	}
	ts := env.NewTimeStep(e.Spec())
	seen := map[int]known{}
	for policy := range uint64(4) {
		r := rand.New(rand.NewPCG(policy, 14))
		reset(t, e, env.Episode{Seed: 3, Window: -1}, ts)
		for !ts.Kind.Last() {
			s := e.State()
			for _, j := range s.Slots {
				k := known{s.Known[j].Estimate, s.Known[j].Feature}
				pos := s.View.Pos(j)
				if before, ok := seen[pos]; ok && before != k {
					t.Fatalf("job %d is %+v, it was %+v under another policy", pos, k, before)
				}
				seen[pos] = k
			}
			step(t, e, anyLegal(r, ts.Mask), ts)
		}
	}
	reset(t, e, env.Episode{Seed: 4, Window: -1}, ts)
	if len(seen) != 30 {
		t.Errorf("%d jobs were seen", len(seen))
	}
}
