package improper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/policymix"
	"clustergym/env/sched"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/traces"
)

// load returns the scenario of a workload.
func (s *settings) load(ctx context.Context, w *scheduled, path string) (*arena.Scenario, error) {
	cfg, err := s.config(w, ppo, 1, path)
	if err != nil {
		return nil, err
	}
	scenario, err := arena.NewScenarioContext(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	own, c := *scenario, *scenario.Settings.(*policymix.Config)
	c.Relative = "" // only completion times count here, and a reward relative to sjf plays sjf as well
	own.Settings = &c
	return &own, nil
}

// maker makes a policy for an environment.
type maker func(e sched.Arena) (agents.Policy, error)

// acting makes the policy that chooses one scheduler, −1 = any.
func acting(k int) maker {
	return func(sched.Arena) (agents.Policy, error) { return choosing(k), nil }
}

// trained makes the policy of the agent that was trained in a folder.
func trained(run string) maker {
	return func(e sched.Arena) (agents.Policy, error) {
		return arena.Trained(run, e.Spec())
	}
}

// sweeping is a rule by hand: smallest while most jobs that wait ask for between six hours and a day, else sjf.
func sweeping(e sched.Arena) (agents.Policy, error) {
	from := 0
	for _, f := range e.Spec().Obs {
		if f.Name == "queue" {
			return &queueFields{from: from, sizes: f.Shape[1], times: f.Shape[0]}, nil
		}
		from += f.Len()
	}
	return nil, errors.New("improper: the observation has no queue")
}

type queueFields struct{ from, times, sizes int }

// The class of jobs that ask for more than six hours and at most a day, in the observation of PolicyMix-v1.
const dayClass = 4

// Act implements agents.Policy.
func (h *queueFields) Act(_ context.Context, b *env.Batch, dst *env.Actions, _ []*rand.Rand) error {
	names, width := policymix.Policies(), len(b.Obs)/b.N
	for i := range b.N {
		queue := b.Obs[i*width+h.from:][:h.times*h.sizes]
		day, all := 0.0, 0.0
		for k, v := range queue {
			n := math.Expm1(float64(v) * math.Log(257)) // the number of jobs, which is shown as C(n, 256)
			all += n
			if k/h.sizes == dayClass {
				day += n
			}
		}
		order := "sjf"
		if day > all/2 {
			order = "smallest"
		}
		dst.Disc[i] = int32(slices.Index(names, order))
	}
	return nil
}

// windows plays a policy on the first n windows of a part of w, or on all if there are fewer. It returns their rows:
// the mean completion time, and of every scheduler the share of choices.
func windows(ctx context.Context, b *study.Bench, w *arena.Scenario, part traces.Part, n int, table string,
	labels map[string]string, made maker) ([]study.Row, error) {
	split := env.SplitTest
	if part == traces.Validation {
		split = env.SplitValidation
	}
	out, err := arena.EachWindow(ctx, w, part, n, b.Workers,
		func(e sched.Arena) (func(i int) ([]study.Row, error), error) {
			p, err := made(e)
			if err != nil {
				return nil, err
			}
			counts := &counting{Policy: p, n: make([]float64, e.Spec().MaskLen())}
			play := agents.NewPlayer(e, counts)
			jct := slices.IndexFunc(e.Spec().Info, func(f env.Field) bool { return f.Name == "jct_s" })
			return func(i int) ([]study.Row, error) {
				clear(counts.n)
				ep := env.Episode{Seed: env.EpisodeSeed(rng.Hash("improper/windows"), i), Window: i, Split: split}
				switch _, _, err := play.Play(ctx, ep, rng.Stream(ep.Seed, "eval/act")); {
				case errors.Is(err, sched.ErrUndecided): // there is nothing to choose, for any policy
					return nil, nil
				case err != nil:
					return nil, fmt.Errorf("%v: %w", labels, err)
				}
				row := study.RowOf(table, study.With(labels, "window", i))
				rows := []study.Row{row("jct_h", play.TimeStep().Info[jct]/3600)}
				all := 0.0
				for _, c := range counts.n {
					all += c
				}
				for k, c := range counts.n {
					rows = append(rows, row(policymix.Policies()[k], c/all))
				}
				return rows, nil
			}, nil
		})
	return slices.Concat(out...), err
}

// counting counts what a policy chooses.
type counting struct {
	agents.Policy
	n []float64
}

// Act implements agents.Policy.
func (c *counting) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	err := c.Policy.Act(ctx, b, dst, src)
	if err == nil {
		c.n[dst.Disc[0]]++
	}
	return err
}

// playBases plays every scheduler and uniform choices, and adds the best scheduler by the validation windows, and by
// each test window, in hindsight.
func (s *settings) playBases(ctx context.Context, b *study.Bench, w *scheduled,
	path string) (all []study.Row, err error) {
	scenario, err := s.load(ctx, w, path)
	if err != nil {
		return nil, err
	}
	labels := func(policy string) map[string]string {
		return map[string]string{"workload": w.name, "policy": policy}
	}
	mean := func(rows []study.Row) float64 {
		sum, n := 0.0, 0.0
		for _, r := range rows {
			if r.Metric == "jct_h" {
				sum, n = sum+r.Value, n+1
			}
		}
		return sum / n
	}
	names := policymix.Policies()
	tests := make([][]study.Row, len(names))
	won, least := 0, math.Inf(1)
	for k, name := range names {
		rows, err := windows(ctx, b, scenario, traces.Validation, s.Windows, "validation", labels(name), acting(k))
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if m := mean(rows); m < least {
			won, least = k, m
		}
		if tests[k], err = windows(ctx, b, scenario, traces.Test, s.Windows, "workloads", labels(name), acting(k)); err !=
			nil {
			return nil, err
		}
		all = append(all, tests[k]...)
		b.Progress(int64(k+1), int64(len(names)))
	}
	all = append(all, renamed(tests[won], best)...)
	each := len(names) + 1 // rows of a window
	for i := 0; i < len(tests[0]); i += each {
		at := 0
		for k := range tests {
			if tests[k][i].Value < tests[at][i].Value {
				at = k
			}
		}
		all = append(all, renamed(tests[at][i:i+each], hindsight)...)
	}
	for _, x := range []struct {
		policy string
		made   maker
	}{{uniform, acting(-1)}, {byHand, sweeping}} {
		rows, err := windows(ctx, b, scenario, traces.Test, s.Windows, "workloads", labels(x.policy), x.made)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// still plays a policy without streams: it takes the likeliest of what it would draw.
type still struct{ agents.Policy }

// Act implements agents.Policy.
func (s still) Act(ctx context.Context, b *env.Batch, dst *env.Actions, _ []*rand.Rand) error {
	return s.Policy.Act(ctx, b, dst, nil)
}

// playAgent plays the agent that was trained in a cell's folder; the mixture by state also without drawing.
func (s *settings) playAgent(ctx context.Context, b *study.Bench, w *scheduled, agent string, seed int, dir,
	path string) ([]study.Row, error) {
	scenario, err := s.load(ctx, w, path)
	if err != nil {
		return nil, err
	}
	play := func(policy string, made maker) ([]study.Row, error) {
		labels := map[string]string{"workload": w.name, "policy": policy, "seed": fmt.Sprint(seed)}
		return windows(ctx, b, scenario, traces.Test, s.Windows, "workloads", labels, made)
	}
	rows, err := play(agent, trained(dir))
	if err != nil || agent != byState {
		return rows, err
	}
	more, err := play(likeliest, func(e sched.Arena) (agents.Policy, error) {
		p, err := trained(dir)(e)
		return still{p}, err
	})
	return append(rows, more...), err
}
