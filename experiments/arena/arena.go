package arena

import (
	"bytes"
	"context"
	"io"
	"slices"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/env/vec"
	"clustergym/experiments/config"
	"clustergym/experiments/envs"
	"clustergym/experiments/ladder"
	"clustergym/experiments/report"
	"clustergym/experiments/rundir"
	"clustergym/experiments/statistic"
	"clustergym/experiments/texttable"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// Comparison is the result of an evaluation: a *report.Report over windows of a workload, a *report.EpisodeReport or a
// *report.AdaptReport. As JSON it is the document of gymctl eval --json.
type Comparison interface {
	WriteTable(w io.Writer) error
	Sheets() []texttable.Sheet // what WriteTable prints
}

var (
	_ Comparison = (*report.Report)(nil)
	_ Comparison = (*report.EpisodeReport)(nil)
)

// Compare evaluates the checkpoints of opt and the policies of cfg in any environment: on windows of a workload on the
// simulator, else on episodes.
func Compare(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error) {
	if err := ready(&cfg); err != nil {
		return nil, err
	}
	a, err := New(&cfg, opt.World)
	if err != nil {
		return nil, err
	}
	return a.Judge(ctx, cfg, opt)
}

// ready checks cfg, takes its kernels into use and returns it.
func ready(cfg *config.Config) error {
	if err := cfg.Validate(); err != nil {
		return &fault.Mistake{Err: err}
	}
	return config.UseKernels(cfg.Kernels)
}

// Arena trains and judges agents: a workload on a cluster, or an environment without a simulator.
type Arena interface {
	// Spec returns the specification of one environment, or an error that says what training lacks.
	Spec(cfg *config.Config) (env.Spec, error)
	NewVec(cfg *config.Config, workers int) (*vec.Vec, error)
	Describe(cfg *config.Config, say func(format string, args ...any))
	// Origin returns what checkpoints record about their workload; Same returns an error if a run with that origin cannot
	// continue here.
	Origin() map[string]string
	Same(origin map[string]string, dir string) error
	// Validate plays an agent that cfg trains greedily on the validation part, on workers goroutines.
	Validate(cfg *config.Config, agent Trainee, workers int) (*rundir.Validation, error)
	// Rivals judges the policies of cfg.Eval as Validate judges an agent: on the same windows, episodes or tasks, by the same
	// mean. Policies that cannot be judged so are left out.
	Rivals(ctx context.Context, cfg *config.Config, workers int) ([]Rival, error)
	// Judge compares opt.Checkpoints and the policies of cfg.
	Judge(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error)
}

var (
	_ Arena = (*World)(nil)
	_ Arena = (*Problem)(nil)
)

// New returns the arena of cfg, which must be valid. w is its world, nil = load it.
func New(cfg *config.Config, w *World) (Arena, error) {
	if w == nil {
		var err error
		if w, err = NewWorld(cfg); err != nil {
			return nil, err
		}
	}
	if cfg.Simulated() {
		return w, nil
	}
	p, err := w.problem()
	if err == nil && cfg.Meta() {
		return &Families{p}, nil
	}
	return p, err
}

// Spec implements Arena.
func (w *World) Spec(cfg *config.Config) (env.Spec, error) {
	for _, part := range []traces.Part{traces.Validation, traces.Test} {
		if _, err := w.count(part, 1); err != nil {
			return env.Spec{}, err
		}
	}
	e, err := w.NewEnv(traces.Training, cfg.Gamma())
	if err != nil {
		return env.Spec{}, err
	}
	return e.Spec(), nil
}

// Describe implements Arena.
func (w *World) Describe(cfg *config.Config, say func(format string, args ...any)) {
	say("workload  %v", w.Trace)
	for _, line := range w.LeftOut() {
		say("          left out: %s", line)
	}
	n := w.Workload.Windows
	say("          %d jobs to train on, %d validation windows, %d test windows of %d jobs",
		len(n.Jobs(traces.Training)), n.Count(traces.Validation), n.Count(traces.Test), n.Length())
	say("cluster   %s", w.Cluster().Name)
	if e := cfg.Env.JobSelect(); e != nil {
		say("env       %s: reward %s, load %g, %s %s, placement %s, comm %s", cfg.Env.ID, e.Reward, e.Load, ladder.Key, e.Estimates.Label(), e.Placement, e.Comm)
		if e.Preempt {
			say("          %s", e.Price())
		}
		return
	}
	say("env       %s: %s; %s %s", cfg.Env.ID, w.About.About, ladder.Key, w.About.Cut(w.Settings).Estimates.Label())
}

// LeftOut says in one sentence for each reason which jobs the environment does not take.
func (w *World) LeftOut() []string {
	if w.Workload == nil {
		return nil
	}
	return workload.LeftOut(&w.Workload.Left, w.Cluster().Name, "env.max_gpus")
}

// The keys of the hashes in a checkpoint's manifest: of the trace, and of the model of estimates gbdt:FILE, if there is one.
const (
	extraSHA256 = "trace_sha256"
	extraModel  = "model_sha256"
)

// Origin implements Arena.
func (w *World) Origin() map[string]string {
	o := map[string]string{"workload": w.Trace.String(), "cluster": w.Cluster().Name, extraSHA256: w.Trace.SHA256}
	if w.Model != nil {
		o[extraModel] = w.Model.SHA256
	}
	return o
}

// Same implements Arena.
func (w *World) Same(origin map[string]string, dir string) error {
	if had, has := origin[extraSHA256], w.Trace.SHA256; had != has {
		return fault.Mistakef("trace %s has changed since the run in %s began (sha256 %.12s…, then %.12s…)", w.Trace.File, dir, has, had)
	}
	if had := origin[extraModel]; w.Model != nil && had != w.Model.SHA256 {
		return fault.Mistakef("model %s has changed since the run in %s began (sha256 %.12s…, then %.12s…)", w.Model.File, dir, had, w.Model.SHA256)
	}
	return nil
}

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

// greedy returns an agent with these weights as a contestant that plays greedily.
func greedy(cfg *config.Config, weights []byte) contestant {
	return contestant{name: "agent", kind: "checkpoint", player: func(e sched.Arena) (player, error) {
		p, err := NewPolicy(cfg, e.Spec(), bytes.NewReader(weights))
		if err != nil {
			return nil, err
		}
		return policyPlayer(e, p), nil
	}}
}

// Validate implements Arena.
func (w *World) Validate(cfg *config.Config, agent Trainee, workers int) (*rundir.Validation, error) {
	if cfg.Eval.Choose == config.ByReturn {
		p, err := w.problem()
		if err != nil {
			return nil, err
		}
		return p.Validate(cfg, agent, workers)
	}
	n, err := w.count(traces.Validation, cfg.Eval.Validation)
	if err != nil {
		return nil, err
	}
	weights, err := weightsOf(agent)
	if err != nil {
		return nil, err
	}
	v := &evaluation{world: w, cfg: &cfg.Eval, part: traces.Validation, windows: n, seeds: 1, workers: workers}
	played, err := v.play(context.Background(), []contestant{greedy(cfg, weights)}, nil)
	if err != nil {
		return nil, err
	}
	return w.validation(cfg, played[0][0]), nil
}

// validation returns the validation of a policy that played every validation window.
func (w *World) validation(cfg *config.Config, played []result) *rundir.Validation {
	values := make([]float64, len(played))
	for i := range values {
		values[i] = played[i].score
	}
	v := &rundir.Validation{Windows: len(values)}
	if w.About.Metric.Key == envs.JCT.Key && cfg.Eval.Choose != config.ByMean {
		v.JCT = statistic.GeometricMean(values)
		return v
	}
	return scored(cfg, w.About.Metric, values, v)
}

// scored sets v to the mean of the environment's metric over windows or episodes. It is the geometric mean if all values
// are positive: windows differ by a factor of a hundred, so an arithmetic mean over a few of them would depend on the one
// or two most crowded ones. eval.choose: mean asks for the arithmetic mean all the same.
func scored(cfg *config.Config, m envs.Metric, values []float64, v *rundir.Validation) *rundir.Validation {
	mean := statistic.Mean(values)
	v.Mean = "mean"
	if slices.Min(values) > 0 && cfg.Eval.Choose != config.ByMean {
		mean, v.Mean = statistic.GeometricMean(values), "geometric mean"
	}
	v.Score, v.Metric, v.Counts = &mean, m.Key, m
	return v
}

// Judge implements Arena.
func (w *World) Judge(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error) {
	opt.World = w
	r, err := Evaluate(ctx, cfg, opt)
	if err != nil {
		return nil, err
	}
	return r, nil
}
