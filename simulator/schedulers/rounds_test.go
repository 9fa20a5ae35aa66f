package schedulers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var inRounds = []string{"gavel-las", "gavel-ftf", "themis", "optimus", "gandiva"}

// mixedJobs returns drawn's workload with elastic jobs, jobs without GPUs, models with their own speeds, and
// sometimes virtual clusters.
func mixedJobs(r *rand.Rand, n int) (cluster.Spec, []traces.Job) {
	spec, jobs := drawn(r, n)
	vcs := r.IntN(3) == 0
	if vcs {
		spec.VCs = []cluster.VCSpec{{Name: "a", Quota: 7}, {Name: "b"}}
	}
	profiles := []*traces.Profile{nil, {Name: "x", Speeds: map[string]float64{"v100": 1, "k80": 0.9}},
		{Name: "y", Speeds: map[string]float64{"k80": 0.1},
			Scaling: []traces.ScalePoint{{GPUs: 1, Throughput: 1}, {GPUs: 2, Throughput: 1.7}, {GPUs: 4, Throughput: 2.4},
				{GPUs: 8, Throughput: 2.5}}}}
	for i := range jobs {
		j := &jobs[i]
		j.VC = []string{"a", "b"}[r.IntN(2)]
		j.Profile = profiles[r.IntN(3)]
		switch r.IntN(6) {
		case 0:
			j.MinGPUs, j.MaxGPUs = r.IntN(2), j.GPUs+r.IntN(4)
		case 1:
			j.GPUs, j.GPUMilli, j.GPUTypes = 0, 0, nil
		}
	}
	return spec, jobs
}

// For every workload: every job ends, no job runs twice at a time, and the same seed gives the same run. Policies
// that distribute all free GPUs leave no job waiting that fits.
func TestRoundsEndEveryJob(t *testing.T) {
	for _, order := range inRounds {
		t.Run(order, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
				spec, jobs := mixedJobs(r, rapid.IntRange(1, 50).Draw(t, "jobs"))
				cfg := schedulers.DefaultConfig()
				cfg.Order, cfg.Seed = order, r.Uint64()
				cfg.Placement = []string{"first-fit", "best-fit", "worst-fit", "random", "lwf-2", "tetris"}[r.IntN(6)]
				cfg.Estimates = sim.MustEstimates([]string{"exact", "trace", "noisy:0.7"}[r.IntN(3)])
				cfg.Round = []time.Duration{0, 20 * second, 37 * second}[r.IntN(3)]
				cfg.Migrate = []time.Duration{0, 45 * second}[r.IntN(2)]
				run := sim.DefaultConfig()
				run.Comm = []string{"none", "tree"}[r.IntN(2)]
				run.Restart = time.Duration(r.IntN(2)) * second // a round on a slow GPU must gain more than a restart costs
				run.Overhead.Start = time.Duration(r.IntN(2)) * 3 * second
				if spec.Pool == 0 && r.IntN(3) == 0 {
					run.Failures = sim.Failures{MTBF: 20 * time.Minute, MTTR: 2 * time.Minute}
				}
				h, err := schedulers.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				got := simulate(t, run, spec, jobs, h)
				if again := simulate(t, run, spec, jobs, h); again != got {
					t.Fatalf("used again:\n%s", diff(again, got))
				}
				ends := strings.Count(got, " finish ")
				c, err := cluster.New(spec)
				if err != nil {
					t.Fatal(err)
				}
				for i := range jobs {
					if _, ok := c.Request(&jobs[i]); ok {
						ends--
					}
				}
				if ends != 0 {
					t.Fatalf("%d jobs too many have ended:\n%s", ends, got)
				}
			})
		})
	}
}

// At the end of every point no waiting job fits, under policies that assign GPUs as soon as they are free.
func TestNothingLiesIdleForAnAuctionOrATurn(t *testing.T) {
	for _, order := range []string{"themis", "gandiva"} {
		r := rand.New(rand.NewPCG(8, 8))
		for range 30 {
			spec, jobs := mixedJobs(r, 40)
			s, err := sim.New(sim.DefaultConfig(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			v := s.View()
			h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = order, 30*second })
			h.Reset(v)
			var d sim.Decision
			for !v.Over() {
				p, err := s.Advance(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if v.Over() {
					break
				}
				for d.Op = sim.StartJob; d.Op != sim.Wait; {
					if err := h.Decide(v, p, &d); err != nil {
						t.Fatal(err)
					}
					if d.Op == sim.Wait && d.Until != v.Now()+1 {
						if i := slices.IndexFunc(v.Waiting(), v.Fits); i >= 0 {
							t.Fatalf("%s: job %s waits at %v although it fits", order, v.Trace(v.Waiting()[i]).ID, v.Now())
						}
					}
					if err := s.Apply(&d); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// events returns what simulate logs, in one line and without placements.
func events(t *testing.T, spec cluster.Spec, jobs []traces.Job, h schedulers.Policy) string {
	t.Helper()
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(simulate(t, sim.DefaultConfig(), spec, jobs, h)), "\n") {
		if f := strings.Fields(line); f[1] != "submit" && f[1] != "timer" {
			out = append(out, strings.Join(f[:3], " "))
		}
	}
	return strings.Join(out, ", ")
}

func check(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// Gangs that swap places wait for each other; one of them is stopped for a nanosecond.
func TestGangsChangePlaces(t *testing.T) {
	// Two types with one GPU each, shares computed at 0, when both jobs are there. Each job is as fast as 1 on one
	// type and slow on the other, in the wrong order for first-fit. From the first round on each runs on its own
	// type.
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, GPUType: "a"}, {GPUs: 1, GPUType: "b"}}}}}
	likesB := &traces.Profile{Name: "B", Speeds: map[string]float64{"a": 0.1, "b": 1}}
	likesA := &traces.Profile{Name: "A", Speeds: map[string]float64{"a": 1, "b": 0.1}}
	jobs := []traces.Job{whole("B", 0, 50*second, 1), whole("A", 0, 50*second, 1)}
	jobs[0].Profile, jobs[1].Profile = likesB, likesA
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = "gavel-las", 10*second })
	check(t, "own types", events(t, spec, jobs, h), "0s start B, 0s start A, 50s finish B, 50s finish A")

	// Other code puts both on the wrong type at 0. At 10 s, the end of the round, each has run 1 s worth of its 50.
	s, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	var l log
	var c metrics.Collector
	for n := 0; !v.Over(); n++ {
		p, err := s.Advance(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Observe(v, p); err != nil {
			t.Fatal(err)
		}
		if err := c.Observe(v, p); err != nil {
			t.Fatal(err)
		}
		if v.Over() {
			break
		}
		if n == 0 {
			for i, g := range []cluster.GPU{0, 1} {
				if err := s.Apply(&sim.Decision{Op: sim.StartJob, Job: sim.Job(i), GPUs: []cluster.GPU{g}}); err != nil {
					t.Fatal(err)
				}
			}
			h.Reset(v)
		}
		var d sim.Decision
		if err := sim.Decide(s, h, p, &d, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"10s preempt", "10s migrate", "10.000000001s start", "59s finish",
		"59.000000001s finish"} {
		if !strings.Contains(l.b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, l.b.String())
		}
	}
}

func TestGavelByHand(t *testing.T) {
	// One GPU, rounds of 10 s, two jobs of 30 s: shares of a half each. Both begin with 5 s of credit, so A goes first
	// by position; then f is 15/20 for A and 5/20 for B, which goes next; at 20 both are equal again.
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = "gavel-las", 10*second })
	check(t, "turns",
		events(t, cluster.Spec{Pool: 1}, []traces.Job{whole("A", 0, 30*second, 1), whole("B", 0, 30*second, 1)}, h),
		"0s start A, 10s preempt A, 10s start B, 20s preempt B, 20s start A, 30s preempt A, 30s start B, 40s preempt B, 40s start A, "+
			"50s finish A, 50s start B, 1m0s finish B")
	// A gang of 2 and two jobs of 1 on 2 GPUs get the same GPU-time: the gang a third of the time, X = 1/3, the others
	// X = 2/3 each. By X/f, f being a third of all time to begin with, the small ones go first: 2 against 1. After one
	// round they have f = 15/35, 2/3 ÷ 15/35 = 1.56, the gang 5/35, 2.33. After the second: 2/3 ÷ 15/45 = 2 against
	// 1/3 ÷ 15/45 = 1: the small ones again.
	check(t, "GPU-time",
		events(t, cluster.Spec{Pool: 2},
			[]traces.Job{whole("G", 0, 10*second, 2), whole("A", 0, 20*second, 1), whole("B", 0, 20*second, 1)}, h),
		"0s start A, 0s start B, 10s preempt A, 10s preempt B, 10s start G, 20s finish G, 20s start A, 20s start B, 30s finish A, 30s finish B")
}

// A fast and a slow type, one GPU of each; F runs at 1 and 0.2, S at 1 and 0.8. With equal shares they run at 0.6 and
// 0.9. If F has the fast GPU for a part y of the time and the slow one for the rest, and S the other way round, the
// measures are (y + 0.2(1 − y))/0.6 and (1 − y + 0.8y)/0.9, which are equal, and greatest, at y = 1/2: of 200 s, F is
// 0.4·200 s behind rate 1, S 0.1·200 s.
func TestGavelMixesTypes(t *testing.T) {
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, GPUType: "fast"}, {GPUs: 1, GPUType: "slow"}}}}}
	jobs := []traces.Job{whole("F", 0, 400*second, 1), whole("S", 0, 800*second, 1)}
	jobs[0].Profile = &traces.Profile{Name: "F", Speeds: map[string]float64{"slow": 0.2}}
	jobs[1].Profile = &traces.Profile{Name: "S", Speeds: map[string]float64{"slow": 0.8}}
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = "gavel-las", second })
	s, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	var left [2]float64
	err = sim.Run(context.Background(), s, h, observer(func(v *sim.View, p *sim.Point) error {
		if p.Now == 200*second {
			left = [2]float64{200 - (400 - v.Left(0)/1e9), 200 - (800 - v.Left(1)/1e9)}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{80, 20} {
		if left[i] < want-1.6 || left[i] > want+1.6 { // two rounds
			t.Errorf("job %d is %.1f s behind, want %.1f", i, left[i], want)
		}
	}
}

type observer func(v *sim.View, p *sim.Point) error

func (f observer) Observe(v *sim.View, p *sim.Point) error { return f(v, p) }

// Jobs of many sizes, from 2 GPUs to all 16, get equal GPU-time in ten hours.
func TestGavelSharesGPUTimeEqually(t *testing.T) {
	var jobs []traces.Job
	for i := range 12 {
		jobs = append(jobs, whole(fmt.Sprint("j", i), 0, 1000*time.Hour, 1<<(i%4+1)))
	}
	cfg := sim.DefaultConfig()
	cfg.Horizon = 10 * time.Hour
	s, err := sim.New(cfg, cluster.Spec{Pool: 16})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = "gavel-las", time.Minute })
	if err := sim.Run(context.Background(), s, h); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	sum := 0.0
	for j := range sim.Job(12) {
		sum += v.GPUTime(j) / 1e9
	}
	if all := 16 * 36000.0; sum < 0.9*all { // gangs of 16 and less do not always fill the rest of a round
		t.Errorf("%.0f of %.0f GPU-seconds are used", sum, all)
	}
	for j := range sim.Job(12) {
		if got, want := v.GPUTime(j)/1e9, sum/12; got < 0.98*want || got > 1.02*want {
			t.Errorf("%s of %d GPUs has had %.0f GPU-seconds, an equal part is %.0f", v.Trace(j).ID, v.Asked(j), got, want)
		}
	}
	if n, unproved := schedulers.Undivided(h).(interface{ Solved() (int, int) }).Solved(); n != 1 || unproved != 0 {
		t.Errorf("%d programs, %d levels without proof, want 1 and 0", n, unproved)
	}
}

// The worst finish-time fairness of a few short jobs behind long ones: much better than first come, first served.
func TestFinishTimeFairness(t *testing.T) {
	jobs := []traces.Job{whole("long", 0, 10000*second, 2), whole("long2", 0, 10000*second, 2)}
	for i := range 6 {
		jobs = append(jobs, whole(fmt.Sprint("short", i), time.Duration(100+i*50)*second, 300*second, 1))
	}
	worst := func(order string) (rho float64) {
		h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = order, 60*second })
		s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 4})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		var c metrics.Collector
		if err := sim.Run(context.Background(), s, h, &c); err != nil {
			t.Fatal(err)
		}
		for j := range c.Jobs() {
			rho = max(rho, float64(j.Finish-j.Submit)/float64(jobs[j.Pos].Work))
		}
		return rho
	}
	fifo := worst("fifo")
	for _, order := range []string{"gavel-ftf", "themis"} {
		if got := worst(order); got > fifo/5 {
			t.Errorf("%s: the worst slowdown is %.1f, that of fifo %.1f", order, got, fifo)
		}
	}
}

// Two GPUs, leases of 10 s. L, of 40 s on both, has them when S (5 s on one) comes at 1. At 10 the lease is over: ρ
// of L is (10 + 30)/40 = 1, that of S (9 + 5)/5 = 2.8: only S is offered GPUs, and it takes one. L cannot use the
// remaining one. At 15 S is done, and L has both again until 45, because no other job is there.
func TestThemisByHand(t *testing.T) {
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = "themis", 10*second })
	check(t, "lease",
		events(t, cluster.Spec{Pool: 2}, []traces.Job{whole("L", 0, 40*second, 2), whole("S", second, 5*second, 1)}, h),
		"0s start L, 10s preempt L, 10s start S, 15s finish S, 15s start L, 45s finish L")
	// Leases that run out while no job waits are renewed: L's third ends at 30. M, which arrives at 22, has to wait
	// until then. At that time ρ of M is (8 + 40)/40 = 1.2, that of L (30 + 10)/40 = 1.
	check(t, "renewed",
		events(t, cluster.Spec{Pool: 2}, []traces.Job{whole("L", 0, 40*second, 2), whole("M", 22*second, 40*second, 2)}, h),
		"0s start L, 30s preempt L, 30s start M, 40s preempt M, 40s start L, 50s finish L, 50s start M, 1m20s finish M")
	// Ten jobs, so two bid. 5 GPUs; the worst off are X (3 GPUs) and Y (3): not both fit. Y, with less left, gains
	// more of a lease. The other two GPUs go to the next auction.
	jobs := []traces.Job{whole("all", 0, 100*second, 5)}
	for i := range 8 {
		jobs = append(jobs, whole(fmt.Sprint("other", i), 90*second, 1000*second, 1))
	}
	jobs = append(jobs, whole("X", 10*second, 10*second, 3), whole("Y", 11*second, 5*second, 3))
	slices.SortStableFunc(jobs, func(a, b traces.Job) int { return int(a.Submit - b.Submit) })
	h = scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = "themis", 100*second })
	got := events(t, cluster.Spec{Pool: 5}, jobs, h)
	if !strings.HasPrefix(got,
		"0s start all, 1m40s finish all, 1m40s start Y, 1m40s start other0, 1m40s start other1, 1m45s finish Y, 1m45s start X") {
		t.Errorf("auction: %s", got)
	}
}

// Six GPUs; E (1 to 4 GPUs, asks for 2, 100 s) scales linearly, D (the same) gets 1, 1.5, 1.6, 1.7 out of them, and R
// wants
//  1. After one GPU each 3 are left. For E the second saves left·T(2)/1 − left·T(2)/2 = 200 − 100 = 100 s, the third
//     33, the
//
// fourth 17; for D 100·1.5·(1/1 − 1/1.5) = 50, then 6. So E gets one, D one, E one: 3, 2 and 1.
func TestOptimusByHand(t *testing.T) {
	jobs := []traces.Job{whole("E", 0, 100*second, 2), whole("D", 0, 100*second, 2), whole("R", 0, 600*second, 1)}
	for i := range 2 {
		jobs[i].MinGPUs, jobs[i].MaxGPUs = 1, 4
	}
	jobs[1].Profile = &traces.Profile{Name: "D",
		Scaling: []traces.ScalePoint{{GPUs: 1, Throughput: 1}, {GPUs: 2, Throughput: 1.5}, {GPUs: 3, Throughput: 1.6},
			{GPUs: 4, Throughput: 1.7}}}
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = "optimus", 50*second })
	sizes := func(spec cluster.Spec) (out []string) {
		s, err := sim.New(sim.DefaultConfig(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		err = sim.Run(context.Background(), s, h, observer(func(v *sim.View, p *sim.Point) error {
			for _, e := range p.Events {
				if e.Kind != sim.Submit && e.Kind != sim.Timer {
					out = append(out, fmt.Sprint(e.At, " ", e.Kind, " ", v.Trace(e.Job).ID, " ", e.N))
				}
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// E is done after 66.7 s. At the end of the second round D, with nothing left to do at 100, is done as well.
	for _, spec := range []cluster.Spec{{Pool: 6}, {Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 3}}}}}} {
		got := strings.Join(sizes(spec), ", ")
		if want := "0s start E 3, 0s start D 2, 0s start R 1"; spec.Pool > 0 && !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		for _, want := range []string{"start E 3", "start D 2", "start R 1", "finish E 3", "1m40s finish D 2",
			"10m0s finish R 1"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is missing in %s", want, got)
			}
		}
	}
	// With five GPUs E and D have two each. E, with 50 s left at 50, is done at 100 with D.
	if got := strings.Join(sizes(cluster.Spec{Pool: 5}), ", "); got !=
		"0s start E 2, 0s start D 2, 0s start R 1, 1m40s finish E 2, 1m40s finish D 2, 10m0s finish R 1" {
		t.Errorf("five GPUs: %s", got)
	}
	// When E has finished at 100 and others come, gangs grow: D alone with R on six GPUs gets all four that it can use.
	jobs = jobs[1:]
	jobs[0].Work, jobs[1].Submit = 300*second, 10*second
	if got := strings.Join(sizes(cluster.Spec{Pool: 4}), ", "); !strings.HasPrefix(got,
		"0s start D 4, 50s resize D 3, 50s start R 1, ") {
		t.Errorf("grown and cut: %s", got)
	}
}

func TestGandivaByHand(t *testing.T) {
	// Two GPUs, turns of 10 s. A and B run, C (one GPU) comes at 3 and waits; a turn begins. At 13 C goes first, then A;
	// B waits. At 23 the queue is B, C, A: B and C. C is done at 33.
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Round = "gandiva", 10*second })
	check(t, "turns",
		events(t, cluster.Spec{Pool: 2},
			[]traces.Job{whole("A", 0, 30*second, 1), whole("B", 0, 30*second, 1), whole("C", 3*second, 20*second, 1)}, h),
		"0s start A, 0s start B, 13s preempt B, 13s start C, 23s preempt A, 23s start B, 33s finish C, 33s start A, 40s finish B, 40s finish A")

	// Two nodes of 2. S1 and S2 take a GPU of each (worst-fit), G wants two: scattered over both. At 60 S2 has ended,
	// and the next time that gangs are moved together, at 100, G gets a node to itself.
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}}
	h = scheduler(t, func(c *schedulers.Config) { c.Order, c.Placement, c.Migrate = "gandiva", "worst-fit", 50*second })
	check(t, "together",
		events(t, spec,
			[]traces.Job{whole("S1", 0, 300*second, 1), whole("S2", 0, 60*second, 1), whole("G", second, 199*second, 2)}, h),
		"0s start S1, 0s start S2, 1s start G, 1m0s finish S2, 1m40s migrate G, 3m20s finish G, 5m0s finish S1")
}

func TestRoundsConfigFaults(t *testing.T) {
	cfg := schedulers.DefaultConfig()
	cfg.Order, cfg.Admission, cfg.Backfill, cfg.Round, cfg.Migrate = "themis", "skip", "easy", time.Millisecond, -second
	var keys []string
	for _, f := range fault.All(cfg.Validate()) {
		keys = append(keys, f.Key)
	}
	if got := fmt.Sprint(keys); got != "[admission backfill round migrate]" {
		t.Errorf("faults of %s", got)
	}
	for _, order := range inRounds {
		if h := scheduler(t, func(c *schedulers.Config) { c.Order = order }); h.Name() != order ||
			!schedulers.Preemptive(order) {
			t.Errorf("%s calls itself %s, preemptive %v", order, h.Name(), schedulers.Preemptive(order))
		}
	}
	// Estimates from the trace, which has none.
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Estimates = "optimus", sim.MustEstimates("trace") })
	s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: []traces.Job{whole("J", 0, second, 1)}}); err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(context.Background(), s, h); err == nil || !strings.Contains(err.Error(), "job J has no estimate") {
		t.Errorf("got %v", err)
	}
}

// A program that is too large is rejected at once with an error that says so.
func TestGavelRefusesTooLargeAProgram(t *testing.T) {
	jobs := make([]traces.Job, 1<<16+1)
	for i := range jobs {
		jobs[i] = whole("j", 0, second, 1)
	}
	s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	err = sim.Run(context.Background(), s, scheduler(t, func(c *schedulers.Config) { c.Order = "gavel-ftf" }))
	if err == nil || !strings.Contains(err.Error(), "65537 jobs of different kinds on 1 GPU types") {
		t.Errorf("got %v", err)
	}
}

// threeTypes returns two days of jobs of four models and sizes on three types; together they need about all of the
// 108 GPUs.
func threeTypes(n int) (cluster.Spec, []traces.Job) {
	r := rand.New(rand.NewPCG(10, 10))
	var models []*traces.Profile
	for _, s := range [][2]float64{{0.4, 0.15}, {0.7, 0.3}, {0.55, 0.5}, {0.9, 0.8}} {
		models = append(models, &traces.Profile{Speeds: map[string]float64{"v100": 1, "p100": s[0], "k80": s[1]}})
	}
	spec := cluster.Spec{Racks: []cluster.RackSpec{{}}}
	for _, kind := range []string{"v100", "p100", "k80"} {
		spec.Racks[0].Nodes = append(spec.Racks[0].Nodes, cluster.NodeSpec{Count: 9, GPUs: 4, GPUType: kind})
	}
	jobs := make([]traces.Job, n)
	at := 0.0
	for i := range jobs {
		at += r.ExpFloat64() * 200
		jobs[i] = whole(fmt.Sprint(i), time.Duration(at)*second, time.Duration(600*(1+r.ExpFloat64()*8))*second, 1<<r.IntN(4))
		jobs[i].Profile = models[r.IntN(len(models))]
	}
	return spec, jobs
}

func BenchmarkRounds(b *testing.B) {
	for _, order := range inRounds {
		b.Run(order, func(b *testing.B) {
			spec, jobs := threeTypes(1000)
			s, err := sim.New(sim.DefaultConfig(), spec)
			if err != nil {
				b.Fatal(err)
			}
			h := scheduler(b, func(c *schedulers.Config) { c.Order = order })
			var c metrics.Collector
			b.ReportAllocs()
			for b.Loop() {
				c.Reset()
				if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
					b.Fatal(err)
				}
				if err := sim.Run(context.Background(), s, h, &c); err != nil {
					b.Fatal(err)
				}
			}
			if g, ok := schedulers.Undivided(h).(interface{ Solved() (int, int) }); ok {
				n, unproved := g.Solved()
				b.ReportMetric(float64(n), "programs")
				b.ReportMetric(float64(unproved), "unproved")
			}
			b.ReportMetric(c.Summary(0, 0).JCT.Mean, "JCT")
		})
	}
}
