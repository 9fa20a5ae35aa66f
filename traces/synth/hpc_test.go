package synth

import (
	"io"
	"math"
	"math/bits"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/traces"
)

func hpc(tb testing.TB, change func(*Config), seed uint64) *HPC {
	tb.Helper()
	cfg := DefaultConfig()
	cfg.Profile = "hpc"
	if change != nil {
		change(&cfg)
	}
	g, err := NewHPC(cfg, seed)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func all(tb testing.TB, s traces.Stream) []traces.Job {
	tb.Helper()
	jobs, err := traces.ReadAll(s)
	if err != nil {
		tb.Fatal(err)
	}
	return jobs
}

func TestGammaHasItsMoments(t *testing.T) {
	r := rng.Stream(1, "test")
	for _, c := range [][2]float64{{1, 2}, {4.2, .94}, {312, .03}, {10.46, .4871}} {
		const n = 400_000
		sum, squares := 0.0, 0.0
		for range n {
			x := gamma(r, c[0], c[1])
			sum += x
			squares += x * x
		}
		mean, want := sum/n, c[0]*c[1]
		variance := squares/n - mean*mean
		if math.Abs(mean/want-1) > .01 || math.Abs(variance/(want*c[1])-1) > .02 {
			t.Errorf("gamma(%v): mean %.4f variance %.4f, want %.4f and %.4f", c, mean, variance, want, want*c[1])
		}
	}
	// A gamma of shape 1 is exponential.
	if got, want := gammaBetween(1, 2, 1, 2), math.Exp(-.5)-math.Exp(-1); math.Abs(got-want) > 1e-8 {
		t.Errorf("%v, want %v", got, want)
	}
}

// The shares of the model can be computed: 0.244 serial; of the rest 0.576 powers of two, plus others that happen to
// be.
func TestSizesAreThoseOfTheModel(t *testing.T) {
	jobs := all(t, hpc(t, func(c *Config) { c.Jobs, c.Procs = 100_000, 256 }, 1))
	ones, powers, upper := 0, 0, 0
	for _, j := range jobs {
		if j.GPUs == 1 {
			ones++
		} else if bits.OnesCount(uint(j.GPUs)) == 1 {
			powers++
		}
		if j.GPUs > 45 { // 2^5.5, where the stages meet
			upper++
		}
		if j.GPUs < 1 || j.GPUs > 256 {
			t.Fatalf("%+v", j)
		}
	}
	n := float64(len(jobs))
	if s := float64(ones) / n; s < .24 || s > .26 {
		t.Errorf("share of size 1 is %.3f", s)
	}
	if s := float64(powers) / n; s < .576 || s > .65 {
		t.Errorf("share of powers of two is %.3f", s)
	}
	// Only the upper stage counts: no size of the lower stage rounds up from 5.5 to 6, because l < 5.5.
	if s := float64(upper) / n; math.Abs(s-.756*.14) > .01 {
		t.Errorf("share above 45 is %.3f, want %.3f", s, .756*.14)
	}
}

func TestEstimatesAreQuartersOfAnHourAboveTheRunTime(t *testing.T) {
	exact := 0
	for _, j := range all(t, hpc(t, func(c *Config) { c.Jobs = 5000 }, 2)) {
		if j.Estimate < j.Work || j.Estimate%(15*time.Minute) != 0 || j.Estimate > 10*j.Work+15*time.Minute || j.User == "" {
			t.Fatalf("%+v", j)
		}
		if j.Estimate < 2*j.Work {
			exact++
		}
	}
	if exact == 0 {
		t.Error("nobody estimates well")
	}
	for _, j := range all(t, hpc(t, func(c *Config) { c.Profile, c.Jobs = "lublin", 100 }, 2)) {
		if j.Estimate != 0 || j.User != "" {
			t.Fatalf("%+v", j)
		}
	}
}

func TestHPCRepeatsAndFollowsItsSettings(t *testing.T) {
	base := all(t, hpc(t, func(c *Config) { c.Jobs = 3000 }, 3))
	if !reflect.DeepEqual(all(t, hpc(t, func(c *Config) { c.Jobs = 3000 }, 3)), base) {
		t.Error("the same seed gave other jobs")
	}
	if reflect.DeepEqual(all(t, hpc(t, func(c *Config) { c.Jobs = 3000 }, 4)), base) {
		t.Error("another seed gave the same jobs")
	}
	small := all(t, hpc(t, func(c *Config) { c.Jobs, c.MaxGPUs = 1000, 8 }, 3))
	at := 0
	for _, j := range base {
		if j.GPUs <= 8 && at < len(small) {
			if k := small[at]; k.Submit != j.Submit || k.Work != j.Work || k.GPUs != j.GPUs {
				t.Fatalf("%+v became %+v", j, k)
			}
			at++
		}
	}
	if at != 1000 {
		t.Errorf("%d of 1000 small jobs are those of the whole workload", at)
	}
	span := func(jobs []traces.Job) float64 { return jobs[len(jobs)-1].Submit.Seconds() }
	if f := span(base) / span(all(t, hpc(t, func(c *Config) { c.Jobs, c.Rate = 3000, 4 }, 3))); f < 3.7 || f > 4.3 {
		t.Errorf("four times the rate made the workload %.2f times shorter", f)
	}
	for i, j := range all(t, hpc(t, func(c *Config) { c.Jobs, c.Work = 3000, .5 }, 3)) {
		if d := 2*j.Work.Seconds() - base[i].Work.Seconds(); d > 1 || d < -2 {
			t.Fatalf("half of %v is %v", base[i].Work, j.Work)
		}
	}
	last := time.Duration(0)
	for _, j := range base {
		if j.Submit < last || j.Submit%time.Second != 0 {
			t.Fatalf("%+v", j)
		}
		last = j.Submit
	}
}

func TestTheDayHasItsCycle(t *testing.T) {
	var hours [24]int
	for _, j := range all(t, hpc(t, func(c *Config) { c.Jobs, c.Start = 50_000, 6*time.Hour }, 5)) {
		hours[int((j.Submit+6*time.Hour).Hours())%24]++
	}
	if day, night := hours[13]+hours[14]+hours[15], hours[3]+hours[4]+hours[5]; day < 4*night {
		t.Errorf("jobs by hour: %v", hours)
	}
}

func TestALongWorkloadNeedsNoMemory(t *testing.T) {
	g := hpc(t, func(c *Config) { c.Jobs, c.Rate = maxJobs, 100 }, 1)
	var j traces.Job
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 200_000 {
		if err := g.Next(&j); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes more after 200,000 jobs", grown)
	}
}

// Figures of the 10,000 jobs for 256 processors that the RLScheduler benchmark has from the authors' own program
// (lublin_256).
func TestTheModelAgreesWithItsAuthorsProgram(t *testing.T) {
	got, err := traces.Summarize(hpc(t, func(c *Config) { c.Profile, c.Jobs, c.Procs = "lublin", 100_000, 256 }, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("got  %+v %.2f/h", got.Work, got.JobsPerHour)
	for _, b := range []struct {
		from, to int
		want     float64
	}{{1, 2, .249}, {2, 5, .226}, {5, 17, .272}, {17, 65, .184}, {65, 257, .068}} {
		g := float64(got.Between(b.from*1000, b.to*1000)) / float64(got.Jobs)
		t.Logf("%d to %d: %.3f, want %.3f", b.from, b.to-1, g, b.want)
		if math.Abs(g-b.want) > .02 {
			t.Errorf("%d to %d processors: %.3f of the jobs, want %.3f", b.from, b.to-1, g, b.want)
		}
	}
	for _, q := range []struct {
		name string
		got  time.Duration
		want float64
	}{{"p50", got.Work.P50, 137}, {"p90", got.Work.P90, 15590}, {"p99", got.Work.P99, 36174},
		{"mean", got.Work.Mean, 4863}} {
		if f := q.got.Seconds() / q.want; f < .9 || f > 1.12 {
			t.Errorf("%s %v, want %v s", q.name, q.got, q.want)
		}
	}
}

func TestTimesDoNotRunOut(t *testing.T) {
	raced.Alone(t)
	cfg := DefaultConfig()
	cfg.Profile, cfg.Jobs = "hpc", maxJobs
	if _, err := NewHPC(cfg, 1); err == nil ||
		!strings.Contains(err.Error(), "rate: got 1, want 2.2 or more for 20000000 jobs") {
		t.Errorf("%v", err)
	}
	// a quarter of the jobs, four times as long
	g := hpc(t, func(c *Config) { c.Jobs, c.Rate, c.MaxGPUs = 9_000, .001, 1 }, 1)
	last := time.Duration(0)
	for {
		var j traces.Job
		if err := g.Next(&j); err != nil {
			if !strings.Contains(err.Error(), "a higher rate than 0.001") {
				t.Errorf("%v", err)
			}
			return
		}
		if j.Submit < last {
			t.Fatalf("%v after %v", j.Submit, last)
		}
		last = j.Submit
	}
}

func BenchmarkHPC(b *testing.B) {
	g := hpc(b, func(c *Config) { c.Jobs, c.Rate = maxJobs, 100 }, 1)
	var j traces.Job
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Next(&j); err == io.EOF {
			b.Skip("no more jobs")
		}
	}
}
