package encode_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/jobselect"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// remembering are windows with a predictor.
type remembering struct{ *traces.Windows }

func (w remembering) Predictor(sim.Estimates) (predict.Maker, error) {
	return history.NewArchive(w.All()), nil
}

// An environment's encoder follows the run. What it writes is what an encoder writes that has seen nothing of the run
// and looks everything up: after a warm-up, with wrong estimates that jobs outlive, with shared GPUs and without.
func TestFollowingARunChangesNothing(t *testing.T) {
	seed := testseed.Or(1)
	t.Logf("%s=%d", testseed.Key, seed)
	r := rand.New(rand.NewPCG(seed, 4))
	tree := cluster.Spec{Name: "tree",
		Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}, {Count: 1, GPUs: 3}}}}}
	for _, estimates := range []string{"exact", "trace", "noisy:1", "none", "history"} {
		for _, x := range []struct {
			spec    cluster.Spec
			shares  int // of ten jobs
			preempt bool
		}{{tree, 0, false}, {tree, 0, true}, {tree, 2, r.IntN(2) == 0}, {cluster.Spec{Name: "pool", Pool: 20}, 1, false}} {
			jobs := make([]traces.Job, 300)
			at := time.Duration(0)
			for i := range jobs {
				at += time.Duration(r.ExpFloat64() * 200 * float64(second))
				jobs[i] = job(string(rune('a'+i)), at, time.Duration(1+r.IntN(3000))*second, 1+r.IntN(6))
				jobs[i].Estimate = time.Duration(1+r.IntN(3000)) * second
				jobs[i].User = string(rune('A' + r.IntN(5)))
				if r.IntN(10) < x.shares {
					jobs[i].GPUs, jobs[i].GPUMilli = 1+r.IntN(2), 1+r.IntN(999)
				}
			}
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm, cfg.Estimates, cfg.Comm = 40, 30, sim.MustEstimates(estimates),
				[]string{"none", "tree"}[r.IntN(2)]
			cfg.Forecast = "off"
			cfg.Visible, cfg.MaxGPUs = []int{4, 10, 64}[r.IntN(3)], []int{6, 8, 20}[r.IntN(3)] // rows short and long
			if cfg.Preempt = x.preempt; x.preempt {
				cfg.Running, cfg.Checkpoint, cfg.Restart = 8, time.Duration(r.IntN(60))*second, time.Duration(r.IntN(60))*second
			}
			w, err := jobselect.NewWorkload(cfg, x.spec, jobs)
			if err != nil {
				t.Fatal(err)
			}
			e, err := jobselect.New(cfg, x.spec, remembering{w.Windows}, traces.Training)
			if err != nil {
				t.Fatal(err)
			}
			c, err := cluster.New(x.spec)
			if err != nil {
				t.Fatal(err)
			}
			rule, err := cluster.NewPlacement(cfg.Placement)
			if err != nil {
				t.Fatal(err)
			}
			ts, want := env.NewTimeStep(e.Spec()), []float32(nil)
			from, to := map[string]int{}, 0 // where the fields are that the image has
			for range 3 {
				if err := e.Reset(ctx, env.Episode{Seed: r.Uint64(), Window: -1}, ts); err != nil {
					t.Fatal(err)
				}
				for n := 0; !ts.Kind.Last(); n++ {
					other, err := encode.NewImage(encode.LogAxis(), c, cfg.Visible, cfg.MaxGPUs, encode.NewPlacements(rule), nil)
					if err != nil {
						t.Fatal(err)
					}
					if want == nil {
						for _, f := range other.Fields() {
							from[f.Name] = to
							to += f.Len()
						}
						want = make([]float32, to)
					}
					other.Encode(want, e.State())
					for name, at := range from {
						got := field(t, e, ts, name)
						for i, v := range got {
							if v != want[at+i] && (name != "jobs" || !x.preempt) { // with preemption jobs has more numbers
								t.Fatalf(
									"estimates %s, cluster %s, %d of 10 jobs share GPUs, preempt %v: after %d steps number %d of field %s is %v, want %v",
									estimates, x.spec.Name, x.shares, x.preempt, n, i, name, v, want[at+i])
							}
						}
					}
					step(t, e, anyLegal(r, ts.Mask), ts)
				}
			}
		}
	}
}

func anyLegal(r *rand.Rand, mask []bool) int {
	for {
		if a := r.IntN(len(mask)); mask[a] {
			return a
		}
	}
}
