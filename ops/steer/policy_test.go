package steer_test

import (
	"strings"
	"testing"
	"time"

	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/lab/config"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Estimates never exceed time limits, also where predictors know longer jobs of a user. A job whose user nobody knows
// is estimated, too, and one that runs for longer than it was to has something left.
func TestEstimatesKeepToLimits(t *testing.T) {
	var past []traces.Job
	for i := range 200 {
		past = append(past,
			traces.Job{ID: "p", User: "known", Submit: time.Duration(i) * time.Hour, Work: 10 * time.Hour,
				Estimate: 20 * time.Hour, GPUs: 1, GPUMilli: 1000})
	}
	for _, est := range []string{"history", "gbdt", "trace"} {
		c := livetest.New(livetest.Machines(1, 8)...)
		for _, j := range []traces.Job{{ID: "a", User: "known", GPUs: 8}, {ID: "b", User: "known", GPUs: 4},
			{ID: "c", User: "nobody", GPUs: 4}} {
			j.Work, j.Estimate, j.GPUMilli = 50*time.Hour, time.Hour, 1000
			c.Submit(j)
		}
		c.Advance(0)
		cfg := config.For(jobselect.V1)
		if err := cfg.Set("env.estimates=" + est); err != nil {
			t.Fatal(err)
		}
		s, err := c.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l := mirror.LayoutOf(s)
		p, err := steer.Open(&steer.Choice{Policy: "sjf+skip", Config: cfg, History: past}, l)
		if err != nil {
			t.Fatal(est, err)
		}
		m, err := mirror.New(mirror.Config{Limit: 24 * time.Hour, Epoch: c.Now().Add(-210 * time.Hour)}, l, s)
		if err != nil {
			t.Fatal(err)
		}
		look := func() {
			s, err := c.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if why, err := m.Show(p.Env, sched.Following{}, s); why != nil || err != nil {
				t.Fatal(why, err)
			}
		}
		look()
		e, ok := p.Env.(*sched.Env)
		if !ok {
			t.Fatalf("%T", p.Env)
		}
		check := func(when string) {
			v := p.Env.View()
			for _, j := range append(append([]sim.Job(nil), v.Waiting()...), v.Running()...) {
				if d := e.State().Known[j].Estimate; d <= 0 || d > time.Hour {
					t.Errorf("%s, %s: job %s of an hour at most is estimated to take %v", est, when, v.Trace(j).ID, d)
				}
			}
		}
		check("at first")
		c.Advance(5 * time.Hour) // the cluster lets the job run on
		look()
		check("late")
		starts, err := p.Starts(t.Context())
		if err != nil || len(starts) > 0 {
			t.Errorf("%s: while all GPUs are taken %d jobs start (%v)", est, len(starts), err)
		}
	}
}

// A refusal names the reason.
func TestRefusedOpenings(t *testing.T) {
	s, err := livetest.New(livetest.Machines(2, 8)...).Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"srtf": "stops running jobs", "nothing+skip": "nothing"} {
		if _, err := rule(name, "trace")(mirror.LayoutOf(s), (*live.Snapshot)(nil)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
