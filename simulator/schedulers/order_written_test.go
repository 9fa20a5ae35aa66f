package schedulers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// natives are orders of this package, and the same written out.
var natives = []struct{ native, written string }{
	{"fifo", "key: wait < 0 ? 0 : -wait"},
	{"fifo", "key: -wait"},
	{"fifo", "key: position"},
	{"sjf", "key: estimate"},
	{"ljf", "long = key: -estimate"},
	{"smallest", "key: gpus"},
	{"wfp3", "key: -(wait / estimate) ** 3 * gpus"},
	{"multifactor", "key: 1000 * submit / 3600 / 12 + 1000 * gpus / total_gpus"},
	{"srtf", "key: left; stop if: true"},
	{"smallest-preempt", "key: gpus; stop if: running"},
}

// A written order decides as the order of this package with its formula, whatever the cluster, workload, admission and
// back-filling.
func TestWrittenOrdersDecideAsTheirFormulas(t *testing.T) {
	if raced.On {
		t.Skip("a policy is one goroutine")
	}
	for _, n := range natives {
		t.Run(n.written, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				x := drawWorld(t, wants{order: n.native, most: 16})
				want := x.played(t, history{})
				x.policy.Order = n.written
				if got := x.played(t, history{}); got != want {
					t.Fatalf("as %s:\n%s\n%s", n.native, diff(got, want), x)
				}
			})
		})
	}
}

// Orders that look at what waits and runs, or stop jobs, keep every promise of their admission and back-filling.
func TestWrittenOrdersKeepPromises(t *testing.T) {
	if raced.On {
		t.Skip("a policy is one goroutine")
	}
	for _, order := range []string{
		"key: user_gpus - wait / 100", "key: free_gpus > gpus ? estimate : -waiting_gpus * estimate",
		"key: attained + (running ? -1 : 0) * gpus; stop if: true",
	} {
		t.Run(order, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { drawWorld(t, wants{order: order}).watched(t) })
		})
	}
}

// conditions checks that jobs start and stop only as their order's conditions allow.
type conditions struct {
	start, stop func(v *sim.View, j sim.Job) bool
	err         error
}

// decided wraps a policy.
type decided struct {
	schedulers.Policy
	c *conditions
}

func (d decided) Decide(v *sim.View, p *sim.Point, dec *sim.Decision) error {
	runs := len(v.Running())
	err := d.Policy.Decide(v, p, dec)
	switch {
	case err != nil || d.c.err != nil:
	case dec.Op == sim.StartJob && runs > 0 && !d.c.start(v, dec.Job):
		d.c.err = fmt.Errorf("at %v job %s starts", v.Now(), v.Trace(dec.Job).ID)
	case dec.Op == sim.PreemptJob && !d.c.stop(v, dec.Job):
		d.c.err = fmt.Errorf("at %v job %s is stopped", v.Now(), v.Trace(dec.Job).ID)
	}
	return err
}

// No job starts that start if holds back, unless none runs, and none is stopped that stop if keeps. Every job ends.
func TestConditionsHold(t *testing.T) {
	if raced.On {
		t.Skip("a policy is one goroutine")
	}
	for _, order := range []string{"key: estimate; start if: gpus < 2 or wait >= 5",
		"key: gpus; start if: position % 3 < 2",
		"key: estimate; start if: user_gpus < 2", "key: left; start if: gpus < 2 or wait >= 5; stop if: ran >= 3",
		"key: -gpus; stop if: position % 2 == 0"} {
		t.Run(order, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				x := drawWorld(t, wants{order: order, way: &how{admission: one(t, []string{"strict", "skip"}, "admission"),
					backfill: "none"}})
				user := func(v *sim.View, j sim.Job) (n int) {
					for _, k := range v.Running() {
						if v.Trace(k).User == v.Trace(j).User {
							n += v.Request(k).GPUs * v.Request(k).Milli
						}
					}
					return n
				}
				c := &conditions{
					start: func(v *sim.View, j sim.Job) bool {
						small := v.Request(j).GPUs*v.Request(j).Milli < 2000
						switch {
						case strings.Contains(order, "wait >= 5"):
							return small || v.Now()-v.Trace(j).Submit >= 5*second
						case strings.Contains(order, "position % 3"):
							return v.Pos(j)%3 < 2
						case strings.Contains(order, "user_gpus"):
							return user(v, j) < 2000
						}
						return true
					},
					stop: func(v *sim.View, j sim.Job) bool {
						if strings.Contains(order, "ran >= 3") {
							return v.Ran(j) >= 3*second
						}
						return strings.Contains(order, "position % 2") && v.Pos(j)%2 == 0
					},
				}
				s, h := x.machine(t)
				x.playOn(t, s, decided{h, c}, &history{})
				if c.err != nil && len(x.spec.VCs) == 0 {
					t.Fatalf("%v\n%s", c.err, x)
				}
			})
		})
	}
}

// Four GPUs. A holds three until 10 s; B of one is held back until something else ends, C starts at once; at 20 s
// nothing runs, so B starts although it is held back.
func TestStartIfByHand(t *testing.T) {
	jobs := []traces.Job{whole("A", 0, 10*second, 3), whole("B", second, 5*second, 1), whole("C", 2*second,
		18*second, 1)}
	for admission, want := range map[string]string{
		"skip":   "0s start A, 2s start C, 10s finish A, 20s finish C, 20s start B, 25s finish B",
		"strict": "0s start A, 2s start C, 10s finish A, 20s finish C, 20s start B, 25s finish B",
	} {
		h := scheduler(t, func(c *schedulers.Config) {
			c.Order, c.Admission = "key: position; start if: position != 1", admission
		})
		check(t, admission, events(t, cluster.Spec{Pool: 4}, jobs, h), want)
	}
}

// One GPU. A is stopped for the shorter B only after it has run for 5 s, when C comes.
func TestStopIfByHand(t *testing.T) {
	jobs := []traces.Job{whole("A", 0, 20*second, 1), whole("B", 2*second, 3*second, 1), whole("C", 6*second,
		9*second, 1)}
	h := scheduler(t, func(c *schedulers.Config) { c.Order = "key: estimate; stop if: ran > 5" })
	check(t, "stop if", events(t, cluster.Spec{Pool: 1}, jobs, h),
		"0s start A, 6s preempt A, 6s start B, 9s finish B, 9s start C, 18s finish C, 18s start A, 32s finish A")
}

// A run ends with the first key that is not a number.
func TestAKeyThatIsNoNumberEndsTheRun(t *testing.T) {
	h := scheduler(t, func(c *schedulers.Config) { c.Order = "key: log(5 - wait)" })
	m, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Reset(&traces.Slice{Jobs: []traces.Job{whole("A", 0, 20*second, 1), whole("B", second, second,
		1)}}); err != nil {
		t.Fatal(err)
	}
	err = sim.Run(context.Background(), m, h)
	const want = "at 20s the key of job B is not a number: log(5 - wait) with wait = 19; want one for every job"
	if err == nil || !strings.Contains(err.Error(), want) || !fault.IsMistake(err) {
		t.Errorf("the run ends with %v, want %s", err, want)
	}
}

func TestWrittenOrdersThatCannotPlay(t *testing.T) {
	for _, c := range []struct {
		order, admission, backfill, estimates, want string
	}{
		{"key: waitt", "", "", "exact",
			`order: got "key: waitt", want an expression that can be computed: key: column 1: ` +
				`"waitt" is unknown; use wait`},
		{"sjf = key: wait", "", "", "exact", "sjf is the name of another order; choose another one, such as my-sjf"},
		{"key: run_time", "", "", "history",
			`estimates: got "history", want exact, as key: run_time looks at run_time, which ` +
				`only that rung knows; or estimate in its place, what is known of the run time on every rung but none`},
		{"key: gpus; start if: run_time > 5", "", "", "trace", "which only that rung knows"},
		{"key: estimate", "", "", "none",
			`estimates: got "none", want trace, history, gbdt, exact or noisy:SIGMA, as order ` +
				`key: estimate ranks by run times`},
		{"key: left; stop if: true", "commit", "", "exact", "strict or skip: key: left; stop if: true stops running jobs"},
		{"key: gpus; start if: gpus < 2", "", "easy", "exact", "none: a job that start if holds back gets no reservation"},
		{"key: gpus; start if: gpus < 2", "commit", "", "exact", "strict or skip: start if holds jobs back"},
	} {
		cfg := schedulers.DefaultConfig()
		cfg.Order, cfg.Admission, cfg.Backfill, cfg.Estimates = c.order, c.admission, c.backfill,
			sim.MustEstimates(c.estimates)
		if _, err := schedulers.New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s on %s: %v, want %s", c.order, c.admission+c.backfill, c.estimates, err, c.want)
		}
	}
	for name, want := range map[string]string{
		"key: gpus+skip+easy": "none with admission skip", "key: user": "it is a text",
		"key: estimate@slots": "leave @slots out",
	} {
		if _, err := schedulers.Names().Resolve(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// Written orders have names as others do, and look at nothing but the state of the run.
func TestWrittenOrdersAreOrders(t *testing.T) {
	for name, want := range map[string]string{
		"key: estimate": "key: estimate+strict", "key: estimate+easy": "key: estimate+strict+easy",
		"key: left; stop if: true": "key: left; stop if: true+skip", "a = key: wait+skip": "a = key: wait+skip",
	} {
		c, err := schedulers.Parse(name)
		if err != nil || c.Name() != want {
			t.Errorf("%s is called %s (%v), want %s", name, c.Name(), err, want)
		}
		if again, err := schedulers.Parse(c.Name()); err != nil || again.Name() != want {
			t.Errorf("%s is read back as %s (%v)", want, again.Name(), err)
		}
	}
	c := schedulers.DefaultConfig()
	c.Order = "a = key: wait; start if: gpus < 2"
	if why := c.Forgets(); why != "" {
		t.Errorf("it remembers: %s", why)
	}
	if got := c.Line().Order; got != "a = key: wait" {
		t.Errorf("its line is %s", got)
	}
}

func TestWrittenOrdersRankSingleJobs(t *testing.T) {
	m, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Reset(&traces.Slice{Jobs: []traces.Job{whole("A", 0, 20*second, 1)}})); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Advance(context.Background()); err != nil {
		t.Fatal(err)
	}
	exact := sim.Estimates{Mode: sim.EstimateExact}
	r, err := schedulers.NewRanker("key: estimate * 3 + log(wait - 1)", exact)
	if err != nil {
		t.Fatal(err)
	}
	if r.Key(m.View(), 0); r.Err() == nil {
		t.Error("a key that is not a number is no error")
	}
	if r.Err() != nil {
		t.Error("the error is returned twice")
	}
	for order, want := range map[string]string{
		"key: free_gpus": "looks at what waits and runs", "key: 1; stop if: true": "it stops jobs",
		"key: 1; start if: true": "holds jobs back", "key: x": "is unknown; use one of wait, ",
		"key: run_time": `estimates: got "history", want exact`,
	} {
		if _, err := schedulers.NewRanker(order, sim.MustEstimates("history")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", order, err, want)
		}
	}
}

// BenchmarkWrittenOrders is each order of this package and the same written out: the second is to simulate at least a
// fifth as many jobs in a second.
func BenchmarkWrittenOrders(b *testing.B) {
	jobs := generated(10_000)
	for _, n := range []struct{ native, written, admission string }{
		{"sjf", "key: estimate", "skip"}, {"fifo", "key: position", "strict"},
		{"multifactor", "key: 1000 * submit / 3600 / 12 + 1000 * gpus / total_gpus", "skip"},
		{"wfp3", "key: -(wait / estimate) ** 3 * gpus", "skip"},
		{"srtf", "key: left; stop if: true", "skip"},
	} {
		for _, order := range []string{n.native, n.written} {
			b.Run(order+"+"+n.admission, func(b *testing.B) {
				play(b, "pool:256", jobs, func(k *schedulers.Config) { k.Order, k.Admission = order, n.admission })
			})
		}
	}
	b.Run("fifo by the clock", func(b *testing.B) {
		play(b, "pool:256", jobs, func(k *schedulers.Config) { k.Order = "key: wait < 0 ? 0 : -wait" })
	})
}
