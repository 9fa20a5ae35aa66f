package arena

import (
	"clustergym/env"
	"clustergym/experiments/config"
	"clustergym/experiments/envs"
	"clustergym/traces"
)

// JudgedSpec returns the specification of the environment in which the agent of a run is judged. It does not read the
// run's workload unless the shapes depend on it.
func JudgedSpec(cfg *config.Config) (env.Spec, error) {
	d := cfg.Descriptor()
	if !d.Simulated() && cfg.Trace.File != "" { // recorded graphs or workers decide the shapes
		w, err := NewWorld(cfg)
		if err != nil {
			return env.Spec{}, err
		}
		e, err := w.open(w.judged(), w.Source, traces.Test)
		if err != nil {
			return env.Spec{}, err
		}
		defer e.Close() //nolint:errcheck // it holds nothing
		return e.Spec(), nil
	}
	info, err := envs.Describe(d.ID, func(a *envs.Args) error {
		a.Settings, a.Trace = cfg.Env.Settings, cfg.Trace
		if d.Judged != nil {
			a.Settings = d.Judged(a.Settings)
		}
		if d.Takes.Cluster {
			a.Cluster = cfg.Cluster
		}
		return nil
	})
	if err != nil {
		return env.Spec{}, err
	}
	return info.Spec, nil
}
