package speed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/env/vec"
	"clustergym/internal/plain"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// quickstart returns the preset quickstart-exact, with a smaller workload for a quick measurement.
func (b *bench) quickstart() (*config.Config, error) {
	cfg := config.For(jobselect.V1)
	if err := configs.Decode(configs.Presets, "quickstart-exact.yaml", &cfg); err != nil {
		return nil, err
	}
	if b.cfg.Quick {
		cfg.Trace.Synth.Jobs = 12_000
	}
	return &cfg, nil
}

// scenario returns the scenario of the preset quickstart-exact.
func (b *bench) scenario() (*arena.Scenario, error) {
	cfg, err := b.quickstart()
	if err != nil {
		return nil, err
	}
	return arena.NewScenario(cfg)
}

// encoders measures encoding alone: the images of JobSelect-v1 in the middle of an episode.
func (b *bench) encoders(ctx context.Context) error {
	w, err := b.scenario()
	if err != nil {
		return err
	}
	e, err := w.JobSelect(traces.Training, 1)
	if err != nil {
		return err
	}
	play := newWalk(e)
	for range 150 {
		if err := play.step(ctx); err != nil {
			return err
		}
	}
	for play.ts.Kind.Last() { // the state must be inside an episode
		if err := play.step(ctx); err != nil {
			return err
		}
	}
	own := w.Settings.(*jobselect.Config)
	rule, err := cluster.NewPlacement(own.Placement)
	if err != nil {
		return err
	}
	for _, axis := range []struct {
		name string
		axis *encode.Axis
	}{{"logarithmic", encode.LogAxis()}, {"linear", encode.LinearAxis(own.Row)}} {
		c, err := cluster.New(w.Cluster())
		if err != nil {
			return err
		}
		image, err := encode.NewImage(axis.axis, c, own.Visible, own.MaxGPUs, encode.NewPlacements(rule), nil)
		if err != nil {
			return err
		}
		dst := make([]float32, e.Spec().ObsLen())
		row := Row{Group: "encoders",
			What: fmt.Sprintf("images of %s, %d numbers, %s axis", jobselect.ID, len(dst), axis.name), Cluster: w.Cluster().Name,
			Unit: "observations/s"}
		err = b.measure(ctx, row, func(context.Context) (int, error) {
			for range 100 {
				image.Encode(dst, e.State())
			}
			return 100, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// walk plays one episode after the other with random legal actions.
type walk struct {
	e    *sched.Env
	ts   *env.TimeStep
	rng  *rand.Rand
	disc [1]int32
	seed uint64
}

func newWalk(e *sched.Env) *walk {
	w := &walk{e: e, ts: env.NewTimeStep(e.Spec()), rng: rng.Stream(1, "bench/walk")}
	w.ts.Kind = env.Terminated
	return w
}

// step takes one step. Before the first step of an episode it resets the environment.
func (w *walk) step(ctx context.Context) error {
	if w.ts.Kind.Last() {
		if err := w.e.Reset(ctx, env.Episode{Seed: w.seed % 64, Window: -1}, w.ts); err != nil {
			return err
		}
		w.seed++
	}
	w.disc[0] = legal(w.rng, w.ts.Mask)
	return w.e.Step(ctx, env.Action{Disc: w.disc[:]}, w.ts)
}

// legal draws a legal action of a discrete space.
func legal(r *rand.Rand, mask []bool) int32 {
	for {
		if a := r.IntN(len(mask)); mask[a] {
			return int32(a)
		}
	}
}

// envs measures environment steps with random legal actions, including observations and resets.
func (b *bench) envs(ctx context.Context) error {
	w, err := b.scenario()
	if err != nil {
		return err
	}
	alone, err := b.alone(ctx, w, ", one", 100_000)
	if err != nil {
		return err
	}
	for _, rows := range []int{8, 64, 256} {
		one := 0.0 // rate with one worker
		for _, workers := range workerCounts(b.report.Machine.Processors) {
			mark := 0.0
			switch {
			case workers == 1 && rows == 64:
				mark = markTogether * alone
			case workers == 2 && rows >= 64:
				mark = markWorkers * one
			}
			rate, err := b.together(ctx, w, rows, workers, mark)
			if err != nil {
				return err
			}
			if workers == 1 {
				one = rate
			}
		}
	}
	cfg, err := b.quickstart()
	if err != nil {
		return err
	}
	cfg.Env.JobSelect().Relative = ""
	if w, err = arena.NewScenario(cfg); err != nil {
		return err
	}
	_, err = b.alone(ctx, w, ", one, no baseline beside it", 500_000)
	return err
}

// The marks of environments that are stepped together follow from other rows: how much of the rate of one environment
// 64 of them keep on one worker, and how many times the rate of one worker two reach.
const (
	markTogether = 0.9
	markWorkers  = 1.7
)

// alone measures one environment and returns its rate.
func (b *bench) alone(ctx context.Context, w *arena.Scenario, what string, mark float64) (rate float64, err error) {
	e, err := w.JobSelect(traces.Training, 1)
	if err != nil {
		return 0, err
	}
	const some = 200
	one := newWalk(e)
	row := Row{Group: "envs", What: jobselect.ID + what, Cluster: w.Cluster().Name, Policy: "random", Unit: "steps/s",
		Mark: mark}
	err = b.measure(ctx, row, func(ctx context.Context) (int, error) {
		for range some {
			if err := one.step(ctx); err != nil {
				return 0, err
			}
		}
		return some, nil
	})
	return b.lastRate(), err
}

// lastRate returns the rate of the row measured last.
func (b *bench) lastRate() float64 {
	if n := len(b.report.Rows); n > 0 {
		return b.report.Rows[n-1].Rate
	}
	return 0
}

// together measures rows environments that are stepped together and returns their rate.
func (b *bench) together(ctx context.Context, w *arena.Scenario, rows, workers int,
	mark float64) (rate float64, err error) {
	v, err := vec.Open(rows, workers, func() (env.Env, error) { return w.NewEnv(traces.Training, 1) })
	if err != nil {
		return 0, err
	}
	batch, actions, r := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows), rng.Stream(1, "bench/vec")
	if err := v.Reset(ctx, nil, nil, batch); err != nil {
		return 0, err
	}
	m := v.Spec().MaskLen()
	row := Row{Group: "envs", What: fmt.Sprintf("%s, %d together, %s", jobselect.ID, rows,
		plain.Count(workers, "worker", "workers")), Cluster: w.Cluster().Name, Policy: "random", Unit: "steps/s", Mark: mark}
	err = b.measure(ctx, row, func(ctx context.Context) (int, error) {
		const calls = 25
		for range calls {
			for i := range rows {
				actions.Disc[i] = legal(r, batch.Mask[i*m:(i+1)*m])
			}
			if err := v.Step(ctx, nil, actions, batch); err != nil {
				return 0, err
			}
		}
		return calls * rows, nil
	})
	return b.lastRate(), errors.Join(err, v.Close())
}

// workerCounts returns 1 and the number of processors.
func workerCounts(processors int) []int {
	if processors > 1 {
		return []int{1, processors}
	}
	return []int{1}
}
