package jobselect_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/reward"
	"clustergym/env/sched"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// identity is what an undiscounted return must be, from what happened to the jobs alone. end is where the
// episode ended; jobs that had not finished count up to it.
func identity(name string, f *facts, w *sched.Window, end time.Duration) float64 {
	n, tau := float64(w.Jobs), w.Tau.Seconds()
	sum, last, all := 0.0, time.Duration(0), 0
	f.counted(func(k *fact) {
		finish, start := k.finish, k.start
		if finish >= 0 {
			last = max(last, finish)
			all++
		} else {
			finish = end
		}
		if start < 0 {
			start = end
		}
		jct, wait, run := (finish - k.submit).Seconds(), (start - k.submit).Seconds(), (finish - start).Seconds()
		switch name {
		case "jct":
			sum -= jct / n / tau
		case "wait":
			sum -= wait / n / tau
		case "slowdown":
			sum -= jct / k.work.Seconds() / n
		case "bsld":
			x := jct / max(k.work.Seconds(), 10)
			if k.finish >= 0 {
				x = max(1, x)
			}
			sum -= x / n
		case "throughput":
			done := k.work.Seconds()
			if k.finish < 0 {
				done = run * k.rate
			}
			sum += k.gpus * (done - 2*wait) / float64(w.GPUs) / tau
		}
	})
	if name == "makespan" || name == "utilisation" {
		if all < w.Jobs {
			last = end
		}
		sum = -(last - w.Begin).Seconds() / tau
	}
	return sum
}

// play plays one episode with random legal actions and returns its return, its number of steps and its end.
func play(t testing.TB, e *sched.Env, ep env.Episode, seed uint64,
	f *facts) (sum float64, steps int, ts *env.TimeStep) {
	t.Helper()
	ts = env.NewTimeStep(e.Spec())
	f.jobs = nil
	*f = facts{}
	e.Watch(f)
	reset(t, e, ep, ts)
	f.first, f.begin = e.Window().First, e.Window().Begin
	r := rand.New(rand.NewPCG(seed, 1))
	for !ts.Kind.Last() {
		step(t, e, anyLegal(r, ts.Mask), ts)
		sum += ts.Reward
		steps++
	}
	return sum, steps, ts
}

func relClose(got, want float64) bool { return math.Abs(got-want) <= 1e-9*max(1, math.Abs(want)) }

// Every reward's return is what its page says, under random play over several windows, with everything on: a
// warm start, stretched arrivals, the cost of distance, shared GPUs.
func TestRewardIdentities(t *testing.T) {
	jobs := tangled(rand.New(rand.NewPCG(1, 1)), 600)
	for _, name := range reward.Names() {
		t.Run(name, func(t *testing.T) {
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm, cfg.Reward = 40, 60, name
			e := newEnv(t, cfg, topdrl(), jobs)
			occupied := 0
			var f facts
			for k := range 8 {
				ep := env.Episode{Seed: uint64(k), Window: k%3 - 1}
				got, steps, ts := play(t, e, ep, uint64(k), &f)
				w := e.Window()
				want := identity(name, &f, w, 0)
				if !relClose(got, want) {
					t.Errorf("window %d: the return is %.15g, the identity says %.15g", k, got, want)
				}
				if ts.Kind != env.Terminated || steps < w.Jobs || steps > 3*w.Jobs+w.GPUs {
					t.Errorf("window %d: %v after %d steps", k, ts.Kind, steps)
				}
				n := 0
				f.counted(func(*fact) { n++ })
				if n != w.Jobs {
					t.Errorf("window %d: %d jobs counted, want %d", k, n, w.Jobs)
				}
				info := ts.Info
				for i, name := range map[int]string{sched.InfoJCT: "jct", sched.InfoWait: "wait", sched.InfoMakespan: "makespan"} {
					if want := -identity(name, &f, w, 0) * w.Tau.Seconds(); !relClose(info[i], want) {
						t.Errorf("window %d: info says %s %v, want %v", k, name, info[i], want)
					}
				}
				if want := -identity("slowdown", &f, w, 0); !relClose(info[sched.InfoSlowdown], want) ||
					info[sched.InfoUnfinished] != 0 {
					t.Errorf("window %d: info %v", k, info)
				}
				e.Watch(nil)
				reset(t, e, ep, ts)
				occupied += len(e.State().View.Running())
			}
			if occupied == 0 {
				t.Error("no window begins on a machine in use")
			}
		})
	}
}

// A return cut off at the horizon is the same integral up to there.
func TestRewardIdentitiesAtTheHorizon(t *testing.T) {
	jobs := tangled(rand.New(rand.NewPCG(2, 2)), 400)
	for _, name := range reward.Names() {
		t.Run(name, func(t *testing.T) {
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm, cfg.Reward, cfg.Horizon = 50, 40, name, 40*time.Minute
			e := newEnv(t, cfg, topdrl(), jobs)
			var f facts
			for k := range 4 {
				got, _, ts := play(t, e, env.Episode{Seed: uint64(k), Window: -1}, uint64(k), &f)
				w := e.Window()
				end := w.Begin + cfg.Horizon
				if ts.Kind != env.Truncated || e.State().View.Now() != end {
					t.Fatalf("%v at %v, want Truncated at %v", ts.Kind, e.State().View.Now(), end)
				}
				if want := identity(name, &f, w, end); !relClose(got, want) {
					t.Errorf("window %d: the return is %.15g, the identity says %.15g", k, got, want)
				}
				unfinished := float64(w.Jobs)
				f.counted(func(k *fact) {
					if k.finish >= 0 {
						unfinished--
					}
				})
				if ts.Info[sched.InfoUnfinished] != unfinished || unfinished == 0 {
					t.Errorf("window %d: info says %v unfinished, want %v", k, ts.Info[sched.InfoUnfinished], unfinished)
				}
			}
		})
	}
}

// A relative return is the plain one minus what the baseline earns on the same window. auto is SJF, or smallest without
// estimates. An explicit sjf without estimates knows the true run times.
func TestRelativeReturns(t *testing.T) {
	jobs := tangled(rand.New(rand.NewPCG(3, 3)), 600)
	for _, name := range reward.Names() {
		for _, base := range []string{"fifo", "sjf", "smallest", "auto"} {
			for _, estimates := range []string{"exact", "noisy:0.5", "none"} {
				t.Run(name+"/"+base+"/"+estimates, func(t *testing.T) {
					cfg := jobselect.DefaultConfig()
					cfg.Window, cfg.Warm, cfg.Reward, cfg.Relative, cfg.Estimates = 40, 60, name, base, sim.MustEstimates(estimates)
					e := newEnv(t, cfg, topdrl(), jobs)
					hc := schedulers.DefaultConfig()
					hc.Order, hc.Admission, hc.Placement = base, "skip", cfg.Placement
					if estimates != "none" {
						hc.Estimates = sim.MustEstimates(estimates)
					}
					if base == "auto" {
						hc.Order = map[string]string{"exact": "sjf", "noisy:0.5": "sjf", "none": "smallest"}[estimates]
					}
					h, err := schedulers.New(hc)
					if err != nil {
						t.Fatal(err)
					}
					var f, b facts
					for k := range 5 {
						ep := env.Episode{Seed: uint64(k), Window: k%2 - 1}
						got, _, _ := play(t, e, ep, uint64(k), &f)
						w := *e.Window()
						own := identity(name, &f, &w, 0)
						h.Reseed(ep.Seed)
						b = facts{first: w.First, begin: w.Begin}
						if err := e.Simulate(ctx, ep, h, &b); err != nil {
							t.Fatal(err)
						}
						if want := own - identity(name, &b, &w, 0); !relClose(got, want) {
							t.Errorf("window %d: the return is %.15g, want %.15g (own %.15g)", k, got, want, own)
						}
					}
				})
			}
		}
	}
}

// Discounted: the sum of rewards, each weighted by the product of the discounts before it, is the integral over
// the whole episode, here by Simpson's rule over every job's time in the system.
func TestDiscountedReturns(t *testing.T) {
	jobs := tangled(rand.New(rand.NewPCG(4, 4)), 300)
	const gamma = 0.8
	for _, name := range []string{"jct", "wait", "slowdown", "bsld", "makespan", "throughput"} {
		t.Run(name, func(t *testing.T) {
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm, cfg.Reward, cfg.Gamma = 40, 0, name, gamma
			e := newEnv(t, cfg, topdrl(), jobs)
			for seed := range uint64(4) {
				var f facts
				e.Watch(&f)
				ts := env.NewTimeStep(e.Spec())
				reset(t, e, env.Episode{Seed: seed, Window: -1}, ts)
				r := rand.New(rand.NewPCG(seed, 4))
				got, weight := 0.0, 1.0
				for !ts.Kind.Last() {
					step(t, e, anyLegal(r, ts.Mask), ts)
					got += weight * ts.Reward
					weight *= ts.Info[sched.InfoDiscount]
					if want := math.Pow(gamma, ts.Elapsed.Hours()); math.Abs(want-ts.Info[sched.InfoDiscount]) > 1e-12 {
						t.Fatalf("discount %v after %v, want %v", ts.Info[sched.InfoDiscount], ts.Elapsed, want)
					}
				}
				w := e.Window()
				at := func(x time.Duration) float64 { return math.Pow(gamma, (x - w.Begin).Hours()) }
				over := func(from, to time.Duration) float64 { // seconds
					const panels = 200
					h := (to - from).Seconds() / panels
					sum := at(from) + at(to)
					for i := 1; i < panels; i++ {
						sum += float64(2+2*(i%2)) * math.Pow(gamma, ((from-w.Begin).Seconds()+float64(i)*h)/3600)
					}
					return sum * h / 3
				}
				n, tau, want, last := float64(w.Jobs), w.Tau.Seconds(), 0.0, time.Duration(0)
				f.counted(func(k *fact) {
					last = max(last, k.finish)
					switch name {
					case "jct":
						want -= over(k.submit, k.finish) / n / tau
					case "wait":
						want -= over(k.submit, k.start) / n / tau
					case "slowdown":
						want -= over(k.submit, k.finish) / k.work.Seconds() / n
					case "bsld":
						per := 1 / max(k.work.Seconds(), 10)
						jct := (k.finish - k.submit).Seconds()
						want -= (over(k.submit, k.finish)*per + max(0, 1-jct*per)*at(k.finish)) / n
					case "throughput":
						want += k.gpus * (k.rate*over(k.start, k.finish) - 2*over(k.submit, k.start)) / float64(w.GPUs) / tau
					}
				})
				if name == "makespan" {
					want = -over(w.Begin, last) / tau
				}
				if !relClose(got, want) {
					t.Errorf("seed %d: the discounted return is %.15g, the integral %.15g", seed, got, want)
				}
			}
		})
	}
}

// Discounted and relative at once, against the two plain ones.
func TestRelativeAndDiscounted(t *testing.T) {
	jobs := tangled(rand.New(rand.NewPCG(5, 5)), 300)
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Gamma = 30, 0, 0.9
	hc := schedulers.DefaultConfig()
	hc.Admission, hc.Placement = "skip", cfg.Placement
	discounted := func(e *sched.Env, seed uint64) float64 {
		ts := env.NewTimeStep(e.Spec())
		reset(t, e, env.Episode{Seed: seed, Window: -1}, ts)
		r := rand.New(rand.NewPCG(seed, 5))
		sum, weight := 0.0, 1.0
		for !ts.Kind.Last() {
			step(t, e, anyLegal(r, ts.Mask), ts)
			sum += weight * ts.Reward
			weight *= ts.Info[sched.InfoDiscount]
		}
		return sum
	}
	plain := newEnv(t, cfg, topdrl(), jobs)
	cfg.Relative = "fifo"
	rel := newEnv(t, cfg, topdrl(), jobs)
	for seed := range uint64(4) {
		var b facts
		h, err := schedulers.New(hc)
		if err != nil {
			t.Fatal(err)
		}
		if err := plain.Simulate(ctx, env.Episode{Seed: seed, Window: -1}, h, &b); err != nil {
			t.Fatal(err)
		}
		w := *plain.Window()
		b.first = w.First
		base := 0.0
		b.counted(func(k *fact) {
			a, z := (k.submit - w.Begin).Hours(), (k.finish - w.Begin).Hours()
			base -= (math.Pow(cfg.Gamma, z) - math.Pow(cfg.Gamma, a)) / math.Log(cfg.Gamma) / float64(w.Jobs)
		})
		if got, want := discounted(rel, seed), discounted(plain, seed)-base; !relClose(got, want) {
			t.Errorf("seed %d: %.15g, want %.15g", seed, got, want)
		}
	}
}
