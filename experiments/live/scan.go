package live

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"clustergym/experiments/decisionlog"
	"clustergym/experiments/rundir"
	"clustergym/experiments/study"
	"clustergym/experiments/sweep"
	"clustergym/experiments/workload"
)

// kind is what an entry of a page is.
type kind string

const (
	aRun       kind = "run"
	aSweep     kind = "sweep"
	experiment kind = "experiment"
	aLog       kind = "log"
)

// entry is something that has a page.
type entry struct {
	ID   string `json:"id"` // stays the same while the path does
	Kind kind   `json:"kind"`
	Name string `json:"name"`
	path string
}

const (
	maxDepth   = 6    // of folders below those that were named
	maxEntries = 5000 // more are left out, and the page says so
)

func idOf(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	h := sha256.Sum256([]byte(path))
	return hex.EncodeToString(h[:6])
}

// Check returns the user's mistake if one of paths has nothing to show: a folder or file that does not exist, a file that is no
// log of decisions, or a folder without a run, a sweep or an experiment.
func Check(paths []string) error {
	for _, p := range paths {
		i, err := os.Stat(p)
		if err != nil {
			return workload.Mistake("%s: %v; want the folder of a run, of runs, of a sweep or of an experiment, or a log of decisions", p, workload.Reason(err))
		}
		if !i.IsDir() {
			if err := checkLog(p); err != nil {
				return err
			}
			continue
		}
		if found, _ := find([]string{p}); len(found) == 0 {
			return workload.Mistake("%s holds no run (%s), sweep or experiment, and neither do its folders", p, rundir.ConfigFile)
		}
	}
	return nil
}

func checkLog(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return &workload.InputError{Err: err}
	}
	defer f.Close() //nolint:errcheck // only read
	if err := decisionlog.Read(f, func(*decisionlog.Line) error { return nil }); err != nil {
		return workload.Mistake("%s: %w", path, err)
	}
	return nil
}

// find returns what there is to show below paths, in the order of their names. whole is false if there is more than a page can
// list.
func find(paths []string) (all []entry, whole bool) {
	whole = true
	seen := map[string]bool{}
	add := func(k kind, name, path string) {
		id := idOf(path)
		if seen[id] {
			return
		}
		if len(all) >= maxEntries {
			whole = false
			return
		}
		seen[id] = true
		all = append(all, entry{id, k, name, path})
	}
	for _, root := range paths {
		root = filepath.Clean(root)
		name := filepath.Base(root)
		if abs, err := filepath.Abs(root); err == nil {
			name = filepath.Base(abs)
		}
		// Errors of single folders leave those out: a run may begin or go at any time.
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path != root && strings.HasPrefix(d.Name(), ".") {
				return skipDir(d)
			}
			rel, _ := filepath.Rel(root, path)
			shown := name
			if rel != "." {
				shown = filepath.ToSlash(rel)
				if len(paths) > 1 {
					shown = name + "/" + shown
				}
			}
			if !d.IsDir() {
				if strings.HasSuffix(path, ".jsonl") && d.Name() != rundir.ProgressFile && isLog(path) {
					add(aLog, shown, path)
				}
				return nil
			}
			switch d.Name() {
			case rundir.Checkpoints, "cells", "figures", "eval", "needs":
				if path != root {
					return fs.SkipDir
				}
			}
			has := func(file string) bool { _, err := os.Stat(filepath.Join(path, file)); return err == nil }
			switch {
			case has(rundir.ConfigFile):
				add(aRun, shown, path)
			case sweep.In(path):
				add(aSweep, shown, path)
			case study.NameIn(path) != "":
				add(experiment, shown, path)
			}
			if strings.Count(rel, string(filepath.Separator)) >= maxDepth {
				return fs.SkipDir
			}
			return nil
		})
	}
	return all, whole
}

func skipDir(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// isLog reports whether a file begins like a log of decisions.
func isLog(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	if i, err := f.Stat(); err != nil || !i.Mode().IsRegular() {
		return false
	}
	line, _, err := bufio.NewReaderSize(f, 1<<16).ReadLine()
	return err == nil && decisionlog.IsHeader(line)
}
