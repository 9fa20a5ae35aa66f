package schedulers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/attained"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

const second = time.Second

func whole(id string, submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: id, Submit: submit, Work: work, GPUs: gpus, GPUMilli: 1000}
}

func scheduler(t testing.TB, change func(c *schedulers.Config)) schedulers.Policy {
	t.Helper()
	cfg := schedulers.DefaultConfig()
	change(&cfg)
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Two GPUs; A wants both for 100 s, B both for 15 s from 5 s on; jobs fall after 10 s and after 30 s.
func TestLASByHand(t *testing.T) {
	jobs := []traces.Job{whole("A", 0, 100*second, 2), whole("B", 5*second, 15*second, 2)}
	for order, want := range map[string]string{
		// A falls at 10 and B goes first; B falls at 20 behind A, which waits there; A falls again at 40.
		"las": "0s submit A, 0s start A, 5s submit B, 10s timer, 10s preempt A, 10s start B, 20s timer, 20s preempt B, 20s start A, " +
			"40s timer, 40s preempt A, 40s start B, 45s finish B, 45s start A, 1m55s finish A",
		// The same in half the time, because each second counts for both GPUs: A falls at 5 as B arrives, B at 10;
		// A has 30 GPU-seconds at 20, so B ends first, at its own limit.
		"las-2d-prompt": "0s submit A, 0s start A, 5s submit B, 5s timer, 5s preempt A, 5s start B, 10s timer, 10s preempt B, 10s start A, " +
			"20s timer, 20s preempt A, 20s start B, 30s finish B, 30s timer, 30s start A, 1m55s finish A",
	} {
		h := scheduler(t, func(c *schedulers.Config) {
			c.Order, c.Limits = order, []time.Duration{10 * second, 30 * second}
		})
		got := simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 2}, jobs, h)
		got = strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(got), " []", ""), "\n", ", ")
		if got = strings.ReplaceAll(got, "timer ,", "timer,"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", order, got, want)
		}
	}
}

// A holds half of each of two GPUs, together one, so it has 10 GPU-seconds at 10 s, not at 5 s; then B goes first,
// which wants both and has waited since 1 s. B's half of two GPUs counts as one too: it has done its 6 s before it
// falls.
func TestLASCountsSharesOfGPUs(t *testing.T) {
	jobs := []traces.Job{whole("A", 0, 30*second, 2), whole("B", second, 6*second, 2)}
	jobs[0].GPUMilli, jobs[1].GPUMilli = 500, 1000
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2}}}}}
	for order, limit := range map[string]time.Duration{"las-2d-prompt": 10 * second, "las-2d": 10 * second} {
		h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Limits = order, []time.Duration{limit, 100 * second} })
		check(t, order, events(t, spec, jobs, h),
			"0s start A, 10s preempt A, 10s start B, 15s preempt B, 15s start A, 35s finish A, 35s start B, 36s finish B")
	}
	// A quarter of a GPU needs four times the limit.
	jobs = []traces.Job{whole("A", 0, 60*second, 1), whole("B", second, 6*second, 1)}
	jobs[0].GPUMilli = 250
	for _, order := range []string{"las-2d-prompt", "las-2d"} {
		h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Limits = order, []time.Duration{10 * second} })
		check(t, order, events(t, cluster.Spec{Pool: 1}, jobs, h),
			"0s start A, 40s preempt A, 40s start B, 46s finish B, 46s start A, 1m6s finish A")
	}
}

// A job that falls in the pass that stops it goes behind the jobs that wait in its new queue.
func TestLASFallenAndStoppedGoesToTheBack(t *testing.T) {
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Limits = "las", []time.Duration{10 * second} })
	// A falls at 10 and is stopped for B; C, from 15 on, makes B wait at the fall of B at 20. Then A was there first.
	got := simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 1}, []traces.Job{
		whole("A", 0, 30*second, 1), whole("B", 5*second, 30*second, 1), whole("C", 15*second, 5*second, 1)}, h)
	for i, want := range []string{"20s preempt B", "20s start C", "25s finish C", "25s start A", "45s finish A",
		"45s start B", "1m5s finish B"} {
		at := strings.Index(got, want)
		if at < 0 {
			t.Fatalf("event %d, %q, is missing in\n%s", i, want, got)
		}
		got = got[at:]
	}
}

func TestAdmissionByHand(t *testing.T) {
	// Four GPUs: A holds three until 10. B wants two, C one, D one and is shorter.
	jobs := []traces.Job{whole("A", 0, 10*second, 3), whole("B", second, 10*second, 2), whole("C", 2*second, 5*second, 1),
		whole("D", 2*second, 4*second, 1)}
	for name, want := range map[string]string{
		"fifo+strict":     "A0s B10s C10s D10s",
		"fifo+skip":       "A0s C2s D7s B10s",
		"sjf+strict":      "A0s D2s C6s B10s", // B is no shorter than C and D, so it blocks no job
		"sjf+skip":        "A0s D2s C6s B10s",
		"smallest+strict": "A0s C2s D7s B10s",
		"area+strict":     "A0s D2s C6s B10s",
	} {
		order, admission, _ := strings.Cut(name, "+")
		h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Admission = order, admission })
		if h.Name() != name {
			t.Errorf("its name is %s, want %s", h.Name(), name)
		}
		var starts []string
		for _, line := range strings.Split(simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 4}, jobs, h), "\n") {
			if f := strings.Fields(line); len(f) > 2 && f[1] == "start" {
				starts = append(starts, f[2]+f[0])
			}
		}
		if got := strings.Join(starts, " "); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestDefaultAdmissionIsTheOrders(t *testing.T) {
	for _, order := range schedulers.Orders() {
		if !schedulers.IsOrder(order) {
			continue
		}
		want := order + "+strict"
		if schedulers.Preemptive(order) {
			want = order + "+skip"
		}
		if got := scheduler(t, func(c *schedulers.Config) { c.Order = order }).Name(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if schedulers.Preemptive("no such order") {
		t.Error("an unknown order preempts")
	}
}

func TestConfigFaults(t *testing.T) {
	bad := schedulers.Config{Order: "lucky", Admission: "lenient", Placement: "anywhere",
		Levels: attained.Levels{Limits: []time.Duration{2, 2}, Quantum: 1}}
	var keys []string
	for _, f := range fault.All(bad.Validate()) {
		keys = append(keys, f.Key)
	}
	if got := fmt.Sprint(keys); got != "[order admission placement estimates limits]" {
		t.Errorf("faults of %s", got)
	}
	if _, err := schedulers.New(bad); err == nil {
		t.Error("New takes it")
	}
	good := schedulers.DefaultConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	good.Limits = make([]time.Duration, 8)
	for i := range good.Limits {
		good.Limits[i] = time.Duration(i + 1)
	}
	if good.Validate() == nil {
		t.Error("8 limits are more than ranks hold")
	}
}

// Invalid combinations are rejected, and the error says what would be right.
func TestAdmissionFaults(t *testing.T) {
	for name, want := range map[string]string{
		"fifo+skip+easy":           `backfill: got "easy", want none with admission skip, which passes over what does not fit; easy goes with strict and commit`,
		"fifo+skip+conservative":   `backfill: got "conservative", want none with admission skip; conservative goes with strict`,
		"fifo+commit+conservative": `backfill: got "conservative", want none with admission commit; conservative goes with strict`,
		"srtf+commit":              `admission: got "commit", want strict or skip: srtf stops running jobs`,
		"srtf+skip+easy":           `backfill: got "easy", want none: srtf stops running jobs`,
		"lpf+commit":               `admission: got "commit", want strict: lpf has a pass of its own`,
		"lpf+strict+easy":          `backfill: got "easy", want none: lpf has a pass of its own`,
		"fifo+strict+eazy":         `backfill: got "eazy", want none, easy or conservative`,
		"exact+strict":             `admission: got "strict", want none: exact has its own`,
		"fifo+strict+easy":         "",
		"fifo+commit+easy":         "",
		"sjf+strict+conservative":  "",
	} {
		cfg := schedulers.DefaultConfig()
		called(name)(&cfg)
		err := cfg.Validate()
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		if err == nil && cfg.Name() != name {
			t.Errorf("%s is called %s", name, cfg.Name())
		}
	}
	cfg := schedulers.DefaultConfig()
	called("fifo+strict+easy")(&cfg)
	if !cfg.Estimating() || schedulers.Estimating("fifo") {
		t.Error("back-filling needs estimates, the order alone does not")
	}
}

func TestTraceEstimates(t *testing.T) {
	jobs := []traces.Job{whole("A", 0, 10*second, 1), whole("long", 0, 9*second, 1), whole("short", 0, 8*second, 1)}
	jobs[0].Estimate, jobs[1].Estimate, jobs[2].Estimate = second, 2*second, 3*second
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Estimates = "sjf", sim.MustEstimates("trace") })
	got := simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 1}, jobs, h)
	if !strings.Contains(got, "10s start long") || !strings.Contains(got, "19s start short") {
		t.Errorf("the trace's estimates do not decide:\n%s", got)
	}

	// Without an estimate the error names the job, both at arrival and for jobs that wait when the scheduler takes
	// over.
	jobs[1].Estimate = 0
	for _, at := range []time.Duration{0, 5 * second} {
		jobs[1].Submit, jobs[2].Submit = at, at
		s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		if at == 0 {
			p, err := s.Advance(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			h.Reset(s.View())
			var d sim.Decision
			err = h.Decide(s.View(), &sim.Point{Now: p.Now}, &d)
			if err == nil || !strings.Contains(err.Error(), "job long") {
				t.Errorf("taking over: %v", err)
			}
			continue
		}
		if err := sim.Run(context.Background(), s, h); err == nil || !strings.Contains(err.Error(), "job long") {
			t.Errorf("at arrival: %v", err)
		}
	}
}

func TestNoiseDependsOnSeedAndJobAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var jobs []traces.Job
	for i := range 40 {
		jobs = append(jobs, whole(fmt.Sprint("j", i), 0, time.Duration(50+r.IntN(50))*second, 1))
	}
	order := func(seed uint64) string {
		h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Estimates = "sjf", sim.MustEstimates("noisy:1") })
		h.Reseed(seed)
		return simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 1}, jobs, h)
	}
	if order(1) != order(1) || order(1) == order(2) {
		t.Error("noise must follow the seed")
	}
}

// Other code may stop jobs; they wait again from the next point on.
func TestStoppedByOthers(t *testing.T) {
	for _, name := range append([]string{"fifo+strict", "sjf+skip", "srtf+skip", "las+skip"}, backfilling...) {
		for _, on := range []string{"pool:4", "2x2"} {
			t.Run(name+"/"+on, func(t *testing.T) {
				r := rand.New(rand.NewPCG(9, 9))
				spec, _, err := cluster.Parse(on)
				if err != nil {
					t.Fatal(err)
				}
				var jobs []traces.Job
				for i := range 150 {
					jobs = append(jobs,
						whole(fmt.Sprint("j", i), time.Duration(i)*10*second, time.Duration(1+r.IntN(60))*second, 1+r.IntN(3)))
				}
				s, err := sim.New(sim.DefaultConfig(), spec)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
					t.Fatal(err)
				}
				v, h, stopped := s.View(), scheduler(t, called(name)), 0
				h.Reset(v)
				for !v.Over() {
					p, err := s.Advance(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					if run := v.Running(); !v.Over() && len(run) > 0 && r.IntN(6) == 0 {
						if err := s.Apply(&sim.Decision{Op: sim.PreemptJob, Job: run[r.IntN(len(run))]}); err == nil {
							stopped++
						}
					}
					for !v.Over() {
						var d sim.Decision
						if err := h.Decide(v, p, &d); err != nil {
							t.Fatal(err)
						}
						if d.Op == sim.Wait && !v.CanWait() {
							d.Until = v.Now() + second // a stopped job cannot start before the next point
						}
						if err := s.Apply(&d); err != nil {
							t.Fatalf("%+v: %v", d, err)
						}
						if d.Op == sim.Wait {
							break
						}
					}
				}
				if v.Ended() != len(jobs) || stopped < 5 {
					t.Errorf("%d of %d jobs ended, %d stopped by others", v.Ended(), len(jobs), stopped)
				}
			})
		}
	}
}

var firstFit, _ = cluster.NewPlacement("first-fit")

// backfilling are policies that back-fill or commit, by their names.
var backfilling = []string{"fifo+strict+easy", "wfp3+strict+easy", "sjf+strict+conservative", "sjf+commit",
	"fifo+commit+easy", "wfp3+commit+easy"}

// called sets the configuration that the name of a policy stands for.
func called(name string) func(c *schedulers.Config) {
	return func(c *schedulers.Config) {
		part := strings.Split(name, "+")
		c.Order, c.Admission = part[0], part[1]
		if len(part) > 2 {
			c.Backfill = part[2]
		}
	}
}

// Other code may start or drop jobs at a point; the scheduler continues with the rest.
func TestOthersMayDecideToo(t *testing.T) {
	for _, name := range append([]string{"fifo+skip", "sjf+skip", "srtf+skip", "las+skip"}, backfilling...) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(4, 4))
			var jobs []traces.Job
			for i := range 200 {
				jobs = append(jobs,
					whole(fmt.Sprint("j", i), time.Duration(i)*10*second, time.Duration(1+r.IntN(60))*second, 1+r.IntN(3)))
			}
			spec := cluster.Spec{Pool: 4}
			if r.IntN(2) == 0 || strings.Contains(name, "wfp3") {
				spec = cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}}
			}
			s, err := sim.New(sim.DefaultConfig(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			v := s.View()
			h := scheduler(t, called(name))
			h.Reset(v)
			meddled := 0
			for !v.Over() {
				p, err := s.Advance(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if v.Over() {
					break
				}
				if w := v.Waiting(); len(w) > 0 && r.IntN(3) == 0 {
					d := sim.Decision{Op: sim.StartJob, Job: w[r.IntN(len(w))]}
					if !v.Cluster().Pool() {
						d.GPUs, _ = firstFit.Place(v.Cluster(), v.Request(d.Job), nil)
					}
					if r.IntN(2) == 0 {
						d.Op = sim.DropJob
					}
					if err := s.Apply(&d); err == nil {
						meddled++
					} else if !errors.Is(err, cluster.ErrNoCapacity) && len(d.GPUs) > 0 {
						t.Fatal(err)
					}
				}
				var d sim.Decision
				if err := sim.Decide(s, h, p, &d, nil); err != nil {
					t.Fatalf("%+v: %v", d, err)
				}
				// A job that waits although it fits would be one that the scheduler has lost.
				for _, j := range v.Waiting() {
					if v.Fits(j) && (name == "fifo+skip" || name == "sjf+skip") {
						t.Fatalf("job %s fits and waits", v.Trace(j).ID)
					}
				}
			}
			if v.Ended() != len(jobs) || meddled < 20 {
				t.Errorf("%d of %d jobs ended, %d decisions of others", v.Ended(), len(jobs), meddled)
			}
		})
	}
}

// A scheduler that takes over in the middle of a run, at a point whose events it then also sees, knows every waiting
// and running job exactly once.
func TestTakingOver(t *testing.T) {
	names := slices.Clone(backfilling)
	for _, order := range schedulers.Orders() {
		if schedulers.IsOrder(order) {
			names = append(names, order+"+")
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 5))
			spec, jobs := drawn(r, 60)
			s, err := sim.New(sim.DefaultConfig(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			v := s.View()
			var h schedulers.Policy
			for n := 0; !v.Over(); n++ {
				p, err := s.Advance(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if v.Over() {
					break
				}
				if n%10 == 0 {
					h = scheduler(t, called([]string{name, "smallest+"}[n/10%2]))
					h.Reset(v)
				}
				var d sim.Decision
				if err := sim.Decide(s, h, p, &d, nil); err != nil {
					t.Fatalf("%+v: %v", d, err)
				}
			}
			if v.Ended() != v.Arrived() {
				t.Errorf("%d of %d jobs ended", v.Ended(), v.Arrived())
			}
		})
	}
}
