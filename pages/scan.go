package pages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clustergym/distributed/workqueue"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/decisionlog"
	"clustergym/lab/rundir"
	"clustergym/lab/sweep"
	"clustergym/ops/steer"
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
	away error // not nil: a link in its folder leads out of the folder that was named, so nothing of it is read
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

// Check returns the user's mistake if one of paths has nothing to show: a folder or file that does not exist, a file
// that is no log of decisions, or a folder without a run, a sweep or an experiment.
func Check(paths []string) error {
	for _, p := range paths {
		i, err := os.Stat(p)
		if err != nil {
			return fault.Mistakef(
				"%s: %v; want the folder of a run, of runs, of a sweep or of an experiment, or a log of decisions", p,
				ordinary.Reason(err))
		}
		if !i.IsDir() {
			if err := checkLog(p); err != nil {
				return err
			}
			continue
		}
		if found, _ := find([]string{p}); len(found) == 0 {
			return fault.Mistakef("%s holds no run (%s), sweep or experiment, and neither do its folders", p, rundir.ConfigFile)
		}
	}
	return nil
}

func checkLog(path string) error {
	if i, err := os.Stat(path); err == nil && !i.Mode().IsRegular() {
		return fault.Mistakef("%s is no regular file; a log of decisions that comes through a pipe must be stored first",
			path)
	}
	f, err := ordinary.Open(path)
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	defer f.Close() //nolint:errcheck // only read
	if isSteer(path) {
		if _, err := steer.Story(path, io.Discard); err != nil {
			return fault.Mistakef("%s: %w", path, err)
		}
		return nil
	}
	if err := decisionlog.Read(f, func(*decisionlog.Line) error { return nil }); err != nil {
		return fault.Mistakef("%s: %w", path, err)
	}
	return nil
}

// rootNames returns what roots are called: the last parts of their paths, as many as tell them apart.
func rootNames(roots []string) []string {
	full := make([][]string, len(roots))
	for i, r := range roots {
		if abs, err := filepath.Abs(r); err == nil {
			r = abs
		}
		full[i] = strings.Split(filepath.ToSlash(r), "/")
	}
	names := make([]string, len(roots))
	for i := range roots {
		for n := 1; n <= len(full[i]); n++ {
			names[i] = strings.Join(full[i][len(full[i])-n:], "/")
			alone := true
			for k := range roots {
				alone = alone && (k == i || slices.Equal(full[k],
					full[i]) || !strings.HasSuffix("/"+strings.Join(full[k], "/"), "/"+names[i]))
			}
			if alone {
				break
			}
		}
	}
	return names
}

// find returns what there is to show below paths, in the order of their names. whole is false if there is more than a
// page can list. No two entries have one name.
func find(paths []string) (all []entry, whole bool) {
	whole = true
	seen, called := map[string]kind{}, map[string]bool{}
	add := func(k kind, name, path string, away error) {
		id := idOf(path)
		if seen[id] != "" {
			return
		}
		if len(all) >= maxEntries {
			whole = false
			return
		}
		name = strings.ToValidUTF8(name, "\uFFFD")
		if called[name] {
			name += " " + id
		}
		seen[id], called[name] = k, true
		all = append(all, entry{id, k, name, path, away})
	}
	names := rootNames(paths)
	for i, root := range paths {
		name := names[i]
		// A link that somebody names is followed, others are not: they could lead round in circles.
		if target, err := filepath.EvalSymlinks(root); err == nil {
			root = target
		}
		within := root
		if i, err := os.Stat(root); err == nil && !i.IsDir() {
			within = filepath.Dir(root)
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
				if strings.HasSuffix(path, ".jsonl") && d.Name() != rundir.ProgressFile && d.Type().IsRegular() && isLog(path) {
					add(aLog, shown, path, leadsOut(within, path))
				}
				return nil
			}
			if parent := filepath.Dir(path); path != root &&
				(inner(d.Name(), seen[idOf(parent)]) || strings.HasPrefix(filepath.Base(parent), workqueue.ScratchPrefix) &&
					d.Name() == workqueue.NeedsDir) {
				return fs.SkipDir
			}
			has := func(file string) bool { _, err := os.Stat(filepath.Join(path, file)); return err == nil }
			switch {
			case has(rundir.ConfigFile):
				add(aRun, shown, path,
					leadsOut(within, path, rundir.ConfigFile, rundir.ProgressFile, rundir.BestFile,
						filepath.FromSlash(rundir.EvalFile), rundir.Checkpoints))
			case sweep.In(path):
				add(aSweep, shown, path, leadsOut(within, path, linksIn(path)...))
			case named(within, path) != "":
				add(experiment, shown, path, leadsOut(within, path, append(linksIn(path), linksIn(path, "cells")...)...))
			}
			if strings.Count(rel, string(filepath.Separator)) >= maxDepth {
				return fs.SkipDir
			}
			return nil
		})
	}
	return all, whole
}

// leadsOut returns an error if path, or one of the files of these names below it, lies outside of root because a link
// leads there. Files that are not there are no fault.
func leadsOut(root, path string, names ...string) error {
	for _, name := range append([]string{""}, names...) {
		file := filepath.Join(path, name)
		target, err := filepath.EvalSymlinks(file)
		if err != nil {
			continue // reading it will say why
		}
		if rel, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(rel) {
			return fault.Mistakef("%s leads out of %s, so it is not read", file, root)
		}
	}
	return nil
}

// linksIn returns the names of the links in a folder below dir, relative to dir.
func linksIn(dir string, below ...string) []string {
	at := filepath.Join(below...)
	entries, err := os.ReadDir(filepath.Join(dir, at))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			names = append(names, filepath.Join(at, e.Name()))
		}
	}
	return names
}

// named returns the name of the experiment in a folder. It returns "" if the folder has no experiment, or a link that
// leads out of root.
func named(root, path string) string {
	if leadsOut(root, path, linksIn(path)...) != nil {
		return ""
	}
	return study.NameIn(path)
}

// inner reports whether a folder of a name in an entry of a kind holds parts of that entry, and nothing that has a
// page.
func inner(name string, in kind) bool {
	switch in {
	case aRun:
		return name == rundir.Checkpoints || name == "eval"
	case experiment:
		return name == "cells" || name == "figures"
	}
	return false
}

func skipDir(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// isLog reports whether a file begins like a log of decisions, or of steer.
func isLog(path string) bool {
	b := beginning(path)
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return decisionlog.IsHeader(line) || steer.IsLog(b)
}

// isSteer reports whether a file begins like a log of steer.
func isSteer(path string) bool { return steer.IsLog(beginning(path)) }

// beginning returns the first bytes of a regular file, nil if there are none.
func beginning(path string) []byte {
	f, err := ordinary.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	b := make([]byte, 1<<16)
	n, _ := io.ReadFull(f, b) // a shorter file is read, too
	return b[:n]
}
