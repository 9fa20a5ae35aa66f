package arena

import (
	"bytes"
	"context"
	"slices"

	"clustergym/env"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	"clustergym/lab/stream"
	"clustergym/simulator/policyname"
	"clustergym/traces"
)

// weightsFile is the part of a checkpoint that is enough to play.
const weightsFile = "weights.safetensors"

// weightsOf returns an agent's current weights, for policies that play in parallel.
func weightsOf(agent Trainee) ([]byte, error) {
	for _, p := range agent.Parts() {
		if p.Name() == weightsFile {
			var b bytes.Buffer
			_, err := p.WriteTo(&b)
			return b.Bytes(), err
		}
	}
	panic("experiments: an agent without " + weightsFile)
}

// Baseline is a policy that agents are compared with, and how it does where agents in training are validated.
type Baseline struct {
	Name       string
	Validation *rundir.Validation
}

// Validate implements Arena.
func (w *Scenario) Validate(cfg *config.Config, agent Trainee, workers int) (*rundir.Validation, error) {
	r, err := w.validating(cfg, workers)
	if err != nil {
		return nil, err
	}
	return r.validate(agent)
}

// Baselines implements Arena.
func (w *Scenario) Baselines(ctx context.Context, cfg *config.Config, workers int) ([]Baseline, error) {
	r, err := w.validating(cfg, workers)
	if err != nil {
		return nil, err
	}
	return r.baselines(ctx)
}

// validating returns a runner of the validation streams or windows of cfg, or of episodes where there is no simulator
// or validations go by the return.
func (w *Scenario) validating(cfg *config.Config, workers int) (*runner, error) {
	switch {
	case cfg.Streamed() && cfg.Eval.Choose != config.ByReturn:
		return w.streaming(context.Background(), validated(cfg), traces.Validation, stream.Validation, workers)
	case w.About.Simulated() && cfg.Eval.Choose != config.ByReturn:
		return w.runner(cfg, traces.Validation, cfg.Eval.Validation, workers)
	}
	return w.through(cfg, traces.Validation, cfg.Eval.Validation, workers), nil
}

// validated returns cfg for validations on draws, which are many in a training: eval.validation draws of half the size.
func validated(cfg *config.Config) *config.Config {
	own, c := *cfg, cfg.Eval.Streams.Filled()
	own.Eval.Streams = stream.Config{Draws: cfg.Eval.Validation, Jobs: max(10, c.Jobs/2), Warm: max(1, c.Warm/2)}
	return &own
}

// validate plays an agent that the configuration trains.
func (r *runner) validate(agent Trainee) (*rundir.Validation, error) {
	weights, err := weightsOf(agent)
	if err != nil {
		return nil, err
	}
	c := &Opened{Cfg: *r.cfg, Weights: weights}
	r.policies = []policy{{name: "agent", kind: report.KindCheckpoint, player: acting(c.In)}}
	played, _, err := r.results(context.Background())
	if err != nil {
		return nil, err
	}
	return r.validation(played[0][0]), nil
}

// baselines plays the policies of the configuration that can be validated as agents are. Planners do not act step by
// step, so that they have a metric and no return; schedulers that see the whole queue play on windows alone.
func (r *runner) baselines(ctx context.Context) ([]Baseline, error) {
	all, err := r.scenario.baselines(r.cfg)
	if err != nil {
		return nil, err
	}
	r.seeds = 1
	r.policies = slices.DeleteFunc(all, func(p policy) bool {
		return !r.windows && (p.kind == "heuristic" || p.kind == "hindsight" || p.kind == "planner" && !r.byScore())
	})
	played, _, err := r.results(ctx)
	if err != nil {
		return nil, err
	}
	var out []Baseline
	for i := range r.policies {
		out = append(out, Baseline{r.policies[i].name, r.validation(played[i][0])})
	}
	return out, nil
}

// byScore returns whether validations go by the metric of the environment, not by the return.
func (r *runner) byScore() bool {
	return r.windows || r.scenario.About.Metric.Of != nil && r.cfg.Eval.Choose != config.ByReturn &&
		!r.scenario.About.Simulated()
}

// validation returns the validation of a policy that played every window or episode.
func (r *runner) validation(played []result) *rundir.Validation {
	v, m := &rundir.Validation{}, r.scenario.About.Metric
	switch {
	case r.streams != nil:
		v.Draws = len(played)
		cfg := *r.cfg
		cfg.Eval.Choose = config.ByMean // as the comparison counts
		return scored(&cfg, m, each(played, scoreOf), v)
	case r.windows:
		v.Windows = len(played)
	default:
		v.Episodes = len(played)
	}
	switch {
	case !r.byScore():
		mean := statistic.Mean(each(played, returnOf))
		v.Return = &mean
	case r.windows && m.Key == envs.JCT.Key && r.cfg.Eval.Choose != config.ByMean:
		v.JCT = statistic.GeometricMean(each(played, scoreOf))
	default:
		return scored(r.cfg, m, each(played, scoreOf), v)
	}
	return v
}

// scored sets v to the mean of the environment's metric over windows or episodes. It is the geometric mean if all
// values are positive: windows differ by a factor of a hundred, so an arithmetic mean over a few of them would depend
// on the one or two most crowded ones. eval.choose: mean asks for the arithmetic mean all the same.
func scored(cfg *config.Config, m envs.Metric, values []float64, v *rundir.Validation) *rundir.Validation {
	mean := statistic.Mean(values)
	v.Mean = "mean"
	if slices.Min(values) > 0 && cfg.Eval.Choose != config.ByMean {
		mean, v.Mean = statistic.GeometricMean(values), "geometric mean"
	}
	v.Score, v.Metric, v.Counts = &mean, m.Key, m
	return v
}

// ValidationScores are how a checkpoint and its baselines do on the validation windows of its run.
type ValidationScores struct {
	Metric    string // of Validation.At
	Windows   int
	Policies  []Baseline // the checkpoint first
	Paired    []statistic.Paired
	Lower     bool   // lower values are better
	Title     string // of the metric
	PerWindow [][]float64
}

// ValidationScores plays the validation windows with the checkpoint in dir, on workers goroutines, and with the
// policies of cfg that repeat themselves. Those that look ahead would take minutes and are left out.
func (w *Scenario) ValidationScores(ctx context.Context, cfg *config.Config, dir string,
	workers int) (*ValidationScores, error) {
	r, err := w.validating(cfg, workers)
	if err != nil {
		return nil, err
	}
	if err := r.join(ctx, &EvalOptions{Checkpoints: []string{dir}}); err != nil {
		return nil, err
	}
	r.seeds = 1
	r.policies = slices.DeleteFunc(r.policies, func(p policy) bool {
		return p.timed || p.knows || p.missing != "" || policyname.Of(p.name).Ahead == policyname.Rollout
	})
	played, _, err := r.results(ctx)
	if err != nil {
		return nil, err
	}
	m := w.About.Metric
	out := &ValidationScores{Windows: r.episodes, Lower: !m.Higher, Title: m.Title}
	for i := range r.policies {
		p := &r.policies[i]
		v, per := r.validation(played[i][0]), each(played[i][0], scoreOf)
		out.Metric = v.At(0).Metric
		out.Policies = append(out.Policies, Baseline{p.name, v})
		out.PerWindow = append(out.PerWindow, per)
		if p.kind != report.KindCheckpoint {
			out.Paired = append(out.Paired, statistic.Compare(cfg.Eval.Seed, r.policies[0].name, p.name, m.Key,
				statistic.Sample{out.PerWindow[0]}, statistic.Sample{per}, m.Higher))
		}
	}
	return out, nil
}

// Windows returns how many windows of a part a run of cfg is judged on.
func (w *Scenario) Windows(cfg *config.Config, part traces.Part) (int, error) {
	if cfg.Streamed() {
		return cfg.Eval.Streams.Filled().Draws, nil
	}
	n := cfg.Eval.Validation
	if part == traces.Test {
		n = cfg.Eval.Windows
	}
	return w.count(part, n)
}

// Episode returns window i of any part, as it is validated and evaluated.
func (w *Scenario) Episode(cfg *config.Config, i int) env.Episode { return windowOf(&cfg.Eval, i) }
