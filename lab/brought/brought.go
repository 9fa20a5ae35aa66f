// Package brought handles the files that a task of a work queue brings: the ones that its configuration names. The
// coordinator sends them, and a worker opens no others for the task. A task may come from an attacker, who names files
// of the worker, or places for files of his own.
package brought

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/config"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
)

// The keys of files: those of a configuration that name one.
const (
	Trace    = "trace.file"
	Profiles = "trace.profiles"
	Cluster  = "cluster"
	Model    = "env.estimates"
)

// ModelPrefix precedes the file in the value of Model.
const ModelPrefix = "gbdt:"

// Files returns the paths of the files that cfg reads, by the key that names each: the trace, its throughput table, the
// cluster and the model of estimates. Presets and short forms of clusters are not files.
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
	if err := errors.Join(add(Trace, cfg.Trace.File), add(Profiles, cfg.Trace.Profiles)); err != nil {
		return nil, err
	}
	if model := cfg.Estimates().File; model != "" {
		if err := add(Model, model); err != nil {
			return nil, err
		}
	}
	if _, short, _ := cluster.Parse(cfg.Cluster); !short && cfg.Cluster != "" {
		path, err := workload.Located(cfg.Cluster)
		if err != nil {
			return nil, err
		}
		if i, err := os.Stat(path); err == nil && i.Mode().IsRegular() {
			files[Cluster] = path
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, &fault.Mistake{Err: err}
		}
	}
	return files, nil
}

// Check returns an error unless cfg names exactly the files that a task has brought: those whose keys
// names has. A worker opens nothing else for a task, since the path of a file of its own could stand there, and what it
// says of that file goes back to the maker of the task.
func Check(cfg *config.Config, names map[string]string) error {
	named := Named(cfg)
	for _, key := range slices.Sorted(maps.Keys(names)) {
		switch _, has := named[key]; {
		case !slices.Contains(keys, key):
			return fmt.Errorf("the task has brought a file for %q; files are for %s", plain.Clip(key, 40),
				strings.Join(keys, ", "))
		case key != Cluster && !has: // a file can have the name of an embedded cluster
			return fmt.Errorf("the task has brought a file for %s, and its configuration names none", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(named)) {
		if _, ok := names[key]; !ok {
			return fmt.Errorf(
				"the task names a file for %s and has not brought it; a worker opens no file of its own for a task", key)
		}
	}
	return nil
}

// keys are the keys of files.
var keys = []string{Cluster, Model, Profiles, Trace}

// Named returns what cfg names as files, by the key that names each. Unlike Files it looks at no file:
// every cluster that is neither a short form nor a preset counts as one.
func Named(cfg *config.Config) map[string]string {
	named := map[string]string{}
	for key, name := range map[string]string{Trace: cfg.Trace.File, Profiles: cfg.Trace.Profiles} {
		if name != "" {
			named[key] = name
		}
	}
	if model := cfg.Estimates().File; model != "" {
		named[Model] = model
	}
	if _, short, _ := cluster.Parse(cfg.Cluster); !short && cfg.Cluster != "" &&
		!slices.Contains(workload.ClusterPresets(), cfg.Cluster) {
		named[Cluster] = cfg.Cluster
	}
	return named
}

// Put puts files into the store of a queue and their digests into needs, by their keys. It returns their base names,
// which the other machines keep, since some are part of results.
func Put(ctx context.Context, q *workqueue.Coordinator, files,
	needs map[string]string) (names map[string]string, err error) {
	names = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if needs[key], err = q.Put(ctx, files[key]); err != nil {
			return nil, &fault.Mistake{Err: fmt.Errorf("%s: %w", key, err)}
		}
		names[key] = filepath.Base(files[key])
	}
	return names, nil
}

// Place makes a folder in which the files that a task has brought have the names that the task gives them, and returns
// their paths by key. The caller removes it.
func Place(j *workqueue.Job, names map[string]string) (at map[string]string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "gymctl-files-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // links
	if at, err = place(j, names, dir); err != nil {
		remove()
		return nil, nil, err
	}
	return at, remove, nil
}

// place is Place in a folder.
func place(j *workqueue.Job, names map[string]string, dir string) (map[string]string, error) {
	root, err := os.OpenRoot(dir) // no key and no name leads out of it
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	at := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(names)) {
		name, from := names[key], j.Needs[key]
		if from == "" {
			return nil, fmt.Errorf("the task names %s and has not brought it", key)
		}
		if name != filepath.Base(name) || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || name == "." {
			return nil, fmt.Errorf("the task calls its file for %s %q, which is no name of a file", key, plain.Clip(name, 80))
		}
		if err := root.Mkdir(key, 0o700); err != nil {
			return nil, err
		}
		if err := root.Symlink(from, filepath.Join(key, name)); err != nil {
			return nil, err
		}
		at[key] = filepath.Join(dir, key, name)
	}
	return at, nil
}
