package sched_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// opened5 returns the five environments over jobs, with estimates that a cluster can have.
func opened5(t testing.TB, est string, w func(sched.Taken) sched.Windows, spec cluster.Spec,
	jobs []traces.Job) map[string]sched.Steered {
	t.Helper()
	all := map[string]sched.Steered{}
	add := func(name string, e sched.Steered, err error) {
		if err != nil {
			t.Fatal(name, err)
		}
		all[name] = e
	}
	taken := sched.Taken{MaxGPUs: 8, Window: 30, Estimates: sim.MustEstimates(est)}
	j := jobselect.DefaultConfig()
	j.Window, j.Estimates, j.Running, j.Preempt, j.Checkpoint, j.Privileged = 30, sim.MustEstimates(est), 6, true,
		time.Minute, true
	e, err := jobselect.New(j, spec, w(taken), traces.Training)
	add("jobselect", e, err)
	q := queuerank.DefaultConfig()
	q.Window, q.Estimates, q.Reward = 30, sim.MustEstimates(est), "dense"
	if est == "none" {
		q.Estimates = sim.MustEstimates("trace")
	}
	x, err := queuerank.New(q, spec, w(taken), jobs, traces.Training)
	add("queuerank", x, err)
	g := gpupick.DefaultConfig()
	g.Window, g.Estimates = 30, sim.MustEstimates(est)
	y, err := gpupick.New(g, spec, w(taken), traces.Training)
	add("gpupick", y, err)
	d := delayoffer.DefaultConfig()
	d.Window, d.Estimates, d.Comm = 30, sim.MustEstimates(est), "tree"
	z, err := delayoffer.New(d, spec, w(taken), traces.Training)
	add("delayoffer", z, err)
	if est != "none" {
		p := policymix.DefaultConfig()
		p.Window, p.Estimates = 30, sim.MustEstimates(est)
		e, err := policymix.New(p, spec, w(taken), traces.Training)
		add("policymix", e, err)
	}
	return all
}

// A cluster without run times, whose own scheduler decides, is polled: between facts, after many of them, and
// from the middle of its life on. Observations are as the specification says, and no imagination changes them.
func TestAClusterIsPolled(t *testing.T) {
	asked, ranked := 0, 0
	for k, est := range []string{"history", "trace", "none"} {
		r := rand.New(rand.NewPCG(testseed.Or(61)+uint64(k), 61))
		jobs := owned(r, 200)
		for i := range jobs {
			jobs[i].GPUs = 1 + r.IntN(12) // some are larger than the environments take
		}
		all := opened5(t, est, func(x sched.Taken) sched.Windows { return windows(t, x, jobs) }, followed, jobs)
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			t.Run(est+" "+name, func(t *testing.T) {
				a, b := polled(t, all[name], jobs, r)
				asked += a
				ranked += b
			})
		}
	}
	if asked < 50 || ranked < 50 {
		t.Errorf("asked %d times, %d jobs ranked", asked, ranked)
	}
}

// polled tells e the run of an incumbent, polls in between, and returns how often the agent was asked and how many jobs
// were ranked.
func polled(t *testing.T, e sched.Steered, jobs []traces.Job, r *rand.Rand) (asked, ranked int) {
	h := schedulers.DefaultConfig()
	h.Order, h.Admission, h.Estimates = "largest", "strict", sim.MustEstimates("exact") // it leaves GPUs free
	incumbent, err := schedulers.New(h)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(sim.Config{Comm: "none", Failures: sim.Failures{MTBF: 3 * time.Hour, MTTR: 20 * time.Minute}},
		followed)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	ts, again := env.NewTimeStep(e.Spec()), env.NewTimeStep(e.Spec())
	if err := e.Follow(sched.Following{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	j := new(journal)
	if err := sim.Run(ctx, s, incumbent, j); err != nil {
		t.Fatal(err)
	}
	var facts []sim.Fact
	for i := range j.entries {
		for _, f := range j.entries[i].facts {
			if f.Job != nil {
				bare := *f.Job
				bare.Work = 0
				f.Job = &bare
			}
			facts = append(facts, f)
		}
	}
	for i := range facts {
		if err := e.Tell(&facts[i]); err != nil {
			t.Fatal(err)
		}
		for now := facts[i].At; r.IntN(3) > 0 && i+1 < len(facts) &&
			facts[i+1].At > now; now += time.Duration(r.Int64N(int64(facts[i+1].At - now))) {
			if err := e.Look(now); err != nil {
				t.Fatal(err)
			}
			asks, err := e.Observe(ts)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Spec().Check(ts); err != nil && asks {
				t.Fatal(err)
			}
			if asks {
				asked++
			}
			dream(t, e, again, r)
			if r.IntN(4) == 0 {
				ranked += rank(t, e, again)
			}
			if err := e.Ask(policyOf(t, "fifo"), nil); err != nil {
				t.Fatal(err)
			}
			if b, err := e.Observe(again); err != nil || b != asks || !slices.Equal(ts.Obs, again.Obs) ||
				!slices.Equal(ts.Mask, again.Mask) {
				k := 0
				for k < len(ts.Obs)-1 && ts.Obs[k] == again.Obs[k] {
					k++
				}
				t.Fatalf("after imaginations the agent is shown %v for %v at %s, asked: %v, before %v (%v)", again.Obs[k],
					ts.Obs[k], fieldOf(e, k), b, asks, err)
			}
		}
	}
	return asked, ranked
}

func policyOf(t *testing.T, order string) schedulers.Policy {
	t.Helper()
	h := schedulers.Passing(order)
	h.Estimates = sim.MustEstimates("trace")
	p, err := schedulers.New(h)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rank ranks the queue by position and returns its length.
func rank(t *testing.T, e sched.Steered, ts *env.TimeStep) int {
	t.Helper()
	v := e.View()
	list, err := sched.Rank(e, ts, 2, nil, func(_ *env.TimeStep, jobs []sim.Job) ([]float64, error) {
		scores := make([]float64, len(jobs))
		for i, j := range jobs {
			scores[i] = float64(v.Pos(j))
		}
		return scores, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[sim.Job]bool{}
	for _, j := range list {
		if seen[j] || v.State(j) != sim.Waiting {
			t.Fatalf("%v is ranked among %v", j, list)
		}
		seen[j] = true
	}
	return len(list)
}

// A job's age grows between facts.
func TestAgesGrowBetweenFacts(t *testing.T) {
	jobs := owned(rand.New(rand.NewPCG(1, 1)), 100)
	e := opened5(t, "trace", func(x sched.Taken) sched.Windows { return windows(t, x, jobs) }, followed,
		jobs)["jobselect"].(*sched.Env)
	if err := e.Follow(sched.Following{}); err != nil {
		t.Fatal(err)
	}
	a := traces.Job{ID: "a", Estimate: time.Hour, GPUs: 1, GPUMilli: 1000}
	if err := e.Tell(&sim.Fact{Kind: sim.Submit, Job: &a}); err != nil {
		t.Fatal(err)
	}
	var waits []float32
	ts := env.NewTimeStep(e.Spec())
	for k := range 5 {
		if err := e.Look(time.Duration(k) * time.Minute); err != nil {
			t.Fatal(err)
		}
		asks, err := e.Observe(ts)
		if err != nil || !asks {
			t.Fatal(asks, err)
		}
		at := 0
		for _, f := range e.Spec().Obs {
			if f.Name == "jobs" {
				break
			}
			at += f.Len()
		}
		waits = append(waits, ts.Obs[at+1])
	}
	if !slices.IsSorted(waits) || waits[0] == waits[4] {
		t.Error(waits)
	}
}

func TestWhatCannotBeFollowed(t *testing.T) {
	jobs := owned(rand.New(rand.NewPCG(1, 1)), 100)
	for name, e := range opened5(t, "exact", func(x sched.Taken) sched.Windows { return windows(t, x, jobs) }, followed,
		jobs) {
		if err := e.Follow(sched.Following{}); err == nil ||
			!strings.Contains(err.Error(), "estimates exact need run times") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, e := range opened5(t, "trace", func(x sched.Taken) sched.Windows { return windows(t, x, jobs) }, followed,
		jobs) {
		ts := env.NewTimeStep(e.Spec())
		if _, err := e.Observe(ts); err == nil {
			t.Errorf("%s: an environment that follows nothing is observed", name)
		}
		if err := e.Follow(sched.Following{}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Observe(ts); err == nil || !strings.Contains(err.Error(), "Look") {
			t.Errorf("%s: %v", name, err)
		}
		if err := e.Look(0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Imagine(env.Action{Disc: []int32{0}}); err == nil || !strings.Contains(err.Error(), "Observe") {
			t.Errorf("%s: %v", name, err)
		}
		if err := e.Tell(&sim.Fact{Kind: sim.Submit, Job: &traces.Job{ID: "none"}}); !errors.Is(err, sim.ErrFact) ||
			!strings.Contains(err.Error(), "asks for none") {
			t.Errorf("%s: %v", name, err)
		}
		if asks, err := e.Observe(ts); asks || err != nil {
			t.Errorf("%s: asked of an empty cluster: %v, %v", name, asks, err)
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); err == nil {
			t.Errorf("%s: a step was taken", name)
		}
		if err := e.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts); err != nil { // it ends the following
			t.Errorf("%s: %v", name, err)
		}
		if err := e.Look(0); err == nil {
			t.Errorf("%s: an episode is looked at", name)
		}
	}
}

// A job that was withdrawn before it started leaves nothing behind: agents are shown what they would be shown without
// it.
func TestWithdrawnJobsLeaveNothingBehind(t *testing.T) {
	for k, est := range []string{"trace", "none", "history"} {
		r := rand.New(rand.NewPCG(testseed.Or(62)+uint64(k), 62))
		jobs := owned(r, 150)
		s, err := sim.New(sim.Config{Comm: "none", Failures: sim.Failures{MTBF: 3 * time.Hour, MTTR: 20 * time.Minute}},
			followed)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		j := new(journal)
		if err := sim.Run(ctx, s, policyOf(t, "sjf"), j); err != nil {
			t.Fatal(err)
		}
		open := func() map[string]sched.Steered {
			return opened5(t, est, func(x sched.Taken) sched.Windows { return windows(t, x, jobs) }, followed, jobs)
		}
		plain, other := open(), open()
		for name, e := range plain {
			t.Run(est+" "+name, func(t *testing.T) {
				shown := withdrawn(t, e, other[name], j, rand.New(rand.NewPCG(uint64(k), 63)))
				if shown < 100 {
					t.Errorf("compared %d times", shown)
				}
			})
		}
	}
}

// withdrawn tells e a run, and f the same with jobs in between that are withdrawn; it returns how often what both show
// was compared.
func withdrawn(t *testing.T, e, f sched.Steered, j *journal, r *rand.Rand) (shown int) {
	t.Helper()
	for _, x := range []sched.Steered{e, f} {
		if err := x.Follow(sched.Following{Seed: 1}); err != nil {
			t.Fatal(err)
		}
	}
	a, b := env.NewTimeStep(e.Spec()), env.NewTimeStep(e.Spec())
	var ghosts []string
	for i := range j.entries {
		x := &j.entries[i]
		for k := range x.facts {
			fact := x.facts[k]
			if fact.Job != nil {
				bare := *fact.Job
				bare.Work, fact.Job = 0, &bare
			}
			for _, to := range []sched.Steered{e, f} {
				if err := to.Tell(&fact); err != nil {
					t.Fatal(err)
				}
			}
		}
		switch {
		case len(ghosts) < 3 && r.IntN(4) == 0:
			g := traces.Job{ID: fmt.Sprint("ghost ", i), User: "u", VC: "a", Submit: x.at, Estimate: time.Minute,
				GPUs: 1 + r.IntN(8), GPUMilli: 1000}
			if err := f.Tell(&sim.Fact{At: x.at, Kind: sim.Submit, Job: &g}); err != nil {
				t.Fatal(err)
			}
			ghosts = append(ghosts, g.ID)
		case r.IntN(4) == 0:
			for _, id := range ghosts {
				if err := f.Tell(&sim.Fact{At: x.at, Kind: sim.Drop, ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			ghosts = nil
		}
		for _, to := range []sched.Steered{e, f} {
			if err := to.Look(x.at); err != nil {
				t.Fatal(err)
			}
		}
		asks, err := e.Observe(a)
		if err != nil {
			t.Fatal(err)
		}
		asks2, err := f.Observe(b)
		if err != nil {
			t.Fatal(err)
		}
		if ghosts != nil {
			continue
		}
		shown++
		for k := range a.Obs {
			switch fieldOf(e, k) {
			case "global 5", "truth 0": // the time since the last arrival, and the share of jobs that have arrived
				continue
			}
			if math.Abs(float64(a.Obs[k]-b.Obs[k])) > 1e-6 { // sums over the queue are kept by adding and subtracting
				t.Fatalf("entry %d at %v: number %d (%s) of the observation is %v, without withdrawn jobs %v", i, x.at, k,
					fieldOf(e, k), b.Obs[k], a.Obs[k])
			}
		}
		if asks != asks2 || !slices.Equal(a.Mask, b.Mask) {
			t.Fatalf("entry %d at %v: asked %v, mask %v; without withdrawn jobs %v, %v", i, x.at, asks2, b.Mask, asks, a.Mask)
		}
	}
	return shown
}
