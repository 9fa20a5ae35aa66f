package tune

import (
	"context"
	"testing"
	"time"

	"clustergym/configs"
	"clustergym/env"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
)

// The mean JCT of a window is that of the tables, to the last bit.
func TestMeanJCTIsThatOfTheMetrics(t *testing.T) {
	cfg, err := config.Preset("quickstart-exact")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"trace.seed=7", "trace.synth.jobs=4000", "env.window=48", "env.warm=16", "env.load=2"} {
		if err := configs.Set(&cfg, set); err != nil {
			t.Fatal(err)
		}
	}
	w, err := arena.NewScenario(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []traces.Part{traces.Training, traces.Validation} {
		e, err := w.NewEnv(part, 1)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(40) {
			ep := env.Episode{Seed: seed, Window: -1}
			if part == traces.Validation {
				ep.Window = int(seed) % w.Taken.Windows.Count(part)
			}
			hc := schedulers.DefaultConfig()
			hc.Order, hc.Admission = "sjf", "skip"
			p, err := schedulers.New(hc)
			if err != nil {
				t.Fatal(err)
			}
			all := metrics.Collector{Keep: func(pos int) bool { return pos >= e.First() }}
			if err := e.Simulate(context.Background(), ep, p, &all); err != nil {
				t.Fatal(err)
			}
			sum := jct{env: e}
			if err := e.Simulate(context.Background(), ep, p, &sum); err != nil {
				t.Fatal(err)
			}
			if want := all.Summary(0, 0); want.Finished != 48 || sum.jobs != 48 || sum.mean() != want.JCT.Mean {
				t.Errorf("%v window of seed %d: mean %v of %d jobs, want %v of %d", part, seed, sum.mean(), sum.jobs, want.JCT.Mean,
					want.Finished)
			}
		}
	}
}

func TestMeanOfLongTimes(t *testing.T) {
	s := jct{seconds: 3e18, rest: 5e8, jobs: 2} // more nanoseconds than 64 bits hold
	if got := s.mean(); got != 1.5e18 {
		t.Errorf("got %v, want 1.5e18", got)
	}
	s = jct{seconds: 1, rest: int64(time.Second / 2), jobs: 3}
	if got := s.mean(); got != 0.5 {
		t.Errorf("got %v, want 0.5", got)
	}
	if got := (&jct{}).mean(); got != 0 {
		t.Errorf("no jobs have a mean of %v, want 0", got)
	}
}
