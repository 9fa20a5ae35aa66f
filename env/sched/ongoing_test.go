package sched_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// cuts are windows that begin with the first job of the workload and are cut where the test says: window k counts the
// jobs from cut k to before cut k+1, and all before them are its warm-up.
type cuts struct {
	*traces.Windows
	jobs []traces.Job
	at   []int
}

func newCuts(t *testing.T, jobs []traces.Job, at ...int) *cuts {
	t.Helper()
	w, err := traces.NewWindows(jobs, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &cuts{w, jobs, at}
}

func (c *cuts) Count(traces.Part) int { return len(c.at) - 1 }

func (c *cuts) At(_ traces.Part, seed uint64, window int) (traces.Window, error) {
	if window < 0 {
		window = int(seed % uint64(c.Count(0)))
	}
	if window >= c.Count(0) {
		return traces.Window{}, fmt.Errorf("window %d of %d", window, c.Count(0))
	}
	from, to := c.at[window], c.at[window+1]
	return traces.Window{Jobs: c.jobs[: to+1 : to+1], Warm: from, Counted: to - from, First: from}, nil
}

// busy are jobs that come a little slower than eight GPUs can run them, with short ones among them.
func busy(seed uint64, n int) []traces.Job {
	r := rand.New(rand.NewPCG(seed, seed))
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		if r.IntN(5) > 0 { // some arrive together
			at += time.Duration(r.ExpFloat64() * 640 * float64(time.Second))
		}
		work := time.Duration(math.Exp(9*r.Float64()) * float64(time.Second))
		jobs[i] = traces.Job{ID: fmt.Sprint("j", i), User: fmt.Sprint("u", r.IntN(4)), Submit: at, Work: work,
			Estimate: 2 * work, GPUs: 1 + r.IntN(4), GPUMilli: 1000}
	}
	return jobs
}

func twoNodes() cluster.Spec {
	return cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
}

// life is what happened to one job, by a log of events.
type life struct {
	submit, finish time.Duration
	runs           [][2]time.Duration // from, to
	work, gpus     float64            // seconds, number
}

// lives keeps the log of a run. It is an independent account: it knows jobs, not integrals.
type lives map[int]*life

func (l lives) of(v *sim.View, j sim.Job) *life {
	x := l[v.Pos(j)]
	if x == nil {
		t := v.Trace(j)
		x = &life{submit: t.Submit, finish: math.MaxInt64, work: t.Work.Seconds(), gpus: float64(t.Milli()) / 1000}
		l[v.Pos(j)] = x
	}
	return x
}

func (l lives) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		if e.Job < 0 {
			continue
		}
		x := l.of(v, e.Job)
		switch e.Kind {
		case sim.Start:
			x.runs = append(x.runs, [2]time.Duration{e.At, math.MaxInt64})
		case sim.Preempt:
			x.runs[len(x.runs)-1][1] = e.At
		case sim.Finish:
			x.finish, x.runs[len(x.runs)-1][1] = e.At, e.At
		}
	}
	return nil
}

// joined is a log that begins in the middle of a run: with what is in the system at the first point.
type joined struct {
	lives
	begun bool
}

func (l *joined) Observe(v *sim.View, p *sim.Point) error {
	if l.begun {
		return l.lives.Observe(v, p)
	}
	l.begun = true
	for _, j := range v.Running() {
		l.of(v, j).runs = [][2]time.Duration{{v.Started(j), math.MaxInt64}}
	}
	for _, j := range v.Waiting() {
		l.of(v, j)
	}
	return nil
}

func (l *joined) Reset() {
	l.begun = false
	clear(l.lives)
}

// overlap returns how much of [from, to) lies in [a, b), in seconds.
func overlap(from, to, a, b time.Duration) float64 {
	return max(0, min(to, b)-max(from, a)).Seconds()
}

// sums are integrals over [a, b): of the jobs in the system, of those that wait, and so on.
type sums struct {
	jct, wait, slowdown, bsld, throughput float64
	left                                  int // in the system at b
}

// last is the position of the last job that the run knows: of jobs that arrive together at b it may know the first only.
func (l lives) sums(a, b time.Duration, last int) (s sums) {
	for pos, x := range l {
		in, ran := overlap(x.submit, x.finish, a, b), 0.0
		for _, r := range x.runs {
			ran += overlap(r[0], r[1], a, b)
		}
		least := max(x.work, 10)
		s.jct += in
		s.wait += in - ran
		s.slowdown += in / x.work
		s.bsld += in / least
		if x.finish > a && x.finish <= b {
			s.bsld += max(0, 1-(x.finish-x.submit).Seconds()/least)
		}
		s.throughput += x.gpus * (ran - 2*(in-ran))
		if x.submit <= b && x.finish > b && pos <= last {
			s.left++
		}
	}
	return s
}

// of returns the return that a stretch of n jobs on eight GPUs has by s.
func (s *sums) of(reward string, n int) float64 {
	per := float64(n) * 3600
	switch reward {
	case "jct":
		return -s.jct / per
	case "wait":
		return -s.wait / per
	case "slowdown":
		return -s.slowdown / float64(n)
	case "bsld":
		return -s.bsld / float64(n)
	}
	return s.throughput / (8 * 3600)
}

// alone runs jobs under an order with admission skip in a simulator of its own, until all have ended.
func alone(t *testing.T, order string, comm string, est sim.Estimates, jobs []traces.Job) lives {
	t.Helper()
	h := schedulers.DefaultConfig()
	h.Order, h.Admission, h.Placement, h.Estimates = order, "skip", "closest-b", est
	p, err := schedulers.New(h)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(sim.Config{Comm: comm}, twoNodes())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	l := lives{}
	if err := sim.Run(ctx, s, p, l); err != nil {
		t.Fatal(err)
	}
	return l
}

func close9(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// mixed returns PolicyMix-v2 over w.
func mixed(t *testing.T, w sched.Windows, change func(*policymix.Config)) *sched.Env {
	t.Helper()
	cfg := policymix.OngoingConfig()
	cfg.Load, cfg.Comm, cfg.Estimates, cfg.Ahead = 0, "none", sim.MustEstimates("exact"), "sjf"
	change(&cfg)
	e, err := policymix.New(cfg, twoNodes(), w, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// stretch returns the return of an episode whose every action is choose's, and its last time step.
func stretch(t *testing.T, e *sched.Env, ep env.Episode, choose func(ts *env.TimeStep) int32) (float64, *env.TimeStep) {
	t.Helper()
	ts := env.NewTimeStep(e.Spec())
	ret, _, err := env.Play(ctx, e, ep, ts, func(ts *env.TimeStep, a env.Action) error {
		a.Disc[0] = choose(ts)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ts.Kind != env.Truncated {
		t.Fatalf("%+v ends %v, want truncated", ep, ts.Kind)
	}
	return ret, ts
}

func always(a int32) func(*env.TimeStep) int32 { return func(*env.TimeStep) int32 { return a } }

// sjf is PolicyMix's action.
var sjf = always(1)

// Stretches of a run add up to the run, wherever it is cut, and every stretch is what a log of its jobs says.
func TestStretchesAddUp(t *testing.T) {
	jobs := busy(3, 401)
	for i := range jobs {
		jobs[i].Submit -= jobs[0].Submit
	}
	at := []int{0, 1, 2, 60, 61, 140, 290, 400}
	log := alone(t, "sjf", "none", sim.MustEstimates("exact"), jobs)
	for _, reward := range []string{"jct", "wait", "slowdown", "bsld", "throughput"} {
		t.Run(reward, func(t *testing.T) {
			share := func(n int) float64 { // a return is over the jobs of its window
				if reward == "throughput" {
					return 1
				}
				return float64(n)
			}
			e := mixed(t, newCuts(t, jobs, at...), func(c *policymix.Config) { c.Reward = reward })
			total, queued := 0.0, 0
			for k := range len(at) - 1 {
				n, a, b := at[k+1]-at[k], jobs[at[k]].Submit, jobs[at[k+1]].Submit
				ts := env.NewTimeStep(e.Spec())
				if err := e.Reset(ctx, env.Episode{Window: k}, ts); err != nil {
					if errors.Is(err, sched.ErrUndecided) && a == b {
						continue // no time passes
					}
					t.Fatal(err)
				}
				queued += len(e.View().Waiting())
				ret, ts := stretch(t, e, env.Episode{Window: k}, sjf)
				want := log.sums(a, b, at[k+1])
				if !close9(ret, want.of(reward, n)) {
					t.Errorf("window %d: return %v, the log has %v", k, ret, want.of(reward, n))
				}
				info := ts.Info[sched.InfoJCT:]
				for i, x := range []float64{want.jct / float64(n), want.wait / float64(n), want.slowdown / float64(n),
					(b - a).Seconds(), float64(want.left)} {
					if !close9(info[i], x) {
						t.Errorf("window %d: %s is %v, the log has %v", k, e.Spec().Info[sched.InfoJCT+i].Name, info[i], x)
					}
				}
				total += ret * share(n)
			}
			if queued < 10 {
				t.Errorf("%d jobs waited at the beginning of the windows: there is no queue to speak of", queued)
			}
			whole, _ := stretch(t, mixed(t, newCuts(t, jobs, 0, 400), func(c *policymix.Config) { c.Reward = reward }),
				env.Episode{Window: 0}, sjf)
			if !close9(total, whole*share(400)) {
				t.Errorf("the windows sum to %v, the run is %v", total, whole*share(400))
			}
		})
	}
}

// Where everything begins and ends within the stretch, Little's law is exact: the infos are the means over the jobs.
func TestLittlesLaw(t *testing.T) {
	jobs := busy(4, 81)
	for i := range jobs {
		jobs[i].Submit -= jobs[0].Submit
	}
	jobs[80].Submit += 1000 * time.Hour // when all others have ended
	plain := func(c *policymix.Config) { c.Reward, c.Relative = "jct", "" }
	log := alone(t, "sjf", "none", sim.MustEstimates("exact"), jobs)
	ret, ts := stretch(t, mixed(t, newCuts(t, jobs, 0, 80), plain), env.Episode{Window: 0}, sjf)
	jct, wait, slow := 0.0, 0.0, 0.0
	for pos := range 80 {
		x := log[pos]
		all := (x.finish - x.submit).Seconds()
		jct, wait, slow = jct+all/80, wait+(x.runs[0][0]-x.submit).Seconds()/80, slow+all/x.work/80
	}
	if !close9(ret, -jct/3600) {
		t.Errorf("return %v, want −mean JCT in hours %v", ret, -jct/3600)
	}
	for i, want := range []float64{jct, wait, slow, jobs[80].Submit.Seconds(), 1} { // the one that ends the window
		if got := ts.Info[sched.InfoJCT+i]; !close9(got, want) {
			t.Errorf("%s is %v, want %v", mixed(t, newCuts(t, jobs, 0, 80),
				plain).Spec().Info[sched.InfoJCT+i].Name, got, want)
		}
	}
}

// A stretch that is cut by the horizon or by a number of steps, and one whose jobs have all ended before its time is
// over, are truncated: values after their ends count.
func TestOngoingEpisodesAreTruncated(t *testing.T) {
	jobs := busy(5, 61)
	for i := range jobs {
		jobs[i].Submit -= jobs[0].Submit
	}
	quiet := append([]traces.Job(nil), jobs...)
	quiet[60].Submit += 2000 * time.Hour
	for _, x := range []struct {
		name   string
		jobs   []traces.Job
		at     []int
		change func(*policymix.Config)
		length time.Duration // 0 = any
	}{
		{"its time", jobs, []int{20, 60}, func(*policymix.Config) {}, jobs[60].Submit - jobs[20].Submit},
		{"no warm-up", jobs, []int{0, 60}, func(*policymix.Config) {}, jobs[60].Submit},
		{"an empty cluster at the end", quiet, []int{20, 60}, func(*policymix.Config) {}, quiet[60].Submit - quiet[20].Submit},
		{"horizon", jobs, []int{20, 60}, func(c *policymix.Config) { c.Horizon = time.Hour }, time.Hour},
		{"horizon after all have ended", quiet, []int{20, 60},
			func(c *policymix.Config) { c.Horizon = 1500 * time.Hour }, 1500 * time.Hour},
		{"steps", jobs, []int{20, 60}, func(c *policymix.Config) { c.MaxSteps = 2 }, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			e := mixed(t, newCuts(t, x.jobs, x.at...), func(c *policymix.Config) {
				c.Gamma, c.Hold = 0.9, time.Minute
				x.change(c)
			})
			_, ts := stretch(t, e, env.Episode{Window: 0}, sjf)
			if got := ts.Info[sched.InfoMakespan]; x.length > 0 && got != x.length.Seconds() {
				t.Errorf("it lasts %v s, want %v", got, x.length)
			}
			if want := math.Pow(0.9, ts.Elapsed.Hours()); !close9(ts.Info[sched.InfoDiscount], want) || ts.Elapsed == 0 {
				t.Errorf("discount %v after %v, want %v", ts.Info[sched.InfoDiscount], ts.Elapsed, want)
			}
		})
	}
}

// A relative reward is the difference to what the baseline earns in the same time, from the same state: the one of a
// fork where estimates are the job's own, and else the one of its own warm-up.
func TestOngoingRelativeIsADifference(t *testing.T) {
	jobs := busy(6, 161)
	for _, est := range []string{"exact", "noisy:0.5", "history", "trace"} {
		for _, reward := range []string{"jct", "wait", "bsld"} {
			t.Run(est+" "+reward, func(t *testing.T) {
				var w sched.Windows = newCuts(t, jobs, 40, 100, 160)
				if est == "history" {
					w = &causal{w.(*cuts)}
				}
				open := func(relative string) *sched.Env {
					cfg := jobselect.OngoingConfig()
					cfg.Load, cfg.Comm, cfg.Ahead, cfg.Estimates, cfg.Relative, cfg.Reward = 0, "none", "fifo",
						sim.MustEstimates(est), relative, reward
					e, err := jobselect.New(cfg, twoNodes(), w, traces.Training)
					if err != nil {
						t.Fatal(err)
					}
					return e
				}
				for k := range 2 {
					ep := env.Episode{Window: k, Seed: 7}
					drawn := func(e *sched.Env) float64 {
						r := rand.New(rand.NewPCG(1, 2))
						total, _ := stretch(t, e, ep, func(ts *env.TimeStep) int32 {
							for {
								if a := r.IntN(len(ts.Mask)); ts.Mask[a] {
									return int32(a)
								}
							}
						})
						return total
					}
					plain, less := drawn(open("")), drawn(open("sjf"))
					base, _ := stretch(t, mixed(t, w, func(c *policymix.Config) {
						c.Estimates, c.Reward, c.Ahead = sim.MustEstimates(est), reward, "fifo"
					}), ep, sjf)
					if !close9(less, plain-base) {
						t.Errorf("window %d: the difference is %v, want %v − %v = %v", k, less, plain, base, plain-base)
					}
				}
			})
		}
	}
}

// Jobs of the warm-up that still run are the agent's: they can be stopped, wait then, and what that costs is paid. In
// Streamed episodes every job is.
func TestJobsOfTheWarmUpCanBeStopped(t *testing.T) {
	jobs := busy(8, 201)
	for i := range jobs {
		jobs[i].Submit -= jobs[0].Submit
	}
	for _, mode := range []sched.Mode{sched.Ongoing, sched.Streamed} {
		cfg := jobselect.OngoingConfig()
		cfg.Mode, cfg.Load, cfg.Comm, cfg.Ahead, cfg.Estimates = mode, 0, "none", "sjf", sim.MustEstimates("exact")
		cfg.Preempt, cfg.Running, cfg.Restart, cfg.Reward = true, 8, time.Minute, "wait"
		e, err := jobselect.New(cfg, twoNodes(), newCuts(t, jobs, 100, 200), traces.Training)
		if err != nil {
			t.Fatal(err)
		}
		log := lives{}
		ts := env.NewTimeStep(e.Spec())
		e.Watch(&joined{lives: log})
		if err := e.Reset(ctx, env.Episode{Window: 0}, ts); err != nil {
			t.Fatal(err)
		}
		begin := e.Window().Begin
		r, stops, total := rand.New(rand.NewPCG(3, 4)), 0, 0.0
		for !ts.Kind.Last() {
			a := -1
			for i := range cfg.Running { // stop every second job of the warm-up that can be
				if ts.Mask[cfg.Visible+i] && e.View().Pos(e.State().Running[i]) < 100 && r.IntN(2) == 0 {
					a, stops = cfg.Visible+i, stops+1
					break
				}
			}
			for a < 0 {
				if k := r.IntN(len(ts.Mask)); ts.Mask[k] && (k < cfg.Visible || k == len(ts.Mask)-1) {
					a = k
				}
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
				t.Fatal(err)
			}
			total += ts.Reward
		}
		if stops < 3 {
			t.Fatalf("mode %d: %d jobs of the warm-up were stopped", mode, stops)
		}
		if mode == sched.Streamed {
			continue
		}
		want := log.sums(begin, e.View().Now(), 200)
		if !close9(total, want.of("wait", 100)) || !close9(ts.Info[sched.InfoWait], want.wait/100) {
			t.Errorf("return %v, wait_s %v; the log has %v and %v", total, ts.Info[sched.InfoWait], want.of("wait", 100),
				want.wait/100)
		}
	}
}

// A scheduler in the agent's place plays an Ongoing episode until its time is over, also if the counted jobs have ended
// before, and may stop the jobs of the warm-up.
func TestSimulatePlaysTheWholeStretch(t *testing.T) {
	jobs := busy(5, 61)
	jobs[60].Submit += 2000 * time.Hour
	e := mixed(t, newCuts(t, jobs, 20, 60), func(c *policymix.Config) { c.Estimates = sim.MustEstimates("exact") })
	for _, order := range []string{"sjf", "srtf"} {
		h := schedulers.DefaultConfig()
		h.Order, h.Admission, h.Placement = order, "skip", "closest-b"
		p, err := schedulers.New(h)
		if err != nil {
			t.Fatal(err)
		}
		var last time.Duration
		if err := e.Simulate(ctx, env.Episode{Window: 0}, p, seen(func(p *sim.Point) { last = p.Now })); err != nil {
			t.Fatal(err)
		}
		if want := jobs[60].Submit - jobs[0].Submit; last != want {
			t.Errorf("%s: the last point is at %v, want %v", order, last, want)
		}
	}
}

// seen is an observer that looks at points.
type seen func(p *sim.Point)

func (f seen) Observe(_ *sim.View, p *sim.Point) error {
	f(p)
	return nil
}

// causal are cuts whose episodes have predictors.
type causal struct{ *cuts }

func (c *causal) Predictor(sim.Estimates) (predict.Maker, error) {
	return history.NewArchive(c.jobs), nil
}
