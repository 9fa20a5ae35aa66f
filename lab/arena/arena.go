package arena

import (
	"context"

	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	"clustergym/lab/workload"
	"clustergym/traces"
)

// Arena trains and judges agents: a workload on a cluster, or an environment without a simulator.
type Arena interface {
	// Spec returns the specification of one environment, or an error that says what training lacks.
	Spec(cfg *config.Config) (env.Spec, error)
	NewVec(cfg *config.Config, workers int) (*vec.Vec, error)
	// Describe says what runs of cfg train on.
	Describe(cfg *config.Config) []Fact
	// Origin returns what checkpoints record about their workload; Same returns an error if a run with that origin cannot
	// continue here.
	Origin() map[string]string
	Same(origin map[string]string, dir string) error
	// Validate plays an agent that cfg trains greedily on the validation part, on workers goroutines.
	Validate(cfg *config.Config, agent Trainee, workers int) (*rundir.Validation, error)
	// Baselines judges the policies of cfg.Eval as Validate judges an agent: on the same windows, episodes or tasks, by
	// the same mean. Policies that cannot be judged so are left out.
	Baselines(ctx context.Context, cfg *config.Config, workers int) ([]Baseline, error)
	// Judge compares opt.Checkpoints and the policies of cfg.
	Judge(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error)
}

var (
	_ Arena = (*Scenario)(nil)
	_ Arena = (*Problem)(nil)
)

// New returns the arena of cfg, which must be valid. w is its scenario, nil = load it.
func New(cfg *config.Config, w *Scenario) (Arena, error) {
	if w == nil {
		var err error
		if w, err = NewScenario(cfg); err != nil {
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
func (w *Scenario) Spec(cfg *config.Config) (env.Spec, error) {
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
func (w *Scenario) Describe(cfg *config.Config) []Fact {
	facts := []Fact{Factf("workload", "%v", w.Trace)}
	for _, line := range w.LeftOut() {
		facts = append(facts, Factf("", "left out: %s", line))
	}
	n := w.Taken.Windows
	switch parts := []any{len(n.Jobs(traces.Training)), len(n.Jobs(traces.Validation)), len(n.Jobs(traces.Test))}; {
	case !cfg.Streamed():
		facts = append(facts, Factf("", "%d jobs to train on, %d validation windows, %d test windows of %d jobs",
			parts[0], n.Count(traces.Validation), n.Count(traces.Test), n.Length()))
	case cfg.Trace.File == "":
		facts = append(facts, Factf("", "%d jobs to train on; validation and test have draws of their own", parts[0]))
	default:
		facts = append(facts, Factf("", "%d jobs to train on, %d for validation, %d to be judged on", parts...))
	}
	facts = append(facts, Fact{"cluster", w.Cluster().Name})
	e := cfg.Env.JobSelect()
	if e == nil {
		return append(facts, Factf("env", "%s: %s; %s %s", cfg.Env.ID, w.About.About, report.EstimatesKey,
			w.About.Cut(w.Settings).Estimates.Label()))
	}
	facts = append(facts, Factf("env", "%s: reward %s, load %g, %s %s, placement %s, comm %s",
		cfg.Env.ID, e.Reward, e.Load, report.EstimatesKey, e.Estimates.Label(), e.Placement, e.Comm))
	if e.Preempt {
		facts = append(facts, Fact{"", e.Price()})
	}
	return facts
}

// LeftOut says in one sentence for each reason which jobs the environment does not take.
func (w *Scenario) LeftOut() []string {
	if w.Taken == nil {
		return nil
	}
	return workload.LeftOut(&w.Taken.Left, w.Cluster().Name, "env.max_gpus")
}

// The keys of the hashes in a checkpoint's manifest: of the trace, and of the model of estimates gbdt:FILE, if there is
// one.
const (
	extraSHA256 = "trace_sha256"
	extraModel  = "model_sha256"
)

// Origin implements Arena.
func (w *Scenario) Origin() map[string]string {
	if !w.About.Simulated() && !w.Recorded() {
		return nil
	}
	o := map[string]string{"workload": w.Trace.String(), "cluster": w.Cluster().Name, extraSHA256: w.Trace.SHA256}
	if w.Model != nil {
		o[extraModel] = w.Model.SHA256
	}
	return o
}

// Same implements Arena.
func (w *Scenario) Same(origin map[string]string, dir string) error {
	if w.Origin() == nil {
		return nil
	}
	if had, has := origin[extraSHA256], w.Trace.SHA256; had != has {
		return fault.Mistakef("trace %s has changed since the run in %s began (sha256 %.12s…, then %.12s…)", w.Trace.File,
			dir, has, had)
	}
	if had := origin[extraModel]; w.Model != nil && had != w.Model.SHA256 {
		return fault.Mistakef("model %s has changed since the run in %s began (sha256 %.12s…, then %.12s…)", w.Model.File,
			dir, had, w.Model.SHA256)
	}
	return nil
}
