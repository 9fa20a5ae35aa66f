package sched_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/env/queuerank/rlscheduler"
	"clustergym/env/queuerank/rltune"
	"clustergym/env/sched"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// journal is an episode for an environment that follows: facts, and what the agent was shown and did in between.
type journal struct {
	entries []entry
	seen    int // events of the current point's decisions that are written down
}

// entry are facts, then either the point at which they are seen or decisions of an open point, and what was shown then.
type entry struct {
	facts []sim.Fact
	look  bool
	at    time.Duration
	more  bool
	shown []sight
}

type sight struct {
	obs    []float32
	mask   []bool
	last   bool
	action []int32 // nil at the end
}

func (j *journal) facts(v *sim.View, events []sim.Event) (facts []sim.Fact) {
	for i := range events {
		f := v.Fact(&events[i])
		f.GPUs = slices.Clone(f.GPUs)
		facts = append(facts, f)
	}
	return facts
}

// point writes down a point.
func (j *journal) point(v *sim.View, p *sim.Point) {
	j.entries = append(j.entries,
		entry{facts: j.facts(v, p.Events[min(j.seen, len(p.Events)):]), look: true, at: p.Now, more: v.Arriving()})
	j.seen = 0
}

// Observe implements sim.Observer.
func (j *journal) Observe(v *sim.View, p *sim.Point) error {
	j.point(v, p)
	return nil
}

// Reset forgets what was written down of an episode that was drawn again.
func (j *journal) Reset() { j.entries, j.seen = nil, 0 }

// show writes down what the agent is shown.
func (j *journal) show(v *sim.View, ts *env.TimeStep) {
	if events := v.DecisionEvents(); len(events) > j.seen {
		j.entries = append(j.entries, entry{facts: j.facts(v, events[j.seen:]), more: v.Arriving()})
		j.seen = len(events)
	}
	e := &j.entries[len(j.entries)-1]
	e.shown = append(e.shown, sight{obs: slices.Clone(ts.Obs), mask: slices.Clone(ts.Mask), last: ts.Kind.Last()})
}

// journalled plays an episode of e and returns its journal.
func journalled(t *testing.T, e sched.Arena, ep env.Episode, choose func(ts *env.TimeStep) int32) *journal {
	t.Helper()
	j := new(journal)
	if w, ok := e.(*sched.Env); ok {
		w.WarmUp(func(p *sim.Point) { j.point(e.View(), p) })
	}
	e.Watch(j)
	defer e.Watch(nil)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, ep, ts); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := e.(*sched.Env); !ok && ts.Kind.Last() {
			return j // a watcher has seen the rest of the episode since
		}
		j.show(e.View(), ts)
		if ts.Kind.Last() {
			return j
		}
		a := choose(ts)
		x := &j.entries[len(j.entries)-1]
		x.shown[len(x.shown)-1].action = []int32{a}
		if err := e.Step(ctx, env.Action{Disc: []int32{a}}, ts); err != nil {
			t.Fatal(err)
		}
	}
}

// acts says how a rule answers what e shows; nil = nobody is asked.
type acts func(mask []bool, src *rand.Rand) (int32, error)

// replayed tells e, which follows, what is in the journal. It must be shown the same, be asked when the agent was
// asked, and imagine what was decided. dreams are imagined at each point before.
func replayed(t *testing.T, e sched.Steered, j *journal, first int, seed uint64, origin time.Duration,
	dreams *rand.Rand, act acts) (asked int) {
	t.Helper()
	if err := e.Follow(sched.Following{Works: true, First: first, Seed: seed, Origin: origin}); err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	same := func(i int, x *sight, when string) {
		t.Helper()
		if k := slices.IndexFunc(ts.Obs, func(f float32) bool { return math.IsNaN(float64(f)) }); k >= 0 {
			t.Fatalf("entry %d%s: number %d is not a number", i, when, k)
		}
		for k := range ts.Obs {
			if math.Float32bits(ts.Obs[k]) != math.Float32bits(x.obs[k]) {
				t.Fatalf("entry %d%s at %v: number %d (%s) of the observation is %v, the agent was shown %v", i, when,
					e.View().Now(), k, fieldOf(e, k), ts.Obs[k], x.obs[k])
			}
		}
		if !slices.Equal(ts.Mask, x.mask) {
			t.Fatalf("entry %d%s: mask %v, the agent was shown %v", i, when, ts.Mask, x.mask)
		}
	}
	for i := range j.entries {
		x := &j.entries[i]
		e.More(x.more)
		for k := range x.facts {
			if err := e.Tell(&x.facts[k]); err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
		}
		if x.look {
			if err := e.Look(x.at); err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
		}
		if dreams != nil {
			dream(t, e, ts, dreams)
		}
		var decided []sim.Decision
		note := func(list []sim.Decision) {
			for _, d := range list {
				d.GPUs = slices.Clone(d.GPUs)
				decided = append(decided, d)
			}
		}
		waits, end := false, false
		for k := range x.shown {
			s := &x.shown[k]
			asks, err := e.Observe(ts)
			if err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
			same(i, s, fmt.Sprint(", time ", k))
			if end = s.last; end {
				break
			}
			if !asks {
				t.Fatalf("entry %d: the agent was asked at %v, and is not", i, x.at)
			}
			asked++
			if act != nil {
				if got, err := act(ts.Mask, nil); err != nil || got != s.action[0] {
					t.Fatalf("entry %d at %v: over facts the rule takes action %d (%v), in the run it took %d", i, e.View().Now(), got,
						err, s.action[0])
				}
			}
			list, w, err := e.Imagine(env.Action{Disc: s.action})
			if err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
			waits = w
			note(list)
		}
		next := i+1 < len(j.entries)
		if len(x.shown) == 0 {
			asks, err := e.Observe(ts)
			if err != nil {
				t.Fatal(err)
			}
			if asks && next && !warmed(&j.entries[i+1]) && j.entries[i+1].look && j.entries[i+1].at > e.View().Now() &&
				e.View().Arrived() > first {
				t.Fatalf("entry %d: the agent was not asked at %v, and is", i, e.View().Now())
			}
		}
		if len(x.shown) == 0 || waits {
			list, err := e.Proceed()
			if err != nil {
				t.Fatal(err)
			}
			note(list)
		}
		if _, sees := e.(all); next && !end && !sees && e.View().Arrived() > first &&
			(len(x.shown) > 0 || j.entries[i+1].look) {
			compare(t, e.View(), i, decided, &j.entries[i+1])
		}
		e.Keep()
	}
	return asked
}

// warmed reports whether the jobs of the warm-up that still wait leave with x: nobody is asked before they have left.
func warmed(x *entry) bool { return len(x.facts) > 0 && x.facts[0].Kind == sim.Drop }

// compare compares what was imagined with the decisions that are told next.
func compare(t *testing.T, v *sim.View, i int, got []sim.Decision, next *entry) {
	t.Helper()
	now := v.Now()
	var want []sim.Fact
	for _, f := range next.facts {
		if f.Kind == sim.Drop {
			return // the jobs of the warm-up leave
		}
		if f.At > now || f.Kind != sim.Start && f.Kind != sim.Preempt && f.Kind != sim.Migrate && f.Kind != sim.Resize &&
			f.Kind != sim.Drop {
			break
		}
		want = append(want, f)
	}
	ops := map[sim.EventKind]sim.Op{sim.Start: sim.StartJob, sim.Preempt: sim.PreemptJob, sim.Migrate: sim.MigrateJob,
		sim.Resize: sim.ResizeJob, sim.Drop: sim.DropJob}
	ok := len(got) == len(want)
	for k := range min(len(got), len(want)) {
		d, f := &got[k], &want[k]
		ok = ok && d.Op == ops[f.Kind] && v.Trace(d.Job).ID == f.ID && (d.Op == sim.PreemptJob || slices.Equal(d.GPUs,
			f.GPUs))
	}
	if !ok {
		t.Fatalf("entry %d at %v: imagined are %+v, decided was %+v", i, now, got, want)
	}
}

func fieldOf(e env.Env, k int) string {
	for _, f := range e.Spec().Obs {
		if n := f.Len(); k >= n {
			k -= n
			continue
		}
		return fmt.Sprint(f.Name, " ", k)
	}
	return "?"
}

// dream imagines random actions, and forgets them.
func dream(t *testing.T, e sched.Steered, ts *env.TimeStep, r *rand.Rand) {
	t.Helper()
	for range r.IntN(4) {
		asks, err := e.Observe(ts)
		if err != nil {
			t.Fatal(err)
		}
		if !asks {
			break
		}
		_, waits, err := e.Imagine(env.Action{Disc: []int32{int32(env.Uniform(ts.Mask, r))}})
		if err != nil {
			t.Fatal(err)
		}
		if waits {
			break
		}
	}
	if _, err := e.Proceed(); err != nil {
		t.Fatal(err)
	}
	if r.IntN(2) == 0 {
		if _, err := e.Observe(ts); err != nil {
			t.Fatal(err)
		}
		if jobs := e.Choices(nil); len(jobs) > 0 {
			if err := e.Hide(jobs[r.IntN(len(jobs))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.Forget()
}

// archived are windows with predictors that know all jobs, or, for gbdt, what they learn.
type archived struct{ *traces.Windows }

func (w archived) Predictor(est sim.Estimates) (predict.Maker, error) {
	if est.Mode == sim.EstimateGBDT {
		return gbdt.New(1), nil
	}
	return history.NewArchive(w.All()), nil
}

var followed = cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}

// owned are jobs with users and requested times.
func owned(r *rand.Rand, n int) []traces.Job {
	jobs := workload(n)
	for i := range jobs {
		j := &jobs[i]
		j.User, j.VC = []string{"", "u", "v", "w"}[r.IntN(4)], []string{"", "a", "b"}[r.IntN(3)]
		j.Estimate = j.Work*time.Duration(1+r.IntN(3))/2 + time.Second
		if r.IntN(6) == 0 {
			j.GPUMilli = 1 + r.IntN(999)
		}
		if r.IntN(4) == 0 && i > 0 {
			j.Submit = jobs[i-1].Submit
		}
	}
	return jobs
}

// selection is a configuration of JobSelect-v1 for test number k.
func selection(k int, r *rand.Rand) jobselect.Config {
	c := jobselect.DefaultConfig()
	c.Window, c.Warm, c.Visible = 30, []int{0, 20}[k%2], []int{4, 10, 40}[r.IntN(3)]
	c.Estimates = sim.MustEstimates([]string{"exact", "history", "trace", "none", "noisy:0.5", "gbdt"}[k/2%6])
	c.Running = []int{0, 4}[r.IntN(2)]
	c.Images = jobselect.Images(r.IntN(2) == 0)
	c.Privileged = r.IntN(4) == 0
	c.Preempt = r.IntN(2) == 0 && c.Running > 0
	if c.Preempt {
		c.MinRun, c.Checkpoint, c.RestartPerGPU = time.Duration(r.IntN(3))*time.Minute, time.Minute, time.Second
	}
	if r.IntN(3) == 0 && c.Estimates.String() != "history" && c.Estimates.String() != "gbdt" {
		c.Forecast = sched.ForecastOn
	}
	c.Slots = []string{"mixed", "oldest"}[r.IntN(2)]
	return c
}

func windows(t *testing.T, taken sched.Taken, jobs []traces.Job) archived {
	t.Helper()
	w, err := sched.Take(taken, followed, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return archived{w.Windows}
}

func opening(t *testing.T, c jobselect.Config, jobs []traces.Job) *sched.Env {
	t.Helper()
	w := windows(t,
		sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates, Forecast: c.Forecast}, jobs)
	e, err := jobselect.New(c, followed, w, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Random play through the slots, told as facts to an environment that follows: it shows the agent the same, bit for
// bit, asks it at the same moments, and imagines the same decisions. So it does with other imaginations in between.
func TestJobSelectFollows(t *testing.T) {
	for k := range 30 {
		seed := testseed.Or(51) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 51))
		c := selection(k, r)
		jobs := owned(r, 300)
		e, f := opening(t, c, jobs), opening(t, c, jobs)
		j := journalled(t, e, env.Episode{Seed: seed, Window: -1},
			func(ts *env.TimeStep) int32 { return int32(env.Uniform(ts.Mask, r)) })
		for _, dreams := range []*rand.Rand{nil, r} {
			if asked := replayed(t, f, j, e.First(), e.State().Seed, e.Window().Origin, dreams, nil); asked == 0 {
				t.Fatal("nobody was asked")
			}
		}
	}
}

// all is an environment whose pilot also decides about jobs that are not visible, without being asked.
type all struct{ sched.Steered }

// piloted are actions in whose place a scheduler decides.
type piloted struct {
	sched.Actions
	sch   sim.Scheduler
	now   time.Duration
	begun bool
}

func (p *piloted) Decode(_ env.Action, s *sched.State, d *sim.Decision) (bool, error) {
	d.Op, p.now, p.begun = sim.Wait, s.View.Now(), true
	p.sch.Reset(s.View)
	return true, nil
}

func (p *piloted) Pilot(s *sched.State) sim.Scheduler {
	if !p.begun || s.Facts && s.View.Now() > p.now {
		return nil
	}
	return p.sch
}

func (p *piloted) Holds() bool { return true }

// anew is a policy that is reset in the middle of a run: it sees no events of the point where that happens.
type anew struct {
	schedulers.Policy
	fresh bool
	point sim.Point
}

func (a *anew) Reset(v *sim.View) {
	a.Policy.Reset(v)
	a.fresh = true
}

func (a *anew) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if a.fresh {
		a.point.Now = v.Now()
		p = &a.point
	}
	err := a.Policy.Decide(v, p, d)
	a.fresh = a.fresh && d.Op != sim.Wait
	return err
}

// pilot returns an environment like JobSelect-v1 in which a heuristic decides, on nodes that fail.
func pilot(t *testing.T, c jobselect.Config, order string, jobs []traces.Job, failures bool) *sched.Env {
	t.Helper()
	parts := opening(t, c, jobs).Parts()
	h := schedulers.Passing(order)
	h.Estimates, h.Placement = c.Estimates, c.Placement
	if h.Validate() != nil {
		h = schedulers.DefaultConfig()
		h.Order, h.Estimates = order, c.Estimates
	}
	sch, err := schedulers.New(h)
	if err != nil {
		t.Fatal(order, err)
	}
	parts.Actions = &piloted{Actions: parts.Actions, sch: &anew{Policy: sch}}
	if failures {
		parts.Sim.Failures = sim.Failures{MTBF: 2 * time.Hour, MTTR: 10 * time.Minute}
		parts.Sim.Checkpoint = time.Minute
	}
	e, err := sched.New(c.Config, parts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The schedule of every heuristic, told as facts, shows what the environment has shown while the heuristic decided.
func TestTheSchedulesOfHeuristicsAreFollowed(t *testing.T) {
	asked := 0
	for i, order := range schedulers.Orders() {
		if order == "exact" { // it plans with the jobs of a whole run
			continue
		}
		seed := testseed.Or(52) + uint64(i)
		r := rand.New(rand.NewPCG(seed, 52))
		c := selection(i, r)
		if c.Estimates.String() == "none" {
			c.Estimates = sim.MustEstimates("history")
		}
		c.Preempt, c.MinRun, c.Checkpoint, c.RestartPerGPU = false, 0, 0, 0
		c.MaxSteps = 400
		jobs := owned(r, 300)
		failures := i%3 == 0
		if failures || schedulers.Preemptive(order) {
			c.Warm = 0 // no job of a warm-up is ever stopped, so nobody counts them when they wait
		}
		e, f := pilot(t, c, order, jobs, failures), pilot(t, c, order, jobs, failures)
		j := journalled(t, e, env.Episode{Seed: seed, Window: -1},
			func(ts *env.TimeStep) int32 { return int32(env.Uniform(ts.Mask, r)) })
		asked += replayed(t, all{f}, j, e.First(), e.State().Seed, e.Window().Origin, nil, nil)
	}
	if asked < 500 {
		t.Errorf("asked %d times in all", asked)
	}
}

// PolicyMix-v1 follows its own episodes: the policy that was chosen decides until its hold is over.
func TestPolicyMixFollows(t *testing.T) {
	for k := range 12 {
		seed := testseed.Or(53) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 53))
		c := policymix.DefaultConfig()
		c.Window, c.Warm, c.Hold = 30, []int{0, 20}[k%2], time.Duration(1+r.IntN(60))*time.Minute
		c.Estimates = sim.MustEstimates([]string{"exact", "history", "noisy:0.5", "gbdt"}[k/2%4])
		jobs := owned(r, 300)
		open := func() *sched.Env {
			w := windows(t,
				sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates, Forecast: c.Forecast}, jobs)
			e, err := policymix.New(c, followed, w, traces.Training)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		e, f := open(), open()
		j := journalled(t, e, env.Episode{Seed: seed, Window: -1},
			func(ts *env.TimeStep) int32 { return int32(env.Uniform(ts.Mask, r)) })
		for _, dreams := range []*rand.Rand{nil, r} {
			replayed(t, f, j, e.First(), e.State().Seed, e.Window().Origin, dreams, nil)
		}
	}
}

// random plays an episode of e at random and tells it f.
func random(t *testing.T, e, f sched.Steered, seed uint64, origin time.Duration, r *rand.Rand) {
	t.Helper()
	j := journalled(t, e, env.Episode{Seed: seed, Window: 0},
		func(ts *env.TimeStep) int32 { return int32(env.Uniform(ts.Mask, r)) })
	for _, dreams := range []*rand.Rand{nil, r} {
		if asked := replayed(t, f, j, 0, seed, origin, dreams, nil); asked == 0 {
			t.Fatal("nobody was asked")
		}
	}
}

// QueueRank-v1 follows: a chosen job that does not fit is waited for, with and without back-filling, and in the ways of
// other programs.
func TestQueueRankFollows(t *testing.T) {
	for k := range 20 {
		seed := testseed.Or(54) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 54))
		c := queuerank.DefaultConfig()
		c.Window, c.Visible, c.Load = 30, []int{4, 40}[k%2], []float64{0, 1.3}[r.IntN(2)]
		c.Estimates, c.Reward = sim.MustEstimates([]string{"trace", "exact", "history", "noisy:0.5", "gbdt"}[k/2%5]), "dense"
		spec := cluster.Spec{Pool: 8}
		switch k % 5 {
		case 0:
			c.Backfill = "easy"
		case 1:
			c.Peer = true
		case 2:
			c.RLTune, spec, c.Backfill = []string{"first", "programme"}[r.IntN(2)], followed, []string{"none", "easy"}[r.IntN(2)]
		case 3:
			spec = followed
		}
		jobs := owned(r, 300)
		for i := range jobs {
			if c.RLTune != "" {
				jobs[i].GPUMilli = 1000
			}
		}
		w := windows(t, sched.Taken{MaxGPUs: 8, Window: c.Window, Estimates: c.Estimates}, jobs)
		open := func() *queuerank.Env {
			e, err := ranking(c, spec, w, jobs)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		random(t, open(), open(), seed, jobs[0].Submit, r)
	}
}

// ranking opens the environment that c stands for.
func ranking(c queuerank.Config, spec cluster.Spec, w sched.Windows, jobs []traces.Job) (*queuerank.Env, error) {
	switch {
	case c.RLTune != "":
		return rltune.New(queuerank.V1, rltune.FromOlder(c), spec, w, traces.Training)
	case c.Peer:
		return rlscheduler.New(queuerank.V1, rlscheduler.FromOlder(c), spec, w, jobs, traces.Training)
	}
	return queuerank.New(c, spec, w, jobs, traces.Training)
}

// GPUPick-v1 follows, pick by pick.
func TestGPUPickFollows(t *testing.T) {
	for k := range 12 {
		seed := testseed.Or(55) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 55))
		c := gpupick.DefaultConfig()
		c.Window, c.Table, c.Idle = 30, k%2 == 0, r.IntN(2) == 0
		c.Estimates = sim.MustEstimates([]string{"trace", "exact", "history", "noisy:0.5", "none", "gbdt"}[k%6])
		jobs := owned(r, 300)
		w := windows(t, sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates}, jobs)
		open := func() *gpupick.Env {
			e, err := gpupick.New(c, followed, w, traces.Training)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		random(t, open(), open(), seed, jobs[0].Submit, r)
	}
}

// DelayOffer-v1 follows, with the leases and the timers that its rule remembers.
func TestDelayOfferFollows(t *testing.T) {
	shape := &traces.Profile{Name: "shape", GradientBytes: 1e9, Compute: time.Second}
	link := cluster.Link{Gbps: 80, Latency: time.Microsecond}
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Uplink: link,
		Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, Link: link, NIC: link}}}}}
	for k := range 20 {
		seed := testseed.Or(56) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 56))
		c := delayoffer.DefaultConfig()
		c.Window, c.Load, c.MaxGPUs = 30, []float64{0, 1.3}[r.IntN(2)], 12
		c.Estimates = sim.MustEstimates([]string{"trace", "exact", "history", "noisy:0.5", "none", "gbdt"}[k%6])
		c.Comm, c.Auto, c.Lease = []string{"ring", "tree", "contention"}[k%3], r.IntN(2) == 0,
			time.Duration(1+r.IntN(20))*time.Minute
		if r.IntN(2) == 0 {
			c.Ask = "las"
		}
		jobs := owned(r, 300)
		for i := range jobs {
			jobs[i].Profile, jobs[i].GPUs, jobs[i].GPUMilli = shape, 1+r.IntN(12), 1000
		}
		w := windows(t, sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates}, jobs)
		open := func() *delayoffer.Env {
			e, err := delayoffer.New(c, spec, w, traces.Training)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		random(t, open(), open(), seed, jobs[0].Submit, r)
	}
}

// ruled plays an episode by each rule through the action space of an environment, and tells it another one.
func ruled[E sched.Steered](t *testing.T, what string, rules []sched.Rule, window int, open func(rule sched.Rule) E,
	choose func(name string, e E) (*sched.Actor, error), first func(e E) (seed uint64, origin time.Duration)) {
	t.Helper()
	for _, rule := range rules {
		if rule.Random {
			continue
		}
		t.Run(what+" "+rule.Name, func(t *testing.T) {
			e, f := open(rule), open(rule)
			mine, err := choose(rule.Name, e)
			if err != nil {
				t.Fatal(err)
			}
			its, err := choose(rule.Name, f)
			if err != nil {
				t.Fatal(err)
			}
			j := journalled(t, e, env.Episode{Seed: 3, Window: window}, func(ts *env.TimeStep) int32 {
				a, err := mine.Action(ts.Mask, nil)
				if err != nil {
					t.Fatal(err)
				}
				return a
			})
			seed, origin := first(e)
			if asked := replayed(t, f, j, e.First(), seed, origin, nil, its.Action); asked == 0 {
				t.Fatal("nobody was asked")
			}
		})
	}
}

// Rules that act through the action space act over facts as in the run.
func TestRulesActOverFacts(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Or(57), 57))
	jobs := owned(r, 300)
	shape := &traces.Profile{Name: "shape", GradientBytes: 1e9, Compute: time.Second}
	for i := range jobs {
		jobs[i].Profile, jobs[i].GPUMilli = shape, 1000
	}
	link := cluster.Link{Gbps: 80, Latency: time.Microsecond}
	linked := cluster.Spec{Racks: []cluster.RackSpec{
		{Count: 2, Uplink: link, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2, Link: link, NIC: link}}}}}
	drawn := func(e *sched.Env) (uint64, time.Duration) { return e.State().Seed, e.Window().Origin }
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, est := range []string{"exact", "history", "gbdt"} {
		over := func(most, window int) archived {
			return windows(t, sched.Taken{MaxGPUs: most, Window: window, Estimates: sim.MustEstimates(est)}, jobs)
		}
		ruled(t, "jobselect "+est, jobselect.Rules(), -1, func(rule sched.Rule) *sched.Env {
			c := jobselect.DefaultConfig()
			c.Window, c.Warm, c.Estimates, c.Running, c.Preempt = 30, 20, sim.MustEstimates(est), 8, rule.Stops
			return opening(t, c, jobs)
		}, func(name string, e *sched.Env) (*sched.Actor, error) { return jobselect.NewRule(name, e) }, drawn)
		ruled(t, "policymix "+est, policymix.Rules(), -1, func(sched.Rule) *sched.Env {
			c := policymix.DefaultConfig()
			c.Window, c.Warm, c.Estimates = 30, 20, sim.MustEstimates(est)
			w := windows(t,
				sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: sim.MustEstimates(est),
					Forecast: c.Forecast}, jobs)
			e, err := policymix.New(c, followed, w, traces.Training)
			must(t, err)
			return e
		}, func(name string, e *sched.Env) (*sched.Actor, error) { return policymix.NewRule(name, e) }, drawn)
		ruled(t, "queuerank "+est, queuerank.Rules(), 0, func(sched.Rule) *queuerank.Env {
			c := queuerank.DefaultConfig()
			c.Window, c.Estimates, c.Reward, c.Visible = 30, sim.MustEstimates(est), "dense", 6
			e, err := queuerank.New(c, cluster.Spec{Pool: 8}, over(8, c.Window), jobs, traces.Training)
			must(t, err)
			return e
		}, func(name string, e *queuerank.Env) (*sched.Actor, error) { return queuerank.NewRule(name, e) },
			func(*queuerank.Env) (uint64, time.Duration) { return 3, jobs[0].Submit })
		ruled(t, "delayoffer "+est, delayoffer.Rules(), 0, func(sched.Rule) *delayoffer.Env {
			c := delayoffer.DefaultConfig()
			c.Window, c.Estimates, c.MaxGPUs = 30, sim.MustEstimates(est), 8
			e, err := delayoffer.New(c, linked, over(8, c.Window), traces.Training)
			must(t, err)
			return e
		}, func(name string, e *delayoffer.Env) (*sched.Actor, error) { return delayoffer.NewRule(name, e) },
			func(*delayoffer.Env) (uint64, time.Duration) { return 3, jobs[0].Submit })
		ruled(t, "gpupick "+est, gpupick.Rules(), 0, func(sched.Rule) *gpupick.Env {
			c := gpupick.DefaultConfig()
			c.Window, c.Estimates = 30, sim.MustEstimates(est)
			e, err := gpupick.New(c, followed, over(c.MaxGPUs, c.Window), traces.Training)
			must(t, err)
			return e
		}, func(name string, e *gpupick.Env) (*sched.Actor, error) { return gpupick.NewRule(name, e) },
			func(*gpupick.Env) (uint64, time.Duration) { return 3, jobs[0].Submit })
	}
}

// anyhow decides at random, as nobody would: it starts waiting jobs anywhere, and stops and moves running ones.
type anyhow struct {
	r      *rand.Rand
	places []cluster.Placement
	free   *cluster.Cluster
	gpus   []cluster.GPU
	done   map[sim.Op]int
}

func newAnyhow(t *testing.T, r *rand.Rand) *anyhow {
	t.Helper()
	a := &anyhow{r: r, done: map[sim.Op]int{}}
	for _, name := range []string{"first-fit", "consolidate-best", "worst-fit"} {
		p, err := cluster.NewPlacement(name)
		if err != nil {
			t.Fatal(err)
		}
		a.places = append(a.places, p)
	}
	return a
}

// Reset implements sim.Scheduler.
func (a *anyhow) Reset(*sim.View) {}

// Decide implements sim.Scheduler.
func (a *anyhow) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	if !v.CanWait() { // something must happen
		for _, j := range v.Waiting() {
			if gpus, ok := a.places[0].Place(v.Cluster(), v.Request(j), a.gpus); ok && !v.Decided(j) {
				a.gpus = gpus
				d.Op, d.Job, d.GPUs = sim.StartJob, j, append(d.GPUs[:0], gpus...)
				return nil
			}
		}
	}
	if a.r.IntN(4) == 0 {
		return nil
	}
	place := a.places[a.r.IntN(len(a.places))]
	var j sim.Job
	var ok bool
	x := a.r.IntN(20)
	if a.done[sim.PreemptJob]+a.done[sim.MigrateJob] > 60 { // so that the jobs end
		x = 4 + x%16
	}
	switch {
	case x < 2 && len(v.Running()) > 2:
		d.Op, ok = sim.PreemptJob, true
		j = v.Running()[a.r.IntN(len(v.Running()))]
	case x < 4 && len(v.Running()) > 0:
		d.Op, j = sim.MigrateJob, v.Running()[a.r.IntN(len(v.Running()))]
		if a.free == nil {
			a.free = v.Cluster().Twin()
		}
		a.free.CopyFrom(v.Cluster())
		a.free.Release(v.Request(j), v.GPUs(j))
		a.gpus, ok = place.Place(a.free, v.Request(j), a.gpus)
		ok = ok && !slices.Equal(a.gpus, v.GPUs(j))
	case x >= 4 && len(v.Waiting()) > 0:
		d.Op, j = sim.StartJob, v.Waiting()[a.r.IntN(len(v.Waiting()))]
		a.gpus, ok = place.Place(v.Cluster(), v.Request(j), a.gpus)
	}
	if !ok || v.Decided(j) { // one decision of a job at a time
		d.Op = sim.Wait
		return nil
	}
	if d.Job = j; d.Op == sim.StartJob || d.Op == sim.MigrateJob {
		d.GPUs = append(d.GPUs[:0], a.gpus...)
	}
	a.done[d.Op]++
	return nil
}

// Schedules that no rule would make, told as facts, are shown as the environment has shown them: jobs that are stopped
// and moved at random, gangs over several nodes, nodes that fail and come back, overheads, checkpoints, and every
// estimate.
func TestAnySchedulesAreFollowed(t *testing.T) {
	asked, done := 0, map[sim.Op]int{}
	fails := 0
	for k := range 12 {
		seed := testseed.Or(58) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 58))
		c := selection(k, r)
		c.Warm, c.Preempt, c.MinRun, c.Checkpoint, c.RestartPerGPU, c.MaxSteps, c.MaxGPUs = 0, false, 0, 0, 0, 200, 8
		jobs := owned(r, 300)
		for i := range jobs {
			if r.IntN(3) == 0 {
				jobs[i].GPUs, jobs[i].GPUMilli = 5+r.IntN(4), 1000 // more than a node has
			}
		}
		checkpoint := time.Minute * time.Duration(r.IntN(2))
		open := func(sch sim.Scheduler) *sched.Env {
			parts := opening(t, c, jobs).Parts()
			parts.Actions = &piloted{Actions: parts.Actions, sch: sch}
			parts.Sim.Failures = sim.Failures{MTBF: 2 * time.Hour, MTTR: 10 * time.Minute}
			parts.Sim.Checkpoint, parts.Sim.Restart = checkpoint, 20*time.Second
			parts.Sim.Overhead = sim.Overhead{Start: 5 * time.Second, StopPerGPU: time.Second}
			e, err := sched.New(c.Config, parts)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		chaos := newAnyhow(t, rand.New(rand.NewPCG(seed, 59)))
		e, f := open(chaos), open(newAnyhow(t, rand.New(rand.NewPCG(seed, 60)))) // the latter decides in imagination alone
		j := journalled(t, e, env.Episode{Seed: seed, Window: -1},
			func(ts *env.TimeStep) int32 { return int32(env.Uniform(ts.Mask, r)) })
		for i := range j.entries {
			for _, x := range j.entries[i].facts {
				if x.Kind == sim.Fail {
					fails++
				}
			}
		}
		asked += replayed(t, all{f}, j, e.First(), e.State().Seed, e.Window().Origin, nil, nil)
		for op, n := range chaos.done {
			done[op] += n
		}
	}
	for _, op := range []sim.Op{sim.StartJob, sim.PreemptJob, sim.MigrateJob} {
		if done[op] < 15 {
			t.Errorf("only %d decisions of kind %v", done[op], op)
		}
	}
	if asked < 200 || fails < 10 {
		t.Errorf("asked %d times; %d jobs were hit by failures", asked, fails)
	}
}
