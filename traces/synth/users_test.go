package synth

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/traces"
)

func users(c *Config) { c.Profile = "philly-users" }

// Habits say who submits a job and after which others it comes. They leave alone when jobs come and how large they are,
// and every size has the run times of profile philly, to the second.
func TestHabitsOnlyReorderRunTimes(t *testing.T) {
	for _, n := range []int{1, 2, 97, 30_000} {
		for seed := range uint64(3) {
			plain, made := generate(t, n, seed, nil), generate(t, n, seed, users)
			var a, b [5][]time.Duration
			for i := range plain {
				p, m := &plain[i], &made[i]
				if p.ID != m.ID || p.Submit != m.Submit || p.GPUs != m.GPUs || p.VC != m.VC || m.Name == "" || p.Name != "" {
					t.Fatalf("%d jobs, seed %d: %+v became %+v", n, seed, *p, *m)
				}
				c := philly.class(p.GPUs)
				a[c], b[c] = append(a[c], p.Work), append(b[c], m.Work)
			}
			for c := range a {
				slices.Sort(a[c])
				slices.Sort(b[c])
				if !slices.Equal(a[c], b[c]) {
					t.Errorf("%d jobs, seed %d: class %d has other run times", n, seed, c)
				}
			}
		}
	}
}

func TestBurstsWithHabitsAreThoseOfThePhillyTrace(t *testing.T) {
	for seed := range uint64(3) {
		checkArrivals(t, generate(t, 100_000, seed, users), [4]float64{9, 54, 457, 600}, [3]float64{12, 73, 399}, 167,
			[2]float64{.11, .44})
	}
}

// echoes returns the correlations between log run times of jobs that are so many apart, among the kept ones.
func echoes(jobs []traces.Job, lags []int, keep func(*traces.Job) bool) []float64 {
	var x []float64
	for i := range jobs {
		if keep(&jobs[i]) {
			x = append(x, math.Log(jobs[i].Work.Seconds()))
		}
	}
	mean, v := 0.0, 0.0
	for _, a := range x {
		mean += a / float64(len(x))
	}
	for _, a := range x {
		v += (a - mean) * (a - mean) / float64(len(x))
	}
	out := make([]float64, len(lags))
	for k, lag := range lags {
		for i := lag; i < len(x); i++ {
			out[k] += (x[i] - mean) * (x[i-lag] - mean) / v / float64(len(x)-lag)
		}
	}
	return out
}

func TestUsersRepeatTheirJobs(t *testing.T) {
	raced.Alone(t)
	const seeds = 6
	lags := []int{1, 20, 100, 300, 1000}
	want := []float64{.82, .66, .50, .39, .21} // of the recorded table's 40,841 jobs of 6214e9 on one GPU
	got := make([]float64, len(lags))
	plain := make([]float64, len(lags))
	var active, same float64
	for seed := range uint64(seeds) {
		jobs := generate(t, 72_000, seed, users)
		large := func(j *traces.Job) bool { return j.VC == "6214e9" && j.GPUs == 1 }
		for k, c := range echoes(jobs, lags, large) {
			got[k] += c / seeds
		}
		for k, c := range echoes(generate(t, 72_000, seed, nil), lags, large) {
			plain[k] += c / seeds
		}
		a, s := activity(jobs)
		active += a / seeds
		same += s / seeds
	}
	t.Logf("run times that are %v jobs apart: correlation %.2f, recorded %.2f, profile philly %.2f; share of the most active 5 %% %.2f; same user as the burst before %.2f",
		lags, got, want, plain, active, same)
	for k := range lags {
		if math.Abs(got[k]-want[k]) > .12 {
			t.Errorf("run times that are %d jobs apart: correlation %.2f, want %.2f within 0.12", lags[k], got[k], want[k])
		}
	}
	// KTH-SP2: .38, RICC: .64, NASA iPSC: .30.
	if active < .3 || active > .7 {
		t.Errorf("the most active 5 %% of users submit %.2f of the jobs, want .3 to .7", active)
	}
	if same < .6 || same > .85 {
		t.Errorf("%.2f of the bursts are of the user of the burst before, want .6 to .85", same)
	}
}

// activity returns the share of jobs that the most active twentieth of users submits, and the share of bursts, of a
// virtual cluster and size, that are of the same user as the burst before. Both leave out the beat.
func activity(jobs []traces.Job) (top, same float64) {
	type key struct {
		vc   string
		gpus int
	}
	type job struct {
		user string
		at   time.Duration
	}
	count, last := map[string]int{}, map[key]job{}
	n, bursts := 0.0, 0.0
	for i := range jobs {
		j := &jobs[i]
		if strings.HasSuffix(j.User, "-clock") {
			continue
		}
		n++
		count[j.User]++
		k := key{j.VC, j.GPUs}
		if l, ok := last[k]; ok && j.Submit-l.at > 300*time.Second {
			bursts++
			if l.user == j.User {
				same++
			}
		}
		last[k] = job{j.User, j.Submit}
	}
	var by []int
	for _, c := range count {
		by = append(by, c)
	}
	slices.Sort(by)
	for _, c := range by[len(by)-len(by)/20:] {
		top += float64(c) / n
	}
	return top, same / bursts
}

// The beat's run times drift: scores of one-minute jobs that follow one another are alike, after half a day they are
// not.
func TestTheBeatDrifts(t *testing.T) {
	jobs := generate(t, 72_000, 3, users)
	got := echoes(jobs, []int{1, 36, 288}, func(j *traces.Job) bool { return j.User == philly.beat.user })
	want := []float64{.34, .15, .04}
	for k := range got {
		if math.Abs(got[k]-want[k]) > .08 {
			t.Errorf("correlations %.2f, want %.2f within 0.08", got, want)
			break
		}
	}
}

func TestSharesOfVarianceLeaveSomethingForBursts(t *testing.T) {
	for name, p := range profiles {
		if h := p.habits; h != nil &&
			(h.team+h.user+h.task >= 1 || h.beat >= 1 || h.session >= 1 || h.recurs >= 1 || h.days <= 0 || h.ticks <= 0) {
			t.Errorf("%s: %+v", name, *h)
		}
		for i := range p.vcs {
			v := &p.vcs[i]
			for _, d := range v.tilts {
				if d.gpus < 2 || d.wide <= 0 || !slices.ContainsFunc(v.sizes, func(s share) bool { return s.gpus == d.gpus }) {
					t.Errorf("%s: %s: tilt %+v", name, v.name, d)
				}
			}
		}
	}
	if !Named("philly-users") || Named("philly") || Named("hpc") || Named("titan") {
		t.Error("only philly-users has names")
	}
}
