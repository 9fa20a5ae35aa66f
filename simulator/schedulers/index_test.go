package schedulers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/testseed"
	"clustergym/simulator/predict"
	past "clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// naiveIndex returns the key of index as its documentation has it.
func naiveIndex(w tuned.Index, est sim.Estimates) func(v *sim.View, j sim.Job) float64 {
	return func(v *sim.View, j sim.Job) float64 {
		ran, r := v.Ran(j), v.Request(j)
		g := math.Log(float64(r.GPUs*r.Milli) / 1000)
		m := max(est.Left(v, j), time.Second).Hours()
		if est.Mode == sim.EstimateExact {
			m = max(v.Left(j), 1e9) / 3.6e12
		}
		f, s, again := m, 0.0, m
		if est.Causal() {
			c := v.Forecast(j)
			f = 1 / (c.Gittins(ran) * 3.6e12)
			s = math.Log(float64(c.Mean()) / float64(c.Median()))
			if c, ok := v.Renewed(j); ok {
				again = max(c.Outliving(ran)-ran, time.Second).Hours()
			}
		}
		n, elder, asked := 1.0, 0.0, 0.0
		for _, k := range slices.Concat(v.Waiting(), v.Running()) {
			a, b := v.Trace(j), v.Trace(k)
			if k != j && a.User != "" && a.User == b.User && a.VC == b.VC && a.Name == b.Name && a.GPUs == b.GPUs &&
				predict.Requested(a) == predict.Requested(b) {
				n, elder = n+1, max(elder, v.Ran(k).Hours())
			}
		}
		for _, k := range v.Waiting() {
			asked += float64(v.Request(k).GPUs)
		}
		wait := (v.Now() - v.Trace(j).Submit - ran).Hours()
		key := w.Left*math.Log(m) + w.Gittins*math.Log(f) + w.Attained*math.Log(1+12*ran.Hours()) + w.Width*g +
			w.Busy*math.Log(1+asked/float64(v.Cluster().GPUs()))*g + w.Spread*s + w.Wait*math.Log(1+wait/m) + w.Kin*math.Log(n) +
			w.Elder*math.Log(1+elder/m)
		if v.State(j) == sim.Running {
			return key - w.Stay - w.Wider*g - w.Longer*math.Log(m)
		}
		return key + w.News*math.Log(again/m)
	}
}

// campaigns draws jobs of a few users on eight GPUs, many of which repeat one another.
func campaigns(r *rand.Rand, n int) []traces.Job {
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		if r.IntN(3) == 0 { // else it comes with the job before
			at += time.Duration(1+r.IntN(3000)) * time.Millisecond * 100
		}
		user := r.IntN(4)
		jobs[i] = traces.Job{
			ID: fmt.Sprint("j",
				i), Submit: at, GPUs: 1 << (user + r.IntN(2)) & 7, GPUMilli: 1000, User: fmt.Sprint("u",
				user), Name: fmt.Sprint("n", r.IntN(2)),
			Work: time.Duration(1000+r.IntN(20_000*(1+user*user*r.IntN(20)))) * 3 * time.Millisecond,
		}
		if jobs[i].GPUs = max(1, jobs[i].GPUs); user == 0 {
			jobs[i].User, jobs[i].Name = "", ""
		}
	}
	return jobs
}

// Decisions are those of the formula, with forecasts that change and with exact run times.
func TestIndexFollowsItsFormula(t *testing.T) {
	seed := testseed.Or(59)
	for _, estimates := range []string{"history", "exact"} {
		est, err := sim.ParseEstimates(estimates)
		if err != nil {
			t.Fatal(err)
		}
		stops := 0
		for k := range uint64(12) {
			r := rand.New(rand.NewPCG(seed, k))
			jobs := campaigns(r, 120)
			cfg := schedulers.DefaultConfig()
			cfg.Order, cfg.Admission, cfg.Estimates = "index", "skip", sim.MustEstimates(estimates)
			for _, w := range cfg.Index.Weights() {
				*w = r.NormFloat64()
			}
			var want, got moments
			played(t, &ranking{score: naiveIndex(cfg.Index, est), preempt: true}, past.NewArchive(nil), jobs, &want)
			played(t, newPolicy(t, cfg), past.NewArchive(nil), jobs, &got)
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Fatalf("%s, seed %d, drawn world %d, weights %+v: after %d of %d moments %v, want %v", estimates, seed, k,
						cfg.Index, i, len(want), got[min(i, len(got)-1)], want[i])
				}
			}
			stops += len(want) - 2*len(jobs)
		}
		if stops == 0 {
			t.Errorf("%s: nothing was stopped", estimates)
		}
	}
}

// Other orders are special weights. Draws make ties unlikely, and no job runs for less than a second.
func TestIndexContainsOtherOrders(t *testing.T) {
	seed := testseed.Or(61)
	for _, c := range []struct {
		order, estimates string
		is               tuned.Index
	}{
		{"srtf", "exact", tuned.Index{Left: 1}}, {"srtf", "history", tuned.Index{Left: 1}},
		{"srtf", "noisy:1", tuned.Index{Left: 2}},
		{"srsf", "exact", tuned.Index{Left: 1, Width: 1}}, {"srsf", "history", tuned.Index{Left: 1, Width: 1}},
		{"gittins", "exact", tuned.Index{Gittins: 1, Width: 1}}, {"gittins", "history", tuned.Index{Gittins: 1, Width: 1}},
	} {
		for k := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, k))
			jobs := campaigns(r, 100)
			for i := range jobs {
				// the last second counts as one, so what is left of it decides nothing
				jobs[i].Work += 3*time.Second + time.Duration(r.Int64N(1e9))
			}
			var moments [2]moments
			for i, order := range []string{c.order, "index"} {
				cfg := schedulers.DefaultConfig()
				cfg.Order, cfg.Admission, cfg.Estimates, cfg.Index, cfg.Seed = order, "skip", sim.MustEstimates(c.estimates), c.is,
					seed
				moments[i] = momentsOf(t, cfg, past.NewArchive(nil), jobs)
			}
			if want, got := moments[0], moments[1]; !slices.Equal(got, want) {
				for i := range want {
					if i >= len(got) || got[i] != want[i] {
						t.Fatalf("%s by %s, seed %d, drawn world %d: after %d of %d moments %v, want %v", c.order, c.estimates, seed, k,
							i, len(want), got[min(i, len(got)-1)], want[i])
					}
				}
			}
		}
	}
}

// Two users' scripts of four jobs on half of the GPUs each come at the same time, before anything is known of them: all
// are forecast to run for ten minutes. long0 and short0 start. After a minute short0 has ended, and every other job
// would be forecast to run for a minute now. So with News short1 and long1, the first of the trace, are before long0,
// which has nine minutes left. With Elder, long1 has log(1 + 1/10) more than short1 and short2, because long0 has run
// for a minute, and these two are first.
func TestIndexHearsOfJobsLikeIt(t *testing.T) {
	var jobs []traces.Job
	for i := range 4 {
		jobs = append(jobs,
			traces.Job{ID: fmt.Sprint("long", i), Submit: 0, User: "l", Name: "x", GPUs: 4, GPUMilli: 1000, Work: time.Hour},
			traces.Job{ID: fmt.Sprint("short", i), Submit: 0, User: "s", Name: "x", GPUs: 4, GPUMilli: 1000, Work: time.Minute})
	}
	finished := func(w tuned.Index) (ids []string) {
		cfg := schedulers.DefaultConfig()
		cfg.Order, cfg.Estimates, cfg.Index = "index", sim.MustEstimates("history"), w
		for _, m := range momentsOf(t, cfg, past.NewArchive(nil), jobs) {
			if at, id, ok := strings.Cut(m, " finish "); ok {
				ids = append(ids, at+" "+id)
			}
		}
		return ids
	}
	for _, c := range []struct {
		w    tuned.Index
		want []string
	}{
		{tuned.Index{Left: 1, News: 1, Elder: 1}, []string{"1m0s short0", "2m0s short1", "2m0s short2", "3m0s short3"}},
		{tuned.Index{Left: 1, News: 1}, []string{"1m0s short0", "2m0s short1", "3m0s short2", "4m0s short3"}},
	} {
		if got := finished(c.w); !slices.Equal(got[:4], c.want) {
			t.Errorf("%+v: jobs end as %v, want first %v", c.w, got, c.want)
		}
	}
	if got := finished(tuned.Index{Left: 1}); slices.Equal(got[2:4], []string{"3m0s short2", "4m0s short3"}) {
		t.Errorf("by the forecasts of their submits jobs end as %v", got)
	}
}

func TestIndexRefusesWeightsThatAreNoNumbers(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), -2e6} {
		c := schedulers.DefaultConfig()
		c.Order, c.Index = "index", tuned.Index{Elder: bad}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "index.elder") ||
			!strings.Contains(err.Error(), "a number from -1e6 to 1e6") {
			t.Errorf("elder %v: %v", bad, err)
		}
	}
}
