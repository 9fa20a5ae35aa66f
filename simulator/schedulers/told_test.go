package schedulers_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	ended "clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// learned returns what happens before until to jobs under cfg, in a run with a predictor.
func learned(t *testing.T, cfg schedulers.Config, spec cluster.Spec, jobs []traces.Job, until time.Duration) string {
	t.Helper()
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sc := sim.DefaultConfig()
	sc.Predictor = ended.NewArchive(nil)
	cfg.Simulator(&sc)
	s, err := sim.New(sc, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	seen := &before{until: until}
	if err := sim.Run(t.Context(), s, h, seen); err != nil {
		t.Fatal(err)
	}
	return seen.said.String()
}

// before writes down the events before a time.
type before struct {
	until time.Duration
	said  strings.Builder
}

func (b *before) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		if e.At < b.until && e.Job >= 0 {
			fmt.Fprintln(&b.said, e.At, e.Kind, v.Trace(e.Job).ID, e.GPUs)
		}
	}
	return nil
}

// Jobs that run for longer than hour in one world run for much longer in the other one. Nothing shows it before a job
// has run for that long, so policies that are told no run times decide alike until then, whatever they ask.
func TestNobodyKnowsRunTimesBelowTheExactRung(t *testing.T) {
	const hour = time.Hour
	r := rand.New(rand.NewPCG(17, 3))
	one := make([]traces.Job, 300)
	for i := range one {
		one[i] = traces.Job{
			ID: fmt.Sprint("j",
				i), User: fmt.Sprint("u", r.IntN(5)), Submit: time.Duration(r.IntN(2*i+1)/2+i) * 12 * time.Second,
			Work: time.Duration(1+r.ExpFloat64()*1500) * time.Second, GPUs: 1 << r.IntN(3), GPUMilli: 1000,
		}
		if i > 0 {
			one[i].Submit = max(one[i].Submit, one[i-1].Submit)
		}
		one[i].Estimate = one[i].Work * time.Duration(2+r.IntN(9)) / time.Duration(1+r.IntN(4))
		one[i].Estimate = max(time.Second, one[i].Estimate)
	}
	long := 0
	other := append([]traces.Job(nil), one...)
	for i := range other {
		if other[i].Work > hour {
			other[i].Work = other[i].Work*time.Duration(2+i%7) + time.Duration(i)*time.Minute
			long++
		}
	}
	if long < 10 {
		t.Fatalf("%d long jobs", long)
	}
	spec, _, err := cluster.Parse("8x8")
	if err != nil {
		t.Fatal(err)
	}
	same := func(order, backfill, placement, estimates string) (alike bool, valid error) {
		cfg := schedulers.DefaultConfig()
		cfg.Order, cfg.Backfill, cfg.Placement, cfg.Estimates = order, backfill, placement, sim.MustEstimates(estimates)
		if err := cfg.Validate(); err != nil {
			return false, err
		}
		a := learned(t, cfg, spec, one, hour)
		if n := strings.Count(a, "\n"); n < 100 {
			t.Fatalf("%s, %s: %d events", order, estimates, n)
		}
		return a == learned(t, cfg, spec, other, hour), nil
	}
	played := 0
	for _, order := range schedulers.Orders() {
		for _, with := range [][2]string{{"none", "first-fit"}, {"none", "lwf-1"}, {"easy", "first-fit"},
			{"conservative", "first-fit"}} {
			for _, estimates := range []string{"none", "trace", "history"} {
				what := fmt.Sprintf("%s, back-filling %s, %s, estimates %s", order, with[0], with[1], estimates)
				if c := (&schedulers.Config{Order: order}); c.Clairvoyant() {
					continue
				}
				alike, err := same(order, with[0], with[1], estimates)
				switch {
				case err != nil && with[0] == "none" && estimates != "none":
					t.Errorf("%s: %v", what, err)
				case err != nil:
				case !alike:
					t.Errorf("%s: it knows run times beforehand", what)
				default:
					played++
				}
			}
		}
	}
	if played < 100 {
		t.Errorf("%d played", played)
	}
	for _, with := range [][2]string{{"ljf", "first-fit"}, {"fifo", "lwf-1"}} {
		if alike, err := same(with[0], "none", with[1], "exact"); alike || err != nil {
			t.Errorf("%s with %s and exact estimates: alike %v, %v", with[0], with[1], alike, err)
		}
	}
}

func TestWhatAPolicyKnowsBesidesEstimates(t *testing.T) {
	for name, want := range map[string]string{
		"fifo+strict": "none true", "las+skip": "none true", "gittins-2d+skip": "none true", "dally": "none true",
		"exact": "exact true", "sjf+skip": "none false",
		"fifo+strict+easy": "none false", "themis": "none false", "optimus": "none false", "gavel-ftf": "none false",
		"gavel-las": "none true",
	} {
		cfg := schedulers.DefaultConfig()
		cfg.Take(policyname.Of(name))
		rung, own := cfg.Knows()
		if got := fmt.Sprint(rung, " ", own); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	cfg := schedulers.DefaultConfig()
	cfg.Placement = "lwf-2"
	if _, own := cfg.Knows(); own {
		t.Error("lwf-2 asks for what is left of jobs")
	}
	cfg.Estimates = sim.MustEstimates("none")
	if got, want := fmt.Sprint(cfg.Validate()),
		`estimates: got "none", want trace, history, gbdt, exact or noisy:SIGMA, as placement lwf-2 looks at run times`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
