package rollout_test

import (
	"math"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// offering are windows that know the load of the whole workload.
type offering struct {
	foreseen
	load float64
}

func (o offering) Offered() float64 { return o.load }

// In a cluster in operation all stretches of imagined futures have the factor of the workload, as the run has; in
// windows each has a factor of its own.
func TestFuturesOfAClusterInOperationHaveOneFactor(t *testing.T) {
	jobs := generated(t, 3000, 5)
	cfg := jobselect.OngoingConfig()
	cfg.Window, cfg.Warm, cfg.Ahead, cfg.Estimates = 48, 48, "fifo", sim.MustEstimates("exact")
	cl := spec(t, "16x4")
	w, err := sched.Take(sched.Taken{MaxGPUs: cfg.MaxGPUs, Window: cfg.Window, Warm: cfg.Warm, Estimates: cfg.Estimates,
		Forecast: cfg.Forecast, Mode: cfg.Mode}, cl, jobs)
	if err != nil {
		t.Fatal(err)
	}
	kept := w.Windows.Jobs(traces.Training)
	gaps := map[string]time.Duration{} // from the job before, by job
	for i := range kept[1:] {
		gaps[kept[i+1].ID] = kept[i+1].Submit - kept[i].Submit
	}
	e, err := jobselect.New(cfg, cl, offering{foreseen{w.Windows}, 1.75}, traces.Test)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Reset(t.Context(), env.Episode{Seed: 7}, env.NewTimeStep(e.Spec())); err != nil {
		t.Fatal(err)
	}
	factors := func(src *rollout.Recorded) (least, most float64) {
		least = math.Inf(1)
		for seed := range uint64(40) {
			var f sim.Future
			if !src.Draw(e.State().View, seed, 20, &f) {
				continue
			}
			in, out := time.Duration(0), f.Jobs[len(f.Jobs)-1].Submit-f.Jobs[0].Submit
			for i := range f.Jobs[1:] {
				in += gaps[f.Jobs[i+1].ID]
			}
			x := float64(out) / float64(in)
			least, most = min(least, x), max(most, x)
		}
		return least, most
	}
	src, err := rollout.RecordedOf(e)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := factors(src); math.Abs(a-1.75/cfg.Load) > 1e-6 || math.Abs(b-1.75/cfg.Load) > 1e-6 {
		t.Errorf("factors from %v to %v, want %v", a, b, 1.75/cfg.Load)
	}
	own := rollout.NewRecorded(kept, cfg.Window, cfg.Load, nil)
	if a, b := factors(own); b < 1.2*a {
		t.Errorf("factors of windows from %v to %v", a, b)
	}
}
