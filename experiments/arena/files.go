package arena

import (
	"context"

	"clustergym/experiments/brought"
	"clustergym/experiments/config"
)

// Files returns the paths of the files that cfg reads, by the key that names each (brought.Files).
func Files(cfg *config.Config) (map[string]string, error) { return brought.Files(cfg) }

// newWorldAt is NewWorld for a machine on which the files of cfg lie elsewhere: at holds their paths, by the keys of brought.Files. The
// world is called as cfg calls it, so that results do not depend on where its files lie.
func newWorldAt(ctx context.Context, cfg *config.Config, at map[string]string) (*World, error) {
	folded, err := cfg.Fold()
	if err != nil {
		return nil, err
	}
	local, given := folded, config.Given{}
	for key, path := range at {
		if key == brought.Model {
			path = brought.ModelPrefix + path
		}
		if err := given.Set(&local, key+"="+path); err != nil {
			return nil, err
		}
	}
	w, err := NewWorldContext(ctx, &local)
	if err != nil {
		return nil, err
	}
	w.Settings = folded.Env.Settings
	if at[brought.Trace] != "" {
		w.Trace.File, w.Info.File = folded.Trace.File, folded.Trace.File
	}
	if at[brought.Profiles] != "" {
		w.Trace.Profiles, w.Info.Profiles = folded.Trace.Profiles, folded.Trace.Profiles
	}
	if w.Model != nil && at[brought.Model] != "" {
		w.Model.File = folded.Estimates().File
	}
	return w, nil
}
