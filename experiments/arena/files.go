package arena

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"clustergym/env/cluster"
	"clustergym/experiments/config"
	"clustergym/experiments/workload"
	"clustergym/internal/plain"
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

// modelPrefix precedes the file of estimates.
const modelPrefix = "gbdt:"

// fileKeys are the keys of Files.
var fileKeys = struct{ trace, profiles, cluster, model string }{"trace.file", "trace.profiles", "cluster", "env.estimates"}

// Brought returns an error unless cfg, which must be folded, names exactly the files that a task has brought: those whose keys
// names has. A worker opens nothing else for a task, since the path of a file of its own could stand there, and what it
// says of that file goes back to whoever made the task.
func Brought(cfg *config.Config, names map[string]string) error {
	named := map[string]bool{
		fileKeys.trace: cfg.Trace.File != "", fileKeys.profiles: cfg.Trace.Profiles != "",
		fileKeys.model: strings.Contains(cfg.Estimates(), modelPrefix), fileKeys.cluster: !embedded(cfg.Cluster),
	}
	for _, key := range slices.Sorted(maps.Keys(names)) {
		switch _, known := named[key]; {
		case !known:
			return fmt.Errorf("the task has brought a file for %q; files are for %s", plain.Clip(key, 40), strings.Join(slices.Sorted(maps.Keys(named)), ", "))
		case key != fileKeys.cluster && !named[key]: // a file can have the name of an embedded cluster
			return fmt.Errorf("the task has brought a file for %s, and its configuration names none", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(named)) {
		if _, ok := names[key]; named[key] && !ok {
			return fmt.Errorf("the task names a file for %s and has not brought it; a worker opens no file of its own for a task", key)
		}
	}
	return nil
}

// embedded reports whether a cluster is none, a short form or a preset, so that no file is opened for it.
func embedded(name string) bool {
	_, short, _ := cluster.Parse(name)
	return name == "" || short || slices.Contains(workload.ClusterPresets(), name)
}

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
