package synth

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/traces"
	table "clustergym/traces/philly"
)

func generate(tb testing.TB, jobs int, seed uint64, change func(*Config)) []traces.Job {
	tb.Helper()
	c := DefaultConfig()
	c.Jobs = jobs
	if change != nil {
		change(&c)
	}
	j, err := Generate(c, seed)
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

func within(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// workOf describes the run times of the jobs with a number of GPUs from lo up to but not including hi.
func workOf(jobs []traces.Job, lo, hi int) (sp traces.Spread, n int) {
	var d []time.Duration
	for i := range jobs {
		if jobs[i].GPUs >= lo && jobs[i].GPUs < hi {
			d = append(d, jobs[i].Work)
		}
	}
	slices.Sort(d)
	return traces.SpreadOf(d), len(d)
}

var classes = []struct {
	lo, hi int
	share  float64 // of jobs
}{{1, 2, .937}, {2, 3, .0247}, {4, 5, .0191}, {8, 9, .0160}, {16, 1 << 30, .0036}}

func TestEveryWorkloadHasTheTablesStatistics(t *testing.T) {
	for seed := range uint64(3) {
		jobs := generate(t, 100000, seed, nil)
		for c, k := range philly.work {
			sp, n := workOf(jobs, classes[c].lo, classes[c].hi)
			if got := float64(n) / float64(len(jobs)); math.Abs(got-classes[c].share) > .002 {
				t.Errorf("seed %d: share of size %d is %.4f, want %.4f", seed, k.gpus, got, classes[c].share)
			}
			for _, q := range []struct {
				p    float64
				got  time.Duration
				name string
			}{{.5, sp.P50, "p50"}, {.9, sp.P90, "p90"}, {.99, sp.P99, "p99"}} {
				want := k.work[slices.Index(workP, q.p)]
				if !within(q.got.Seconds(), want, .03) {
					t.Errorf("seed %d, size %d: %s %v s, want %v", seed, k.gpus, q.name, q.got.Seconds(), want)
				}
			}
		}
		rate := float64(len(jobs)) / (jobs[len(jobs)-1].Submit - jobs[0].Submit).Seconds()
		if !within(rate, 1/philly.gap, .02) {
			t.Errorf("seed %d: a job every %.1f s, want %.1f", seed, 1/rate, philly.gap)
		}
		shares := map[string]float64{philly.beat.vc: philly.beat.share}
		for _, v := range philly.vcs {
			for _, s := range v.sizes {
				shares[v.name] += s.of
			}
		}
		st, err := traces.Summarize(&traces.Slice{Jobs: jobs})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range st.VCs {
			if got := float64(v.Jobs) / float64(len(jobs)); math.Abs(got-shares[v.Name]) > .001 {
				t.Errorf("seed %d: VC %s has %.4f of the jobs, want %.4f", seed, v.Name, got, shares[v.Name])
			}
		}
		if len(st.VCs) != len(philly.vcs) || len(st.Users) < 250 {
			t.Errorf("seed %d: %d VCs and %d users", seed, len(st.VCs), len(st.Users))
		}
	}
}

func TestJobsAreWellFormedAndInOrder(t *testing.T) {
	jobs := generate(t, 20000, 5, nil)
	if len(jobs) != 20000 {
		t.Fatalf("%d jobs", len(jobs))
	}
	for i := range jobs {
		j := &jobs[i]
		if j.ID == "" || j.User == "" || j.VC == "" || j.GPUs < 1 || j.GPUMilli != 1000 || j.Submit < 0 ||
			j.Work < time.Second ||
			j.Submit%time.Second != 0 || j.Work%time.Second != 0 || i > 0 && j.Submit < jobs[i-1].Submit {
			t.Fatalf("job %d: %+v", i, *j)
		}
	}
}

func TestSameSeedSameJobs(t *testing.T) {
	want := generate(t, 5000, 11, nil)
	other := generate(t, 5000, 12, nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := generate(t, 5000, 11, nil); !reflect.DeepEqual(got, want) {
				t.Error("seed 11 gave two workloads")
			}
		})
	}
	wg.Wait()
	if reflect.DeepEqual(other, want) {
		t.Error("seeds 11 and 12 gave the same workload")
	}
}

func TestShortWorkloadsHaveTheirNumberOfJobsAndTheRightSharesOnAverage(t *testing.T) {
	multi, n := 0, 0
	for seed := range uint64(400) {
		for _, size := range []int{1, 2, 97} {
			jobs := generate(t, size, seed, nil)
			if len(jobs) != size {
				t.Fatalf("%d jobs instead of %d", len(jobs), size)
			}
			for i := range jobs {
				n++
				if jobs[i].GPUs > 1 {
					multi++
				}
			}
		}
	}
	if got := float64(multi) / float64(n); math.Abs(got-.0633) > .004 {
		t.Errorf("share of jobs above one GPU in short workloads: %.4f, want 0.0633", got)
	}
}

func TestRateWorkAndMaxGPUsDoWhatTheySay(t *testing.T) {
	base := generate(t, 30000, 1, nil)
	span := func(j []traces.Job) float64 { return (j[len(j)-1].Submit - j[0].Submit).Seconds() }
	if fast := generate(t, 30000, 1, func(c *Config) { c.Rate = 4 }); !within(span(fast), span(base)/4, .03) {
		t.Errorf("rate 4: %v s instead of a quarter of %v", span(fast), span(base))
	}
	a, _ := workOf(base, 1, 1<<30)
	b, _ := workOf(generate(t, 30000, 1, func(c *Config) { c.Work = 2 }), 1, 1<<30)
	if !within(b.Mean.Seconds(), 2*a.Mean.Seconds(), .001) || !within(b.P50.Seconds(), 2*a.P50.Seconds(), .001) {
		t.Errorf("work 2: %+v instead of twice %+v", b, a)
	}
	small := generate(t, 30000, 1, func(c *Config) { c.MaxGPUs = 4 })
	if _, n := workOf(small, 5, 1<<30); n != 0 || len(small) != 30000 {
		t.Errorf("max_gpus 4: %d larger jobs of %d", n, len(small))
	}
	if !within(span(small), span(base)*1/(1-.0196), .02) {
		t.Errorf("max_gpus 4: span %v, want that of %v for 2 %% more jobs", span(small), span(base))
	}
}

func TestBurstsFollowHourAndDay(t *testing.T) {
	raced.Alone(t)
	// Bursts over many weeks: a job begins a burst if no job of its virtual cluster came in the 300 s before it.
	jobs := generate(t, 400000, 2, nil)
	last := map[string]time.Duration{}
	var hours [24]float64
	var days [7]float64
	total := 0.0
	for i := range jobs {
		j := &jobs[i]
		if j.User == philly.beat.user {
			continue
		}
		if at, ok := last[j.VC]; !ok || j.Submit-at > 300*time.Second {
			hours[int(j.Submit/time.Hour)%24]++
			days[int(j.Submit/(24*time.Hour))%7]++
			total++
		}
		last[j.VC] = j.Submit
	}
	correlation := func(a, b []float64) float64 {
		var ma, mb, ab, aa, bb float64
		for i := range a {
			ma += a[i] / float64(len(a))
			mb += b[i] / float64(len(a))
		}
		for i := range a {
			ab += (a[i] - ma) * (b[i] - mb)
			aa += (a[i] - ma) * (a[i] - ma)
			bb += (b[i] - mb) * (b[i] - mb)
		}
		return ab / math.Sqrt(aa*bb)
	}
	if c := correlation(hours[:], philly.hours[:]); c < .9 {
		t.Errorf("hours of the day: correlation %.2f with the table", c)
	}
	if c := correlation(days[:], philly.days[:]); c < .7 {
		t.Errorf("days of the week: correlation %.2f with the table", c)
	}
	shifted := generate(t, 400000, 2, func(c *Config) { c.Start = 5 * 24 * time.Hour })
	weekend := 0
	for i := range shifted {
		if shifted[i].Submit < 48*time.Hour {
			weekend++
		}
	}
	first := 0
	for i := range jobs {
		if jobs[i].Submit < 48*time.Hour {
			first++
		}
	}
	if weekend >= first {
		t.Errorf("%d jobs in two days from Saturday, %d from Monday: want fewer", weekend, first)
	}
}

// arrivals returns figures of the arrival process: gaps between jobs at p50, p75, p90, p95 (s), jobs in an hour at p50,
// p90, p99, the variance of those over their mean, and how similar successive jobs of a virtual cluster are: p50 and
// p75 of the difference of log run times within 300 s.
func arrivals(jobs []traces.Job) (gap [4]float64, hour [3]float64, dispersion float64, alike [2]float64) {
	rank := func(x []float64, p float64) float64 { return x[min(len(x)-1, int(p*float64(len(x))))] }
	var gaps, diff []float64
	last := map[string]int{}
	count := make([]float64, (jobs[len(jobs)-1].Submit-jobs[0].Submit)/time.Hour+1)
	for i := range jobs {
		j := &jobs[i]
		count[(j.Submit-jobs[0].Submit)/time.Hour]++
		if i > 0 {
			gaps = append(gaps, (j.Submit - jobs[i-1].Submit).Seconds())
		}
		if k, ok := last[j.VC]; ok && j.Submit-jobs[k].Submit <= 300*time.Second && j.VC != philly.beat.vc {
			diff = append(diff, math.Abs(math.Log(float64(j.Work)/float64(jobs[k].Work))))
		}
		last[j.VC] = i
	}
	mean, v := float64(len(jobs))/float64(len(count)), 0.0
	for _, c := range count {
		v += (c - mean) * (c - mean) / float64(len(count))
	}
	slices.Sort(gaps)
	slices.Sort(count)
	slices.Sort(diff)
	return [4]float64{rank(gaps, .5), rank(gaps, .75), rank(gaps, .9), rank(gaps, .95)},
		[3]float64{rank(count, .5), rank(count, .9), rank(count, .99)}, v / mean, [2]float64{rank(diff, .5), rank(diff, .75)}
}

func TestBurstsAreThoseOfThePhillyTrace(t *testing.T) {
	// Figures of the recorded table from 24 September on; TestAgainstTheRecordedTable computes them from the file.
	for seed := range uint64(3) {
		checkArrivals(t, generate(t, 100000, seed, nil), [4]float64{9, 54, 457, 600}, [3]float64{12, 73, 399}, 167,
			[2]float64{.11, .44})
	}
}

func checkArrivals(t *testing.T, jobs []traces.Job, gap [4]float64, hour [3]float64, dispersion float64,
	alike [2]float64) {
	t.Helper()
	g, h, d, a := arrivals(jobs)
	for i := range gap {
		if math.Abs(g[i]-gap[i]) > .2*gap[i]+1 {
			t.Errorf("gaps at p50, p75, p90, p95: %v s, want %v within 20 %%", g, gap)
			break
		}
	}
	for i := range hour {
		if math.Abs(h[i]-hour[i]) > .2*hour[i]+1 {
			t.Errorf("jobs in an hour at p50, p90, p99: %v, want %v within 20 %%", h, hour)
			break
		}
	}
	if !within(d, dispersion, .4) {
		t.Errorf("variance over mean of jobs in an hour: %.1f, want %.1f within 40 %%", d, dispersion)
	}
	if !within(a[0], alike[0], .3) || !within(a[1], alike[1], .5) {
		t.Errorf("difference of successive log run times at p50, p75: %.3f, want %.3f within 30 and 50 %%", a, alike)
	}
}

func TestAgainstTheRecordedTable(t *testing.T) {
	f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "philly", "philly_jobs.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("real Philly trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := table.NewReader(f, "philly_jobs.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	recorded, made := d.Jobs(), generate(t, 100000, 1, nil)
	for _, c := range append(classes, struct {
		lo, hi int
		share  float64
	}{1, 1 << 30, 1}) {
		want, wn := workOf(recorded, c.lo, c.hi)
		got, gn := workOf(made, c.lo, c.hi)
		a, b := float64(gn)/float64(len(made)), float64(wn)/float64(len(recorded))
		if math.Abs(a-b) > .01 {
			t.Errorf("sizes %d to %d: share %.4f, recorded %.4f", c.lo, c.hi-1, a, b)
		}
		if !within(got.P50.Seconds(), want.P50.Seconds(), .1) || !within(got.P90.Seconds(), want.P90.Seconds(), .1) ||
			!within(got.P99.Seconds(), want.P99.Seconds(), .2) || !within(got.Mean.Seconds(), want.Mean.Seconds(), .15) {
			t.Errorf("sizes %d to %d: run times %+v, recorded %+v; want p50 and p90 within 10 %%, p99 20 %%, mean 15 %%", c.lo,
				c.hi-1, got, want)
		}
	}
	begin := time.Date(2017, 9, 24, 0, 0, 0, 0, time.UTC).Sub(d.Origin())
	for len(recorded) > 0 && recorded[0].Submit < begin {
		recorded = recorded[1:]
	}
	gap, hour, dispersion, alike := arrivals(recorded)
	checkArrivals(t, made, gap, hour, dispersion, alike)
}

func TestTablesAreDistributions(t *testing.T) {
	check := func(name string, p, v []float64, lowest float64) {
		if len(v) != len(p) || !slices.IsSorted(v) || v[0] < lowest {
			t.Errorf("%s: %v at %v", name, v, p)
		}
	}
	for name, p := range profiles {
		total := p.beat.share
		for _, c := range p.work {
			check(name, workP, c.work, 1)
		}
		check(name, levelP, p.beat.work, 1)
		check(name, gapP, p.multi, 0)
		for _, v := range p.vcs {
			for _, s := range v.sizes {
				total += s.of
			}
			check(v.name, lengthP, v.length, 1)
			check(v.name, gapP, v.gaps, 0)
			check(v.name, levelP, v.few, 1)
			if v.many != nil {
				check(v.name, lengthP, v.many, 1)
			}
			if v.bulk != nil {
				check(v.name, levelP, v.bulk, 1)
			}
		}
		if math.Abs(total-1) > .001 { // the virtual clusters left out
			t.Errorf("%s: shares sum to %v", name, total)
		}
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	c := Config{Profile: "titan", Rate: math.NaN(), Work: -1, MaxGPUs: -1, Start: 200 * time.Hour}
	var keys []string
	for _, f := range fault.All(c.Validate()) {
		keys = append(keys, f.Key)
	}
	if got := strings.Join(keys, " "); got != "profile jobs rate work max_gpus start" {
		t.Errorf("faults: %s", got)
	}
	if _, err := Generate(c, 1); err == nil {
		t.Error("Generate took it")
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func BenchmarkGenerate20000(b *testing.B) {
	b.ReportAllocs()
	c := DefaultConfig()
	for b.Loop() {
		if _, err := Generate(c, 1); err != nil {
			b.Fatal(err)
		}
	}
}
