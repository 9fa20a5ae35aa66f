package jobselect_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/sim"
)

// walker plays one episode after the other with random legal actions.
type walker struct {
	e     *sched.Env
	ts    *env.TimeStep
	r     *rand.Rand
	disc  [1]int32
	seed  uint64
	n     uint64 // number of seeds, which repeat
	steps int
}

func newWalker(t testing.TB, cfg jobselect.Config, episodes uint64) *walker {
	e := newEnv(t, cfg, topdrl(), philly(t, 20_000))
	w := &walker{e: e, ts: env.NewTimeStep(e.Spec()), r: rand.New(rand.NewPCG(1, 1)), n: episodes}
	w.ts.Kind = env.Terminated
	return w
}

func (w *walker) reset(t testing.TB) {
	if err := w.e.Reset(ctx, env.Episode{Seed: w.seed % w.n, Window: -1}, w.ts); err != nil {
		t.Fatal(err)
	}
	w.seed++
}

// one is a step, or the reset before an episode's first.
func (w *walker) one(t testing.TB) {
	if w.ts.Kind.Last() {
		w.reset(t)
	}
	w.disc[0] = int32(anyLegal(w.r, w.ts.Mask))
	if err := w.e.Step(ctx, env.Action{Disc: w.disc[:]}, w.ts); err != nil {
		t.Fatal(err)
	}
	w.steps++
}

// fewest returns the least number of allocations of three calls of f: the count is that of the whole program, to which
// the runtime adds one now and then, and never thrice in a row.
func fewest(f func()) float64 {
	n := testing.AllocsPerRun(1, f)
	for range 2 {
		if n > 0 {
			n = min(n, testing.AllocsPerRun(1, f))
		}
	}
	return n
}

// In steady state neither a step, its observation included, nor a reset allocates.
func TestStepsAndResetsAllocateNothing(t *testing.T) {
	if checked {
		t.Skip("checking the books after every change allocates")
	}
	for _, x := range [][2]string{{"exact", ""}, {"exact", "sjf"}, {"history", ""}, {"history", "sjf"}} {
		cfg := jobselect.DefaultConfig()
		cfg.Estimates, cfg.Relative, cfg.Running = sim.MustEstimates(x[0]), x[1], 6
		w := newWalker(t, cfg, 3)
		for w.seed < 7 { // twice through all episodes
			w.one(t)
		}
		for !w.ts.Kind.Last() {
			w.one(t)
		}
		w.reset(t)
		many := func(n int, f func(testing.TB)) func() { // a mean is rounded down
			return func() {
				for range n {
					f(t)
				}
			}
		}
		if n := fewest(many(100, w.one)); n != 0 || w.ts.Kind.Last() {
			t.Errorf("estimates and baseline %q: %v allocations in 100 steps", x, n)
		}
		if n := fewest(many(6, w.reset)); n != 0 {
			t.Errorf("estimates and baseline %q: %v allocations in 6 resets", x, n)
		}
	}
}

// BenchmarkStep is random legal play over generated Philly windows, resets included, on one core.
func BenchmarkStep(b *testing.B) {
	for _, x := range []struct {
		name   string
		change func(c *jobselect.Config)
	}{
		{"default", func(*jobselect.Config) {}},
		{"relative", func(c *jobselect.Config) { c.Relative = "fifo" }},
		{"oldest", func(c *jobselect.Config) { c.Slots = "oldest" }},
		{"noisy", func(c *jobselect.Config) { c.Estimates = sim.MustEstimates("noisy:0.5") }},
		{"running", func(c *jobselect.Config) { c.Running = 16 }},
		{"tables", func(c *jobselect.Config) { c.Running, c.Images = 16, false }},
		{"preempt", func(c *jobselect.Config) { c.Running, c.Images, c.Preempt = 16, false, true }},
	} {
		b.Run(x.name, func(b *testing.B) {
			cfg := jobselect.DefaultConfig()
			x.change(&cfg)
			w := newWalker(b, cfg, 64)
			for w.seed < 2 {
				w.one(b)
			}
			w.steps = 0
			b.ReportAllocs()
			for b.Loop() {
				w.one(b)
			}
			b.ReportMetric(float64(w.steps)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// BenchmarkReset is the cost of a new episode: drawing the window, the warm-up, the first observation.
func BenchmarkReset(b *testing.B) {
	for _, warm := range []int{0, 256} {
		b.Run(fmt.Sprint("warm ", warm), func(b *testing.B) {
			cfg := jobselect.DefaultConfig()
			cfg.Warm = warm
			w := newWalker(b, cfg, 64)
			w.reset(b)
			b.ReportAllocs()
			for b.Loop() {
				w.reset(b)
			}
		})
	}
}
