package delayoffer_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/envtest"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/dally"
)

var ctx = context.Background()

// windows are the jobs of every episode.
type windows []traces.Job

func (w windows) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: w, Counted: len(w)}, nil
}

// pairs is a rack of two nodes of two GPUs. A job of half, which exchanges 10^9 bytes in an iteration of a second, runs
// at half its rate across nodes.
func pairs() cluster.Spec {
	return cluster.Spec{Name: "pairs", Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{
		Count: 2, GPUs: 2, Link: cluster.Link{Gbps: 1e9, Latency: 1}, NIC: cluster.Link{Gbps: 8, Latency: 1},
	}}}}}
}

var half = &traces.Profile{Name: "half", GradientBytes: 1e9, Compute: time.Second}

func job(id string, submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: id, Submit: submit, Work: work, GPUs: gpus, GPUMilli: 1000, Profile: half}
}

// offered returns three jobs of one GPU; the first ends after a second, so that each node has a free GPU. Then comes a
// job of two GPUs and 100 s. At 10 s both nodes are free.
func offered() []traces.Job {
	const s = time.Second
	return []traces.Job{job("a", 0, s, 1), job("b", 0, 10*s, 1), job("c", 0, 10*s, 1), job("x", s, 100*s, 2)}
}

func open(t testing.TB, cfg delayoffer.Config, spec cluster.Spec, jobs []traces.Job) (*delayoffer.Env, *env.TimeStep) {
	t.Helper()
	e, err := delayoffer.New(cfg, spec, windows(jobs), traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
		t.Fatal(err)
	}
	return e, ts
}

func step(t testing.TB, e *delayoffer.Env, a int32, ts *env.TimeStep) {
	t.Helper()
	if err := e.Step(ctx, env.Action{Disc: []int32{a}}, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Spec().Check(ts); err != nil {
		t.Fatal(err)
	}
}

// Accepted at 1 s at half the rate, x ends at 201 s: JCT 200. Declined, it starts on a node at 10 s and ends at 110:
// JCT 109. The others take 1, 10 and 10 s.
func TestAcceptAndDeclineByHand(t *testing.T) {
	cfg := delayoffer.DefaultConfig()
	cfg.Ideal = false
	for _, c := range []struct {
		action int32
		jct    float64
	}{{delayoffer.Accept, 200}, {delayoffer.Decline, 109}} {
		e, ts := open(t, cfg, pairs(), offered())
		if o := e.Offer(); o.Tier != place.InRack || !ts.Mask[0] || !ts.Mask[1] || ts.Obs[6] != 1 || ts.Obs[7] != 0 {
			t.Fatalf("offer %+v, mask %v, tier %v", o, ts.Mask, ts.Obs[6:8])
		}
		if rates := ts.Obs[15:18]; rates[0] != 1 || math.Abs(float64(rates[1])-.5) > 1e-6 || rates[2] != 0 {
			t.Errorf("rates by tier %v, want 1, 0.5 and none", rates)
		}
		step(t, e, c.action, ts)
		if want := -(21 + c.jct) / (4 * 3600); math.Abs(ts.Reward-want) > 1e-9 || ts.Kind != env.Terminated {
			t.Errorf("action %d: return %v, %v; want %v and the end", c.action, ts.Reward, ts.Kind, want)
		}
		if got := ts.Info[delayoffer.InfoJCT]; math.Abs(got-(21+c.jct)/4) > 1e-6 {
			t.Errorf("action %d: mean JCT %v, want %v", c.action, got, (21+c.jct)/4)
		}
	}
}

// If nothing runs, nothing will arrive and no timer will run out, nothing would ever change, so the offer must be
// taken. Declining before that waits for the timers, of 6 and 12 hours.
func TestTheLastOfferCannotBeDeclined(t *testing.T) {
	cfg := delayoffer.DefaultConfig()
	e, ts := open(t, cfg, pairs(), []traces.Job{job("x", 0, time.Minute, 4)})
	for _, hours := range []float64{6, 6} {
		step(t, e, delayoffer.Decline, ts)
		if ts.Elapsed.Hours() != hours || ts.Kind != env.Mid {
			t.Fatalf("after %v, %v; want %v hours", ts.Elapsed, ts.Kind, hours)
		}
	}
	if ts.Mask[delayoffer.Decline] || !ts.Mask[delayoffer.Accept] {
		t.Errorf("mask %v", ts.Mask)
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{delayoffer.Decline}}, ts); !errors.Is(err, env.ErrIllegalAction) {
		t.Errorf("got %v", err)
	}
	step(t, e, delayoffer.Accept, ts)
	if ts.Kind != env.Terminated {
		t.Errorf("kind %v", ts.Kind)
	}
}

// slow is the cluster of Dally's simulator with a network on which placement matters.
func slow(t testing.TB, racks string) cluster.Spec {
	t.Helper()
	spec, _, err := cluster.Parse("dally:" + racks)
	if err != nil {
		t.Fatal(err)
	}
	spec.Racks[0].Uplink.Gbps, spec.Racks[0].Nodes[0].NIC.Gbps = 80, 200
	return spec
}

// ends are the finish times of a run, by job.
type ends map[string]time.Duration

func (m ends) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		if e.Kind == sim.Finish {
			m[v.Trace(e.Job).ID] = e.At
		}
	}
	return nil
}

func TestTheTimersAsPolicyAreTheHeuristicDally(t *testing.T) {
	for _, auto := range []bool{true, false} {
		for seed := range uint64(3) {
			cfg := delayoffer.DefaultConfig()
			cfg.Auto, cfg.RackWait, cfg.NetworkWait = auto, 1.5, 4
			jobs := dally.Generate(dally.Config{Jobs: 80, PerDay: 150, Multi: true, MaxGPUs: 64}, seed)
			spec := slow(t, "2x4")
			e, err := delayoffer.New(cfg, spec, windows(jobs), traces.Training)
			if err != nil {
				t.Fatal(err)
			}
			got := ends{}
			e.Watch(got)
			ts := env.NewTimeStep(e.Spec())
			if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
				t.Fatal(err)
			}
			steps, declined := 0, 0
			for !ts.Kind.Last() {
				a := e.Timely()
				if a == delayoffer.Decline {
					declined++
				}
				step(t, e, a, ts)
				steps++
			}
			s, err := sim.New(cfg.Simulator(), spec)
			if err != nil {
				t.Fatal(err)
			}
			for i := len(jobs) - 1; i >= 0; i-- {
				jobs[i].Submit -= jobs[0].Submit
			}
			if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			h, err := schedulers.New(cfg.Heuristic())
			if err != nil {
				t.Fatal(err)
			}
			want := ends{}
			if err := sim.Run(ctx, s, h, want); err != nil {
				t.Fatal(err)
			}
			if len(want) != len(jobs) || len(got) != len(jobs) || declined == 0 {
				t.Fatalf("%d and %d of %d jobs finished, %d of %d offers declined", len(got), len(want), len(jobs), declined, steps)
			}
			for id, at := range want {
				if got[id] != at {
					t.Errorf("auto %v, seed %d: job %s ends at %v, by the heuristic at %v", auto, seed, id, got[id], at)
				}
			}
		}
	}
}

// The return is minus the mean JCT in units of tau, whatever the answers.
func TestTheReturnIsTheMeanJCT(t *testing.T) {
	cfg := delayoffer.DefaultConfig()
	for seed := range uint64(4) {
		e, ts := open(t, cfg, slow(t, "2x2"),
			dally.Generate(dally.Config{Jobs: 40, PerDay: 200, Multi: true, MaxGPUs: 32}, seed))
		sum := 0.0
		for n := uint64(0); !ts.Kind.Last(); n++ {
			a := int32((n*2654435761 + seed) >> 5 & 1)
			if !ts.Mask[a] {
				a = delayoffer.Accept
			}
			step(t, e, a, ts)
			sum += ts.Reward
		}
		if want := -ts.Info[delayoffer.InfoJCT] / 3600; math.Abs(sum-want) > 1e-9*math.Abs(want) {
			t.Errorf("seed %d: return %v, want %v", seed, sum, want)
		}
	}
}

// With relative the return is what is saved compared with the timers. An agent that answers as they do earns 0 at every
// step, with a discount too. Another agent earns the difference of the mean JCTs, whether its run is longer or shorter.
func TestTheRelativeReturnIsWhatIsSavedAgainstTheTimers(t *testing.T) {
	sooner, later := 0, 0
	for seed := range uint64(4) {
		jobs := dally.Generate(dally.Config{Jobs: 40, PerDay: 200, Multi: true, MaxGPUs: 32}, seed)
		cfg := delayoffer.DefaultConfig()
		cfg.Relative, cfg.Gamma = true, .99
		e, ts := open(t, cfg, slow(t, "2x2"), jobs)
		for !ts.Kind.Last() {
			step(t, e, e.Timely(), ts)
			if math.Abs(ts.Reward) > 1e-9 {
				t.Fatalf("seed %d: the timers earn %v more than themselves", seed, ts.Reward)
			}
		}
		timers, last := ts.Info[delayoffer.InfoJCT], ts.Info[delayoffer.InfoMakespan]
		cfg.Gamma = 1
		e, ts = open(t, cfg, slow(t, "2x2"), jobs)
		sum := 0.0
		for n := uint64(0); !ts.Kind.Last(); n++ {
			a := int32((n*2654435761 + seed) >> 5 & 1)
			if !ts.Mask[a] {
				a = delayoffer.Accept
			}
			step(t, e, a, ts)
			sum += ts.Reward
		}
		if want := (timers - ts.Info[delayoffer.InfoJCT]) / 3600; math.Abs(sum-want) > 1e-9*timers/3600 {
			t.Errorf("seed %d: return %v, want %v", seed, sum, want)
		}
		if ts.Info[delayoffer.InfoMakespan] < last {
			sooner++
		} else {
			later++
		}
	}
	if sooner == 0 || later == 0 {
		t.Errorf("%d runs end sooner than the timers' and %d later: both ends are to be seen", sooner, later)
	}
}

// A gang of four is offered both nodes while jobs of one GPU wait behind it: one has less left, one has more.
func TestTheQueueSaysWhoWouldBeOverSooner(t *testing.T) {
	const s = time.Second
	jobs := []traces.Job{job("a", 0, 100*s, 1), job("x", 1*s, 600*s, 4), job("y", 2*s, 60*s, 4), job("z", 3*s, 6000*s, 4)}
	e, ts := open(t, delayoffer.DefaultConfig(), pairs(), jobs)
	o := e.Offer()
	if id := e.View().Trace(o.Job).ID; id != "x" {
		t.Fatalf("%s is asked first", id)
	}
	at := 6 + 14
	want := []float64{math.Log1p(3) / math.Log1p(1024), .75, math.Log1p(2) / math.Log1p(1024),
		math.Log1p(1) / math.Log1p(14*24*60), .5, 1}
	for i, w := range want {
		if got := float64(ts.Obs[at+i]); math.Abs(got-w) > 1e-6 {
			t.Errorf("queue[%d] is %v, want %v", i, got, w)
		}
	}
	if got := ts.Obs[len(ts.Obs)-1]; got != float32(e.Timely()) {
		t.Errorf("the timers' answer is shown as %v", got)
	}
}

func TestContract(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(c *delayoffer.Config)
	}{
		{"default", func(*delayoffer.Config) {}},
		{"discounted, fixed timers, no estimates",
			func(c *delayoffer.Config) { c.Gamma, c.Auto, c.Estimates = .99, false, sim.MustEstimates("none") }},
		{"relative, discounted, noisy", func(c *delayoffer.Config) {
			c.Gamma, c.Relative, c.Estimates = .99, true, sim.MustEstimates("noisy:0.5")
		}},
		{"contention, noisy, cut off", func(c *delayoffer.Config) {
			c.Comm, c.Estimates, c.MaxSteps = "contention", sim.MustEstimates("noisy:0.5"), 40
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			cfg := delayoffer.DefaultConfig()
			cfg.Window, cfg.MaxGPUs = 24, 32
			x.change(&cfg)
			w, err := traces.NewWindows(dally.Generate(dally.Config{Jobs: 300, PerDay: 200, Multi: true, MaxGPUs: 32}, 5),
				cfg.Window, 0)
			if err != nil {
				t.Fatal(err)
			}
			envtest.Run(t, func() env.Env {
				e, err := delayoffer.New(cfg, slow(t, "2x2"), w, traces.Training)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}, envtest.Cap(400))
		})
	}
}

func TestConfigFaultsAllAtOnce(t *testing.T) {
	cfg := delayoffer.Config{Gamma: 2, Load: -1, MaxSteps: -1, Comm: "pigeon", RackWait: -1, NetworkWait: -1, History: -1,
		Lease: 1}
	var keys []string
	for _, f := range fault.All(cfg.Validate()) {
		keys = append(keys, f.Key)
	}
	want := "gamma tau window load max_gpus estimates max_steps forecast comm rack_wait nw_wait lease history"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := delayoffer.New(delayoffer.DefaultConfig(), cluster.Spec{Pool: 8}, windows(nil), traces.Training); err ==
		nil {
		t.Error("a counter has no tiers")
	}
}

func TestPage(t *testing.T) {
	cfg := delayoffer.DefaultConfig()
	e, _ := open(t, cfg, pairs(), offered())
	page := delayoffer.Page(cfg, e.Spec())
	for _, f := range e.Spec().Obs {
		if !strings.Contains(page, "| "+f.Name+" | ") {
			t.Errorf("field %s is missing", f.Name)
		}
	}
}

// BenchmarkStep is play that always accepts, resets included.
func BenchmarkStep(b *testing.B) {
	cfg := delayoffer.DefaultConfig()
	e, ts := open(b, cfg, slow(b, "4x4"), dally.Generate(dally.Config{Jobs: 256, PerDay: 100, Multi: true}, 1))
	b.ReportAllocs()
	for b.Loop() {
		if ts.Kind.Last() {
			if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
				b.Fatal(err)
			}
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{delayoffer.Accept}}, ts); err != nil {
			b.Fatal(err)
		}
	}
}

// late are windows of which only those at odd seeds have an offer; the window with number 0 has none.
type late struct{ with, without []traces.Job }

func (w late) At(_ traces.Part, seed uint64, window int) (traces.Window, error) {
	if window < 0 && seed%2 == 1 {
		return traces.Window{Jobs: w.with, Counted: len(w.with), First: 1}, nil
	}
	return traces.Window{Jobs: w.without, Counted: len(w.without)}, nil
}

// A window in which the agent has nothing to decide is drawn again if the seed chose it. If its number did, it is
// played to its end, and the watcher sees what a scheduler in the agent's place would have done.
func TestWindowsWithoutAnOfferAreDrawnAgain(t *testing.T) {
	single := []traces.Job{job("a", 0, 3*time.Second, 1), job("b", time.Second, 5*time.Second, 1)}
	e, err := delayoffer.New(delayoffer.DefaultConfig(), pairs(), late{offered(), single}, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	for seed := range uint64(20) {
		if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1}, ts); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if e.Offer() == nil || len(e.View().Cluster().Types()) == 0 {
			t.Fatalf("seed %d: an episode without an offer", seed)
		}
		first := append([]float32(nil), ts.Obs...)
		if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1}, ts); err != nil || !slices.Equal(first, ts.Obs) {
			t.Errorf("seed %d: begun again, the episode is another (%v)", seed, err)
		}
	}

	var c metrics.Collector
	e.Watch(&c)
	err = e.Reset(ctx, env.Episode{Seed: 1, Window: 0}, ts)
	if !errors.Is(err, sched.ErrUndecided) || !errors.Is(err, env.ErrEpisode) ||
		!strings.Contains(err.Error(), "no job of the window starting at job \"a\" is ever offered more than a node") {
		t.Fatalf("%v, want ErrUndecided", err)
	}
	if s := c.Summary(0, 0); s.JCT.Mean != 4 || s.Unfinished != 0 { // 3 s and 5 s
		t.Errorf("the watcher saw %+v, want a mean JCT of 4 s", s)
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{1}}, ts); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("a step in a window without an episode: %v", err)
	}

	never, err := delayoffer.New(delayoffer.DefaultConfig(), pairs(), windows(single), traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	if err := never.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts); !errors.Is(err, sched.ErrUndecided) {
		t.Errorf("no window has an offer: %v, want ErrUndecided", err)
	}
}
