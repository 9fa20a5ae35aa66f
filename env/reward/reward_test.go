package reward_test

import (
	"math"
	"testing"
	"time"

	"clustergym/env/reward"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

func TestNames(t *testing.T) {
	for _, name := range reward.Names() {
		r, err := reward.New(name, 2)
		if err != nil || r == nil || !reward.Known(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := reward.New("fame", 2); err == nil || reward.Known("fame") {
		t.Error("fame is a reward")
	}
}

// Rates and lumps at each point of a run in which a job is stopped and continues. Three counted jobs follow an
// occupant, on two GPUs; W = 3, tau = 100 s. Values are per second, and in units of 1/(W·tau) for rewards with that
// scale.
//
//	at 0 the occupant O runs on one GPU; at 10 A (1 GPU, 20 s) and B (2 GPUs, 5 s) arrive, A is started;
//	at 20 A is stopped and C (1 GPU, 4 s) has arrived and is started; at 24 C ends and A continues; at 34 A ends.
func TestRatesByHand(t *testing.T) {
	const s = time.Second
	jobs := []traces.Job{
		{ID: "O", Work: 1000 * s, GPUs: 1, GPUMilli: 1000},
		{ID: "A", Submit: 10 * s, Work: 20 * s, GPUs: 1, GPUMilli: 1000},
		{ID: "B", Submit: 10 * s, Work: 5 * s, GPUs: 2, GPUMilli: 1000},
		{ID: "C", Submit: 20 * s, Work: 4 * s, GPUs: 1, GPUMilli: 1000},
	}
	start := func(j sim.Job) sim.Decision { return sim.Decision{Op: sim.StartJob, Job: j} }
	script := map[time.Duration][]sim.Decision{
		0: {start(0)}, 10 * s: {start(1)}, 20 * s: {{Op: sim.PreemptJob, Job: 1}, start(3)}, 24 * s: {start(1)},
	}
	// The rate after all events of the point at each time, and the lump paid there.
	want := map[string]map[time.Duration][2]float64{
		"jct":      {0: {0, 0}, 10: {-2. / 300, 0}, 20: {-3. / 300, 0}, 24: {-2. / 300, 0}, 34: {-1. / 300, 0}},
		"wait":     {0: {0, 0}, 10: {-2. / 300, 0}, 20: {-2. / 300, 0}, 24: {-2. / 300, 0}, 34: {-1. / 300, 0}},
		"makespan": {0: {0, 0}, 10: {-1. / 100, 0}, 20: {-1. / 100, 0}, 24: {-1. / 100, 0}, 34: {-1. / 100, 0}},
		"slowdown": {0: {0, 0}, 10: {-(1./20 + 1./5) / 3, 0}, 20: {-(1./20 + 1./5 + 1./4) / 3, 0},
			24: {-(1./20 + 1./5) / 3, 0}, 34: {-(1. / 5) / 3, 0}},
		// C was in the system for 4 s: 4/10 has been paid, the rest of 1 is due. A was in it for 24 s and ran for 20
		// of them: its 24/20 has been paid in full.
		"bsld": {0: {0, 0}, 10: {-(1./20 + 1./10) / 3, 0}, 20: {-(1./20 + 1./10 + 1./10) / 3, 0},
			24: {-(1./20 + 1./10) / 3, -(1 - 0.4) / 3}, 34: {-(1. / 10) / 3, 0}},
		// Σ n of running counted jobs − 2·Σ n waiting, over G·tau = 200.
		"throughput": {0: {0, 0}, 10: {-2. * 3 / 200, 0}, 20: {(1 - 2.*3) / 200, 0}, 24: {-2. * 3 / 200, 0},
			34: {-2. * 2 / 200, 0}},
	}
	for name, points := range want {
		t.Run(name, func(t *testing.T) {
			m, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 2})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			r, err := reward.New(name, 2)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // Reset must forget everything
				r.Reset(&sched.Window{First: 1, Jobs: 3, Begin: 10 * s, GPUs: 2, Tau: 100 * s})
			}
			seen := 0
			for m.View().Now() < 34*s {
				p, err := m.Advance(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				lump := 0.0
				for i := range p.Events {
					lump += r.Event(m.View(), &p.Events[i])
				}
				x, ok := points[p.Now/s]
				if !ok {
					t.Fatalf("a point at %v", p.Now)
				}
				seen++
				if math.Abs(r.Rate()-x[0]) > 1e-12 || math.Abs(lump-x[1]) > 1e-12 {
					t.Errorf("at %v: rate %v and %v at once, want %v and %v", p.Now, r.Rate(), lump, x[0], x[1])
				}
				for _, d := range script[p.Now] {
					if err := m.Apply(&d); err != nil {
						t.Fatal(err)
					}
				}
			}
			if seen != len(points) {
				t.Errorf("%d points, want %d", seen, len(points))
			}
		})
	}
}
