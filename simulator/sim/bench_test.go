package sim_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

type gpu = cluster.GPU

func stream(jobs []traces.Job) *traces.Slice { return &traces.Slice{Jobs: jobs} }

// plain draws n whole-GPU jobs that load a cluster of gpus GPUs to about 80 %.
func plain(n, gpus int) []traces.Job {
	r := rand.New(rand.NewPCG(9, 9))
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		g := min(gpus, 1<<r.IntN(5))
		work := time.Duration(1+r.IntN(1000)) * second
		at += time.Duration(r.Float64() * 2 * float64(work) * float64(g) / (0.8 * float64(gpus)))
		jobs[i] = job("", at, work, g)
	}
	return jobs
}

// In steady state nothing is allocated: a second run of the same workload does not allocate.
func TestSecondRunAllocatesNothing(t *testing.T) {
	if checked {
		t.Skip("checking the books after every change allocates")
	}
	rich := contended()
	rich.Interference, rich.InterferenceScope, rich.Checkpoint, rich.Overhead.Start = halves{}, "node", second, second
	rich.Failures, rich.Seed = sim.Failures{MTBF: time.Hour, MTTR: time.Minute}, 1
	for _, name := range []string{"pool:32", "4x8"} {
		for what, cfg := range map[string]sim.Config{"none": {Comm: "none"}, "tree": {Comm: "tree"}, "ring": {Comm: "ring"},
			"rich": rich} {
			if name == "pool:32" {
				cfg.Failures.MTBF = 0
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				jobs := plain(500, 32)
				for i := range jobs {
					jobs[i].Profile = models[i%len(models)]
				}
				s := start(t, cfg, short(t, name), jobs)
				var src traces.Slice
				var sch sim.Scheduler = newGreedy(t, "best-fit")
				ctx := context.Background()
				points := 0
				run := func() {
					src.Reset(jobs)
					if err := s.Reset(&src); err != nil {
						t.Fatal(err)
					}
					if err := play(ctx, s, sch, func(*sim.Point) { points++ }); err != nil {
						t.Fatal(err)
					}
				}
				for range 4 { // the GPU lists kept with a job number depend on the previous run
					run()
				}
				if n := testing.AllocsPerRun(3, run); n != 0 {
					t.Errorf("%v allocations in a run of %d jobs", n, len(jobs))
				}
				if points < 500 {
					t.Errorf("only %d points", points)
				}
			})
		}
	}
}

// play is sim.Run with one Decision kept across runs, as an environment does.
func play(ctx context.Context, s *sim.Simulator, sch sim.Scheduler, each func(*sim.Point)) error {
	v := s.View()
	sch.Reset(v)
	for {
		p, err := s.Advance(ctx)
		if err != nil {
			if v.Over() {
				return nil
			}
			return err
		}
		each(p)
		if v.Over() {
			continue
		}
		if err := sim.Decide(s, sch, p, &decision, nil); err != nil {
			return err
		}
	}
}

var decision sim.Decision

func BenchmarkSimulator(b *testing.B) {
	for _, name := range []string{"pool:256", "64x8"} {
		b.Run(name, func(b *testing.B) {
			jobs := plain(10_000, 256)
			s := start(b, sim.DefaultConfig(), short(b, name), jobs)
			var src traces.Slice
			sch := newGreedy(b, "first-fit")
			ctx := context.Background()
			events := 0
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(jobs)
				if err := s.Reset(&src); err != nil {
					b.Fatal(err)
				}
				if err := play(ctx, s, sch, func(p *sim.Point) { events += len(p.Events) }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.N*len(jobs))/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

type mild struct{}

func (mild) Kept(_, _ *traces.Job) float64 { return 0.95 }

// BenchmarkNeighbours is BenchmarkSimulator with rates that depend on the other jobs.
func BenchmarkNeighbours(b *testing.B) {
	for _, what := range []string{"contention", "interference", "failures"} {
		b.Run(what, func(b *testing.B) {
			jobs := plain(10_000, 256)
			for i := range jobs {
				jobs[i].Profile = models[i%len(models)]
				jobs[i].Submit *= 10 // otherwise slow jobs build queues, which would dominate the time
			}
			cfg := sim.DefaultConfig()
			switch what {
			case "contention":
				cfg.Comm = what
			case "interference":
				cfg.Interference, cfg.InterferenceScope = mild{}, "node"
			case "failures":
				cfg.Failures, cfg.Checkpoint = sim.Failures{MTBF: 24 * time.Hour, MTTR: time.Hour}, time.Minute
			}
			s := start(b, cfg, short(b, "64x8"), jobs)
			var src traces.Slice
			sch := newGreedy(b, "first-fit")
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(jobs)
				if err := s.Reset(&src); err != nil {
					b.Fatal(err)
				}
				if err := play(ctx, s, sch, func(*sim.Point) {}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(jobs))/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s, spec, jobs, _ := saved(b)
	var buf []byte
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = s.AppendSnapshot(buf[:0])
		}
	})
	b.Run("restore", func(b *testing.B) {
		other := start(b, sim.DefaultConfig(), short(b, spec), jobs)
		b.ReportAllocs()
		for b.Loop() {
			if err := other.RestoreSnapshot(buf, stream(jobs)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
