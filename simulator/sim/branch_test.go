package sim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/raced"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// numbers is lines, with the numbers of jobs.
type numbers struct{ b strings.Builder }

func (n *numbers) Observe(v *sim.View, p *sim.Point) error {
	fmt.Fprintf(&n.b, "%v %v %v %v\n", *p, v.Waiting(), v.Running(), v.Cluster().FreeMilli())
	for _, j := range v.Running() {
		fmt.Fprintf(&n.b, " %v %v %v %v;", v.Left(j), v.Rate(j), v.Finished(j), v.GPUTime(j))
	}
	return nil
}

// toCome returns the jobs that fit and have not arrived.
func toCome(t fatal, v *sim.View, jobs []traces.Job) (rest []traces.Job) {
	c, err := cluster.New(v.Cluster().Spec())
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		if _, ok := c.Request(&jobs[i]); ok {
			rest = append(rest, jobs[i])
		}
	}
	return rest[v.Arrived():]
}

func forkOf(t fatal, s *sim.Simulator) *sim.Simulator {
	t.Helper()
	fork, err := s.View().Fork()
	if err != nil {
		t.Fatal(err)
	}
	return fork
}

// A fork with the true future continues like the original, byte for byte, however often and whatever else it was used
// for before; the original does not notice.
func TestATwinWithTheTrueFutureContinuesLikeTheOriginal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		stop := rapid.IntRange(0, 150).Draw(t, "decisions before")
		r := rand.New(rand.NewPCG(seed, 31))
		spec, cfg := richSpec(r), richConfig(r, second)
		if r.IntN(4) == 0 {
			spec, cfg.Failures.MTBF = short(t, "pool:9"), 0
		}
		jobs := rich(r, 40, 4, second)
		s := start(t, cfg, spec, jobs)
		c := newChaos(t, r)
		c.legal, c.moves = true, true
		open := c.until(t, s, stop)
		if spec.Pool == 0 && r.IntN(2) == 0 {
			_ = s.View().OnNode(0)
		}
		before := s.AppendSnapshot(nil)
		fork := forkOf(t, s)
		truth := sim.Future{Jobs: toCome(t, s.View(), jobs), SameFailures: true}
		run := func(one *sim.Simulator, seed uint64) string {
			var log numbers
			c := newChaos(t, rand.New(rand.NewPCG(seed, 4)))
			c.legal, c.moves = true, true
			if open {
				c.play(t, one)
			}
			runChaos(t, one, c, &log)
			return log.b.String()
		}
		for k, f := range []sim.Future{{Jobs: rich(r, 0, 4, second), Seed: 5},
			{Jobs: later(rich(r, 30, 4, second), s.View().Now()), Seed: 6}, truth} {
			left := make([]float64, 60)
			for i := range left {
				left[i] = float64(r.IntN(100)) * 1e9
			}
			if k < 2 {
				f.Left = left
			}
			fork.CopyFrom(s.View(), &f)
			if err := fork.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
			if k < 2 {
				for _, j := range slices.Concat(fork.View().Waiting(), fork.View().Running()) {
					if left[j] > 0 && fork.View().Left(j) != left[j] {
						t.Fatalf("job %d has %v left, want %v", j, fork.View().Left(j), left[j])
					}
				}
				run(fork, seed+uint64(k))
			}
			if !bytes.Equal(before, s.AppendSnapshot(nil)) {
				t.Fatal("the original has changed")
			}
		}
		a := run(fork, seed)
		if b := run(s, seed); a != b {
			t.Fatalf("the fork:\n%s\nthe original:\n%s", a, b)
		}
	})
}

// later returns jobs that are submitted d later.
func later(jobs []traces.Job, d time.Duration) []traces.Job {
	for i := range jobs {
		jobs[i].Submit += d
	}
	return jobs
}

// What happens in a fork follows from the past, its Future and nothing else: not from jobs that arrive later, from the
// run times of those in the system where the Future gives them, or from when nodes will fail.
func TestATwinKnowsNothingOfTheRealFuture(t *testing.T) {
	raced.Alone(t)
	for k := range uint64(60) {
		seed := testseed.Or(3) + k
		r := rand.New(rand.NewPCG(seed, 32))
		spec, cfg := richSpec(r), richConfig(r, second)
		cfg.Failures = sim.Failures{MTBF: 400 * second, MTTR: 60 * second}
		cfg.Checkpoint = 0 // what is lost since the last one is a difference of floats as large as the work
		jobs := rich(r, 40, 4, second)
		stop := 20 + r.IntN(100)
		run := func(jobs []traces.Job, f *sim.Future) (string, *sim.View) {
			s := start(t, cfg, spec, jobs)
			c := newChaos(t, rand.New(rand.NewPCG(seed, 33)))
			c.legal, c.moves, c.stops = true, true, 10
			open := c.until(t, s, stop)
			fork := forkOf(t, s)
			if f.Jobs == nil {
				f.Jobs = later(rich(r, 30, 4, second), s.View().Now())
			}
			fork.CopyFrom(s.View(), f)
			var log numbers
			c = newChaos(t, rand.New(rand.NewPCG(seed, 34)))
			c.legal, c.moves = true, true
			if open {
				c.play(t, fork)
			}
			runChaos(t, fork, c, &log)
			return log.b.String(), s.View()
		}
		f := sim.Future{Seed: seed, Left: make([]float64, 60)}
		for i := range f.Left {
			f.Left[i] = float64(1+r.IntN(100)) * 1e9
		}
		want, v := run(jobs, &f)
		arrived, live := v.Arrived(), map[int]bool{}
		for _, j := range slices.Concat(v.Waiting(), v.Running()) {
			live[v.Pos(j)] = true
		}
		other, pos := slices.Clone(jobs), 0
		c, err := cluster.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		for i := range other {
			_, ok := c.Request(&other[i])
			switch {
			case ok && pos >= arrived:
				other[i].Work, other[i].User = 7*second, "another"
			case ok && live[pos]:
				other[i].Work += 1000 * time.Hour
			}
			if ok {
				pos++
			}
		}
		if got, _ := run(other, &f); got != want {
			t.Fatalf("seed %d: with another real future:\n%s\nwant:\n%s", seed, got, want)
		}
		again := f
		again.Seed++
		if got, _ := run(jobs, &again); got == want && strings.Contains(want, "node-fail") {
			t.Errorf("seed %d: the seed of failures changes nothing", seed)
		}
	}
}

// Jobs that arrive in a fork have the forecasts of its future, those in the system have theirs; there is no predictor
// that could learn.
func TestForecastsInATwin(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Predictor = history.NewArchive(nil)
	jobs := []traces.Job{job("A", 0, 10*second, 1), job("B", second, 5*second, 2), job("C", 3*second, second, 1)}
	s := start(t, cfg, short(t, "1x2"), jobs)
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []gpu{0}})
	advance(t, s)
	fork := forkOf(t, s)
	told := predict.Forecast{Q: [predict.Quantiles]time.Duration{1, 2, 3, 4, 5}, Seen: 9}
	f := sim.Future{Jobs: []traces.Job{job("huge", second, second, 3), job("X", 2*second, second, 1)},
		Forecasts: []predict.Forecast{{}, told}}
	fork.CopyFrom(s.View(), &f)
	v := fork.View()
	for _, j := range []sim.Job{0, 1} {
		if *v.Forecast(j) != *s.View().Forecast(j) {
			t.Errorf("job %d: %v, want %v", j, *v.Forecast(j), *s.View().Forecast(j))
		}
	}
	p := advance(t, fork)
	if x := p.Events[0].Job; text(v, p) != "2s: submit X" || *v.Forecast(x) != told {
		t.Errorf("%s, forecast %v", text(v, p), *v.Forecast(x))
	}
	if user, vc := v.Past(0); user != (predict.Past{}) || vc != (predict.Past{}) {
		t.Errorf("the past is %v, %v", user, vc)
	}
	est := sim.Estimates{Mode: sim.EstimateHistory}
	if err := est.Check(v, 0); err != nil {
		t.Error(err)
	}
	if err := fork.Reset(stream(jobs)); err == nil {
		t.Error("a fork can be reset")
	}
	if err := fork.RestoreSnapshot(s.AppendSnapshot(nil), stream(jobs)); err == nil {
		t.Error("a snapshot can be restored in a fork")
	}
}

// busy returns a run of live jobs, a fifth of which run, with a future.
func busyRun(t fatal, live int) (*sim.Simulator, *sim.Future) {
	r := rand.New(rand.NewPCG(1, 35))
	jobs := make([]traces.Job, live)
	for i := range jobs {
		jobs[i] = job("", 0, time.Duration(100+r.IntN(10000))*second, 1)
	}
	s := start(t, sim.DefaultConfig(), short(t, fmt.Sprintf("%dx8", max(1, live/40))), jobs)
	p := advance(t, s)
	g := newGreedy(t, "first-fit")
	var d sim.Decision
	if err := sim.Decide(s, g, p, &d, nil); err != nil {
		t.Fatal(err)
	}
	f := &sim.Future{Jobs: make([]traces.Job, 64)}
	for i := range f.Jobs {
		f.Jobs[i] = job("", time.Duration(1+i)*second, time.Duration(1+r.IntN(1000))*second, 1)
	}
	f.Left = make([]float64, live)
	for i := range f.Left {
		f.Left[i] = float64(1+r.IntN(10000)) * 1e9
	}
	return s, f
}

func TestACopyAllocatesNothing(t *testing.T) {
	if checked {
		t.Skip("checking the books after every change allocates")
	}
	s, f := busyRun(t, 200)
	fork := forkOf(t, s)
	g := newGreedy(t, "first-fit")
	run := func() {
		fork.CopyFrom(s.View(), f)
		for {
			p, err := fork.Advance(ctx)
			if ended(t, err) {
				return
			}
			if fork.View().Over() {
				continue
			}
			if err := sim.Decide(fork, g, p, &decision, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(5, run); n != 0 {
		t.Errorf("%v allocations in a copy and its run", n)
	}
}

// A copy of a run of 1,000 jobs in the system, 200 of which run, on 200 GPUs.
func BenchmarkCopy(b *testing.B) {
	s, f := busyRun(b, 1000)
	fork := forkOf(b, s)
	for _, name := range []string{"same", "redrawn"} {
		b.Run(name, func(b *testing.B) {
			g := *f
			if name == "same" {
				g.Left = nil
			}
			b.ReportAllocs()
			for b.Loop() {
				fork.CopyFrom(s.View(), &g)
			}
		})
	}
}
