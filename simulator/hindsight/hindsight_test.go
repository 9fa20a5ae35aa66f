package hindsight_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/hindsight"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

const second = time.Second

// world plays jobs on a cluster.
type world struct {
	t    testing.TB
	spec cluster.Spec
	jobs []traces.Job
	s    *sim.Simulator
}

func newWorld(t testing.TB, spec cluster.Spec, jobs []traces.Job) *world {
	t.Helper()
	s, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, spec, jobs, s}
}

func (w *world) game(ctx context.Context, sch sim.Scheduler, o sim.Observer) error {
	if err := w.s.Reset(w.stream()); err != nil {
		return err
	}
	return sim.Run(ctx, w.s, sch, o)
}

func (w *world) stream() traces.Stream {
	var s traces.Slice
	s.Reset(w.jobs)
	return &s
}

func (w *world) policy(change func(c *schedulers.Config)) schedulers.Policy {
	w.t.Helper()
	cfg := schedulers.DefaultConfig()
	cfg.Placement = "closest-b"
	change(&cfg)
	h, err := schedulers.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *world) sjf() schedulers.Policy {
	return w.policy(func(c *schedulers.Config) { c.Order, c.Admission = "sjf", "skip" })
}

// search returns the result of a search that begins with SJF, and the schedule that it plays.
func (w *world) search(cfg hindsight.Config, seed uint64) (hindsight.Result, *timeline) {
	w.t.Helper()
	place, err := cluster.NewPlacement("closest-b")
	if err != nil {
		w.t.Fatal(err)
	}
	var l timeline
	r, err := hindsight.New(cfg, place).Play(w.t.Context(), seed, w.sjf(), w.game, &l)
	if err != nil {
		w.t.Fatal(err)
	}
	return r, &l
}

// timeline is an observer that notes starts and sums up completion times.
type timeline struct {
	starts string
	jct    time.Duration
	ended  int
}

func (l *timeline) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case sim.Start:
			l.starts += fmt.Sprintf("%v %s;", e.At, v.Trace(e.Job).ID)
		case sim.Finish:
			l.ended++
			l.jct += e.At - v.Trace(e.Job).Submit
		}
	}
	return nil
}

func job(id string, submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: id, Submit: submit, Work: work, GPUs: gpus, GPUMilli: 1000}
}

func pool(gpus int) cluster.Spec { return cluster.Spec{Pool: gpus} }

// A long job comes a second before a short one. SJF starts it at once: (100 + 100) / 2. In hindsight it waits until the
// short one has ended: (1 + 102) / 2.
func TestAJobWaitsForOneThatIsAboutToCome(t *testing.T) {
	w := newWorld(t, pool(2), []traces.Job{job("long", 0, 100*second, 2), job("short", second, second, 1)})
	r, l := w.search(hindsight.Config{Tries: 200}, 1)
	if r.Base != 100 || r.Best != 51.5 || l.starts != "1s short;2s long;" {
		t.Errorf("mean JCT %v, then %v: %s", r.Base, r.Best, l.starts)
	}
}

// drawn returns a cluster and jobs that overload it.
func drawn(r *rand.Rand, n int) (cluster.Spec, []traces.Job) {
	spec := pool(4 + r.IntN(5))
	if r.IntN(2) == 0 {
		spec = cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
	}
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		at += time.Duration(r.IntN(60)) * second
		jobs[i] = job(fmt.Sprint("j", i), at, time.Duration(1+r.IntN(20)*r.IntN(20))*second, 1+r.IntN(4))
	}
	return spec, jobs
}

// What is played is what the search has found, and it is never worse than the base.
func TestHindsightIsNeverWorseThanItsBase(t *testing.T) {
	seed := testseed.Or(20)
	t.Logf("seed %d", seed)
	gained := 0
	for k := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, k))
		spec, jobs := drawn(r, 60)
		w := newWorld(t, spec, jobs)
		var base timeline
		if err := w.game(t.Context(), w.sjf(), &base); err != nil {
			t.Fatal(err)
		}
		n := float64(len(jobs))
		got, played := w.search(hindsight.Config{Tries: 1 + int(k)*10}, k)
		if played.ended != len(jobs) || played.jct > base.jct || got.Base != base.jct.Seconds()/n {
			t.Fatalf("world %d: %d jobs ended; %v, base %v, which counts %v", k, played.ended, played.jct, base.jct, got.Base)
		}
		if d := played.jct.Seconds()/n - got.Best; d > 1e-6 || d < -1e-6 {
			t.Fatalf("world %d: the schedule found costs %v, the one played %v", k, got.Best, played.jct.Seconds()/n)
		}
		if got.At > 0 {
			gained++
		}
		again, same := w.search(hindsight.Config{Tries: 1 + int(k)*10}, k)
		if again != got || same.starts != played.starts {
			t.Fatalf("world %d: the second search found %+v, the first %+v", k, again, got)
		}
	}
	if gained < 10 {
		t.Errorf("only %d of 30 searches found anything", gained)
	}
}

// On small instances the schedules found are those of an exhaustive search, nearly always, and never better.
func TestHindsightReachesTheOptimum(t *testing.T) {
	seed := testseed.Or(21)
	t.Logf("seed %d", seed)
	reached := 0
	for k := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, k))
		_, jobs := drawn(r, 7)
		w := newWorld(t, pool(4), jobs)
		var optimal timeline
		if err := w.game(t.Context(), w.policy(func(c *schedulers.Config) { c.Order, c.Workload = "exact", jobs }),
			&optimal); err != nil {
			t.Fatal(err)
		}
		_, got := w.search(hindsight.Config{Tries: 2000}, k)
		if got.jct < optimal.jct {
			t.Fatalf("instance %d: %v, although %v is optimal", k, got.jct, optimal.jct)
		}
		if got.jct == optimal.jct {
			reached++
		}
	}
	t.Logf("%d of 20", reached)
	if reached < 12 {
		t.Errorf("the optimum of only %d of 20 instances", reached)
	}
}

func TestHindsightCountsSlowdownsWhereAsked(t *testing.T) {
	// SJF starts the long job at once, which makes the short one wait 99 s: 1 and 10.9 for the ten seconds that count at
	// least.
	w := newWorld(t, pool(1), []traces.Job{job("long", 0, 100*second, 1), job("short", second, 5*second, 1)})
	r, _ := w.search(hindsight.Config{Objective: hindsight.BoundedSlowdown, Tries: 200}, 1)
	if want := (1 + 104.0/10) / 2; r.Base != want {
		t.Errorf("base %v, want %v", r.Base, want)
	}
	if want := (1 + 106.0/100) / 2; r.Best != want {
		t.Errorf("best %v, want %v", r.Best, want)
	}
}

func TestASearchCanBeCancelled(t *testing.T) {
	spec, jobs := drawn(rand.New(rand.NewPCG(1, 1)), 60)
	w := newWorld(t, spec, jobs)
	place, err := cluster.NewPlacement("first-fit")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	_, err = hindsight.New(hindsight.Config{Tries: 1 << 40}, place).Play(ctx, 1, w.sjf(),
		func(ctx context.Context, sch sim.Scheduler, o sim.Observer) error {
			if tries++; tries == 100 {
				cancel()
			}
			return w.game(ctx, sch, o)
		}, &timeline{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkTry(b *testing.B) {
	spec, jobs := drawn(rand.New(rand.NewPCG(1, 1)), 256)
	w := newWorld(b, spec, jobs)
	place, err := cluster.NewPlacement("closest-b")
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if _, err := hindsight.New(hindsight.Config{Tries: b.N}, place).Play(b.Context(), 1, w.sjf(), w.game,
		&timeline{}); err != nil {
		b.Fatal(err)
	}
}
