package arena

import (
	"context"
	"fmt"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// Scenario is the workload or other source of the episodes of a configuration, with the settings of its environment. It
// is immutable and can be shared.
type Scenario struct {
	*envs.Workload
	About    *envs.Descriptor
	Settings envs.Settings
	Trace    workload.Info
}

// NewScenario loads the workload and cluster that cfg names.
func NewScenario(cfg *config.Config) (*Scenario, error) {
	return NewScenarioContext(context.Background(), cfg)
}

// NewScenarioContext is NewScenario with a context that can cancel loading.
func NewScenarioContext(ctx context.Context, cfg *config.Config) (*Scenario, error) {
	if len(cfg.Env.Args) > 0 {
		panic(fmt.Sprintf("arena: env.args are not folded: %q", cfg.Env.Args))
	}
	d := cfg.Descriptor()
	w, err := envs.LoadWorkload(ctx, d, cfg.Env.Settings, cfg.Cluster, cfg.Trace)
	if err != nil {
		return nil, err
	}
	return &Scenario{Workload: w, About: d, Settings: cfg.Env.Settings, Trace: w.Info}, nil
}

// Cluster returns the cluster of a simulated scenario.
func (w *Scenario) Cluster() cluster.Spec { return w.Source.Cluster }

// NewEnv returns an environment over one part of the workload. If the environment discounts by time, gamma replaces the
// configured discount. Settings that make training easier apply to the training part only, see envs.Descriptor.Judged:
// validation and test windows are played until their last job ends, as heuristics play them.
func (w *Scenario) NewEnv(part traces.Part, gamma float64) (sched.Arena, error) {
	e, err := w.open(w.settings(part, gamma), w.Source, part)
	if err != nil {
		return nil, err
	}
	return e.(sched.Arena), nil
}

// JobSelect is NewEnv for JobSelect-v1.
func (w *Scenario) JobSelect(part traces.Part, gamma float64) (*sched.Env, error) {
	e, err := w.NewEnv(part, gamma)
	if err != nil {
		return nil, err
	}
	return e.(*sched.Env), nil
}

// Open returns an environment in which policies act and are judged through actions alone, in all parts.
func (w *Scenario) Open() (env.Env, error) { return w.open(w.Settings, w.Source, traces.Training) }

func (w *Scenario) open(s envs.Settings, src *envs.Source, part traces.Part) (env.Env, error) {
	e, err := w.About.Open(s, src, part)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	return e, nil
}

// settings returns the settings of environments over part.
func (w *Scenario) settings(part traces.Part, gamma float64) envs.Settings {
	s := w.Settings
	if part != traces.Training {
		return w.judged()
	}
	if w.About.Training != nil {
		s = w.About.Training(s, gamma)
	}
	return s
}

// judged returns the settings of evaluations.
func (w *Scenario) judged() envs.Settings {
	if w.About.Judged != nil {
		return w.About.Judged(w.Settings)
	}
	return w.Settings
}

// NewVec returns the environments that cfg trains in.
func (w *Scenario) NewVec(cfg *config.Config, workers int) (*vec.Vec, error) {
	return vec.Open(cfg.Train.Envs, workers, func() (env.Env, error) { return w.NewEnv(traces.Training, cfg.Gamma()) })
}

// count returns how many windows to play, at most n. A part without windows is the user's mistake.
func (w *Scenario) count(part traces.Part, n int) (int, error) {
	have := w.Taken.Windows.Count(part)
	if have == 0 {
		_, err := w.Taken.Windows.At(part, 0, 0)
		return 0, w.About.WithFlags(&fault.Mistake{Err: fmt.Errorf("%s: %w", w.Trace.File, err)})
	}
	return min(n, have), nil
}
