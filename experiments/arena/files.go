package arena

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"clustergym/env/cluster"
	"clustergym/experiments/config"
	"clustergym/experiments/workload"
)

// Files returns the paths of the files that cfg reads, by the key that names each: the trace, its throughput table, the cluster
// and the model of estimates. Presets and short forms of clusters are none.
func Files(cfg *config.Config) (map[string]string, error) {
	files := map[string]string{}
	add := func(key, name string) error {
		if name == "" {
			return nil
		}
		path, err := workload.Located(name)
		files[key] = path
		return err
	}
	if err := errors.Join(add(fileKeys.trace, cfg.Trace.File), add(fileKeys.profiles, cfg.Trace.Profiles)); err != nil {
		return nil, err
	}
	if _, model, ok := strings.Cut(cfg.Estimates(), modelPrefix); ok {
		if err := add(fileKeys.model, model); err != nil {
			return nil, err
		}
	}
	if _, short, _ := cluster.Parse(cfg.Cluster); !short && cfg.Cluster != "" {
		path, err := workload.Located(cfg.Cluster)
		if err != nil {
			return nil, err
		}
		if i, err := os.Stat(path); err == nil && i.Mode().IsRegular() {
			files[fileKeys.cluster] = path
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, &workload.InputError{Err: err}
		}
	}
	return files, nil
}

// Named returns what cfg, with env.args folded, names as files, by the keys of Files. Unlike Files it looks at no file: every
// cluster that is neither a short form nor a preset counts as one.
func Named(cfg *config.Config) map[string]string {
	named := map[string]string{}
	for key, name := range map[string]string{fileKeys.trace: cfg.Trace.File, fileKeys.profiles: cfg.Trace.Profiles} {
		if name != "" {
			named[key] = name
		}
	}
	if _, model, ok := strings.Cut(cfg.Estimates(), modelPrefix); ok {
		named[fileKeys.model] = model
	}
	if _, short, _ := cluster.Parse(cfg.Cluster); !short && cfg.Cluster != "" && !slices.Contains(workload.ClusterPresets(), cfg.Cluster) {
		named[fileKeys.cluster] = cfg.Cluster
	}
	return named
}

// modelPrefix precedes the file of estimates.
const modelPrefix = "gbdt:"

// fileKeys are the keys of Files.
var fileKeys = struct{ trace, profiles, cluster, model string }{"trace.file", "trace.profiles", "cluster", "env.estimates"}

// newWorldAt is NewWorld for a machine on which the files of cfg lie elsewhere: at holds their paths, by the keys of Files. The
// world is called as cfg calls it, so that results do not depend on where its files lie.
func newWorldAt(ctx context.Context, cfg *config.Config, at map[string]string) (*World, error) {
	folded, err := cfg.Fold()
	if err != nil {
		return nil, err
	}
	local, given := folded, config.Given{}
	for key, path := range at {
		if key == fileKeys.model {
			path = modelPrefix + path
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
	if at[fileKeys.trace] != "" {
		w.Trace.File, w.Info.File = folded.Trace.File, folded.Trace.File
	}
	if at[fileKeys.profiles] != "" {
		w.Trace.Profiles, w.Info.Profiles = folded.Trace.Profiles, folded.Trace.Profiles
	}
	if w.Model != nil && at[fileKeys.model] != "" {
		_, w.Model.File, _ = strings.Cut(folded.Estimates(), modelPrefix)
	}
	return w, nil
}
