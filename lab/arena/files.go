package arena

import (
	"context"

	"clustergym/lab/brought"
	"clustergym/lab/config"
)

// newWorldAt is NewScenario for a machine on which the files of cfg lie elsewhere: at holds their paths, by the keys of
// brought.Files. The scenario is called as cfg calls it, so that results do not depend on where its files lie.
func newWorldAt(ctx context.Context, cfg *config.Config, at map[string]string) (*Scenario, error) {
	local := *cfg
	for key, path := range at {
		if key == brought.Model {
			path = brought.ModelPrefix + path
		}
		if err := local.Set(key + "=" + path); err != nil {
			return nil, err
		}
	}
	w, err := NewScenarioContext(ctx, &local)
	if err != nil {
		return nil, err
	}
	w.Settings = cfg.Env.Settings
	if at[brought.Trace] != "" {
		w.Trace.File, w.Info.File = cfg.Trace.File, cfg.Trace.File
	}
	if at[brought.Profiles] != "" {
		w.Trace.Profiles, w.Info.Profiles = cfg.Trace.Profiles, cfg.Trace.Profiles
	}
	if w.Model != nil && at[brought.Model] != "" {
		w.Model.File = cfg.Estimates().File
	}
	return w, nil
}
