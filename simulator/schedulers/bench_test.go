package schedulers_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	past "clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/swf"
)

// generated returns n jobs in the shape of an HPC log: sizes that are often powers of two, log-normal run times, a
// load of the 256 processors below 1, and occasional bursts that make a queue of hundreds.
func generated(n int) []traces.Job {
	r := rand.New(rand.NewPCG(1, 1))
	jobs := make([]traces.Job, n)
	at := 0.0
	for i := range jobs {
		gpus := 1 << r.IntN(8)
		if r.IntN(4) == 0 {
			gpus = 1 + r.IntN(128)
		}
		work := math.Ceil(min(120_000, math.Exp(5+2.6*r.NormFloat64())))
		gap := r.ExpFloat64() * 1400
		if r.IntN(3) > 0 {
			gap *= 0.1
		}
		at += math.Floor(gap)
		jobs[i] = traces.Job{ID: fmt.Sprint(i), Submit: time.Duration(at) * second, Work: time.Duration(work) * second,
			GPUs: gpus, GPUMilli: 1000}
	}
	return jobs
}

// lublin returns the log of that name, if it is available.
func lublin(b testing.TB) []traces.Job { return recorded(b, "lublin_256.swf.gz") }

// recorded returns a log in the Standard Workload Format, if it is available.
func recorded(b testing.TB, name string) []traces.Job {
	b.Helper()
	f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "swf", name))
	if errors.Is(err, fs.ErrNotExist) {
		b.Skip("the log " + name + " is not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	r, err := swf.NewReader(f, name, swf.Options{})
	if err != nil {
		b.Fatal(err)
	}
	jobs, err := traces.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	return jobs
}

// BenchmarkSchedulers plays whole workloads, metrics included, in reused simulators.
func BenchmarkSchedulers(b *testing.B) {
	for _, w := range []struct {
		name string
		jobs func(b testing.TB) []traces.Job
	}{
		{"lublin_256", lublin},
		{"generated", func(testing.TB) []traces.Job { return generated(10_000) }},
	} {
		for _, c := range []struct{ cluster, order, admission, placement string }{
			{"pool:256", "fifo", "strict", "first-fit"},
			{"pool:256", "sjf", "strict", "first-fit"},
			{"pool:256", "fifo", "skip", "first-fit"},
			{"pool:256", "sjf", "skip", "first-fit"},
			{"pool:256", "srtf", "skip", "first-fit"},
			{"pool:256", "las", "skip", "first-fit"},
			{"64x8", "fifo", "strict", "best-fit"},
			{"64x8", "sjf", "skip", "best-fit"},
			{"64x8", "srtf", "skip", "best-fit"},
			{"64x8", "las", "skip", "best-fit"},
		} {
			b.Run(fmt.Sprintf("%s/%s/%s+%s/%s", w.name, c.cluster, c.order, c.admission, c.placement), func(b *testing.B) {
				play(b, c.cluster, w.jobs(b),
					func(k *schedulers.Config) { k.Order, k.Admission, k.Placement = c.order, c.admission, c.placement })
			})
		}
	}
}

// play measures how fast jobs are simulated, metrics included.
func play(b *testing.B, on string, jobs []traces.Job, change func(k *schedulers.Config)) {
	b.Helper()
	spec, _, err := cluster.Parse(on)
	if err != nil {
		b.Fatal(err)
	}
	playOn(b, spec, jobs, change)
}

func playOn(b *testing.B, spec cluster.Spec, jobs []traces.Job, change func(k *schedulers.Config)) {
	b.Helper()
	playIn(b, sim.DefaultConfig(), spec, jobs, change)
}

func playIn(b *testing.B, sc sim.Config, spec cluster.Spec, jobs []traces.Job, change func(k *schedulers.Config)) {
	b.Helper()
	cfg := schedulers.DefaultConfig()
	change(&cfg)
	cfg.Simulator(&sc)
	s, err := sim.New(sc, spec)
	if err != nil {
		b.Fatal(err)
	}
	h, err := schedulers.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	var src traces.Slice
	var col metrics.Collector
	ctx := context.Background()
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(jobs)
		col.Reset()
		if err := s.Reset(&src); err != nil {
			b.Fatal(err)
		}
		if err := sim.Run(ctx, s, h, &col); err != nil {
			b.Fatal(err)
		}
		events += col.Events()
	}
	b.ReportMetric(float64(b.N*len(jobs))/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkForecasts is sjf+skip with exact run times and with those that the predictor history forecasts, for
// generated jobs of 50 users on 256 processors, and for recorded ones.
func BenchmarkForecasts(b *testing.B) {
	for _, w := range []struct{ name, cluster string }{
		{"generated", "pool:256"}, {"KTH-SP2-1996-2.1-cln.swf.gz", "pool:100"}, {"RICC-2010-2_first75d.swf.gz", "pool:8192"},
	} {
		for _, estimates := range []string{"exact", "history"} {
			b.Run(w.name+"/"+estimates, func(b *testing.B) {
				jobs := generated(20_000)
				if w.name != "generated" {
					jobs = recorded(b, w.name)
				} else {
					for i := range jobs {
						jobs[i].User = fmt.Sprint("u", i*i%97%50)
					}
				}
				sc := sim.DefaultConfig()
				if estimates == "history" {
					sc.Predictor = past.NewArchive(nil)
				}
				spec, _, err := cluster.Parse(w.cluster)
				if err != nil {
					b.Fatal(err)
				}
				playIn(b, sc, spec, jobs, func(k *schedulers.Config) {
					k.Order, k.Admission, k.Estimates = "sjf", "skip", sim.MustEstimates(estimates)
				})
			})
		}
	}
}

// BenchmarkBackfill plays whole logs with back-filling, metrics included.
func BenchmarkBackfill(b *testing.B) {
	for _, w := range []struct{ log, cluster, estimates string }{
		{"KTH-SP2-1996-2.1-cln.swf.gz", "pool:100", "trace"},
		{"RICC-2010-2_first75d.swf.gz", "pool:8192", "trace"},
		{"lublin_256.swf.gz", "pool:256", "exact"},
	} {
		for _, c := range []struct{ order, admission, backfill string }{
			{"fifo", "strict", "none"}, {"fifo", "strict", "easy"}, {"sjf", "strict", "easy"}, {"fifo", "commit", "easy"},
			{"fifo", "strict", "conservative"},
		} {
			b.Run(fmt.Sprintf("%s/%s+%s+%s", w.log, c.order, c.admission, c.backfill), func(b *testing.B) {
				jobs := recorded(b, w.log)
				for i := range jobs {
					if jobs[i].Estimate <= 0 { // as most simulators read a log
						jobs[i].Estimate = max(time.Nanosecond, jobs[i].Work)
					}
				}
				play(b, w.cluster, jobs, func(k *schedulers.Config) {
					k.Order, k.Admission, k.Backfill, k.Estimates = c.order, c.admission, c.backfill, sim.MustEstimates(w.estimates)
				})
			})
		}
	}
}

// After one run of a workload a second one allocates almost nothing: only the decision that sim.Run keeps.
func TestSecondRunAllocatesNothing(t *testing.T) {
	if checked || raced.On {
		t.Skip("checking the books after every change allocates, and so may the race detector")
	}
	jobs := generated(1000)
	names := slices.Clone(backfilling)
	for _, order := range schedulers.Orders() {
		if schedulers.IsOrder(order) {
			names = append(names, order+"+")
		}
	}
	for _, policy := range names {
		for _, name := range []string{"pool:256", "32x8"} {
			t.Run(policy+"/"+name, func(t *testing.T) {
				spec, _, err := cluster.Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				s, err := sim.New(sim.DefaultConfig(), spec)
				if err != nil {
					t.Fatal(err)
				}
				h := scheduler(t, func(k *schedulers.Config) {
					called(policy)(k)
					k.Placement = "best-fit"
				})
				var src traces.Slice
				var col metrics.Collector
				observers := []sim.Observer{&col}
				run := func() {
					src.Reset(jobs)
					col.Reset()
					if err := s.Reset(&src); err != nil {
						t.Fatal(err)
					}
					if err := sim.Run(context.Background(), s, h, observers...); err != nil {
						t.Fatal(err)
					}
				}
				run() // which lists a job's number has used depends on the run before: warm up twice
				run()
				grows := 12.0 // the GPU list of the decision, doubled a few times
				if n := testing.AllocsPerRun(2, run); n > grows {
					t.Errorf("%v allocations in a run of %d jobs", n, len(jobs))
				}
			})
		}
	}
}

// BenchmarkQueueLength plays workloads in which all jobs arrive at once: the cost of a job must not grow by more than
// the logarithm of the queue.
func BenchmarkQueueLength(b *testing.B) {
	for _, c := range []struct{ cluster, order, admission, backfill string }{
		{"pool:256", "sjf", "strict", "none"}, {"pool:256", "sjf", "skip", "none"}, {"64x8", "sjf", "strict", "none"},
		{"64x8", "sjf", "skip", "none"}, {"pool:256", "fifo", "strict", "easy"}, {"64x8", "fifo", "strict", "easy"},
		{"pool:256", "fifo", "commit", "easy"},
	} {
		for n := 100; n <= 1_000_000; n *= 10 {
			b.Run(fmt.Sprintf("%s/%s+%s+%s/%d", c.cluster, c.order, c.admission, c.backfill, n), func(b *testing.B) {
				jobs := generated(n)
				for i := range jobs {
					jobs[i].Submit = 0
				}
				play(b, c.cluster, jobs, func(k *schedulers.Config) {
					k.Order, k.Admission, k.Backfill = c.order, c.admission,
						c.backfill
				})
			})
		}
	}
}

// BenchmarkRankingAnew plays workloads in which all jobs arrive at once under orders whose keys change with every
// start. The cost of a job must depend on the number of users and of demands, not on the queue.
func BenchmarkRankingAnew(b *testing.B) {
	for _, order := range []string{"drf", "packer"} {
		for _, way := range ranksClassesIn {
			for _, n := range []int{1 << 10, 10_000, 1 << 16} {
				b.Run(fmt.Sprintf("%s+%s/%d", order, way, n), func(b *testing.B) {
					jobs := generated(n)
					for i := range jobs {
						jobs[i].Submit, jobs[i].GPUs, jobs[i].User = 0, min(jobs[i].GPUs, 32), fmt.Sprint("u", i*i%97)
					}
					play(b, "64x8", jobs, func(k *schedulers.Config) {
						k.Order, k.Admission, k.Backfill = order, way.admission,
							way.backfill
					})
				})
			}
		}
	}
}
