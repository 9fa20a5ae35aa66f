package experiments

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"clustergym/configs"
	"clustergym/env/cluster"
)

// InputError marks an error as the user's mistake: a name, a value or a file that somebody chose and can put
// right. The command line answers it with exit code 2. The text is that of Err.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap gives Err.
func (e *InputError) Unwrap() error { return e.Err }

func mistake(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// clusterDir is where the embedded clusters lie in configs.Presets.
const clusterDir = "clusters"

// ClusterForms says in words how a cluster can be named.
const ClusterForms = "a preset, a YAML file, pool:N (a plain counter of N GPUs or processors), swf-N (the same) or NxG (N nodes of G GPUs)"

// ClusterPresets are the names of the embedded clusters, sorted.
func ClusterPresets() []string {
	entries, err := fs.ReadDir(configs.Presets, clusterDir)
	if err != nil {
		panic(fmt.Sprintf("experiments: the embedded clusters cannot be listed: %v", err))
	}
	var names []string
	for _, e := range entries {
		if n, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, n)
		}
	}
	return names
}

// ClusterSpec finds the cluster that a user names: a short form ("pool:256", "swf-256", "6x8"), an embedded
// preset ("philly-192") or the path of a YAML file, in this order; a name with a slash or with .yaml at its end
// is always a path. What cannot be found or is faulty is an *InputError; of a faulty file it lists all faults,
// with their lines.
func ClusterSpec(name string) (cluster.Spec, error) {
	if name == "" {
		return cluster.Spec{}, mistake("no cluster is named; want %s", ClusterForms)
	}
	if spec, ok, err := cluster.Parse(name); ok {
		if err != nil {
			return cluster.Spec{}, &InputError{err}
		}
		return spec, nil
	}
	isPath := strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
	if !isPath {
		preset := path.Join(clusterDir, name+".yaml")
		if _, err := fs.Stat(configs.Presets, preset); err == nil {
			return decodeCluster(configs.Presets, preset, name)
		}
		if st, err := os.Stat(name); err != nil || st.IsDir() {
			return cluster.Spec{}, unknownCluster(name)
		}
	}
	dir, base := filepath.Split(name)
	if dir == "" {
		dir = "."
	}
	switch st, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return cluster.Spec{}, mistake("cluster file %s: there is no such file", name)
	case err == nil && st.IsDir():
		return cluster.Spec{}, mistake("cluster file %s: this is a folder, a YAML file is wanted", name)
	}
	return decodeCluster(os.DirFS(dir), base, name)
}

// decodeCluster reads one specification; a file that gives no name is called by its own.
func decodeCluster(fsys fs.FS, file, shown string) (cluster.Spec, error) {
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return cluster.Spec{}, mistake("cluster file %s: %w", shown, reason(err))
	}
	var spec cluster.Spec
	if err := configs.DecodeBytes(shown, data, &spec); err != nil {
		return cluster.Spec{}, &InputError{err}
	}
	if spec.Name == "" {
		spec.Name = strings.TrimSuffix(strings.TrimSuffix(path.Base(filepath.ToSlash(file)), ".yaml"), ".yml")
	}
	return spec, nil
}

// reason drops operation and path from a file error, because the message names the path already.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func unknownCluster(name string) error {
	presets := ClusterPresets()
	if near := Nearest(name, presets); near != "" {
		return mistake("cluster %q is unknown; did you mean %s?", name, near)
	}
	return mistake("cluster %q is unknown; want %s; presets are %s", name, ClusterForms, strings.Join(presets, ", "))
}

// Nearest is the one of names that name was probably meant to be: at most a third of its letters away by
// insertions, deletions, replacements and swaps of neighbours, or beginning with it. It is "" where none is; the
// first wins a tie.
func Nearest(name string, names []string) string {
	best, least := "", 1+max(1, len(name)/3)
	for _, n := range names {
		d := editDistance(strings.ToLower(name), strings.ToLower(n))
		if len(name) >= 2 && strings.HasPrefix(n, name) {
			d = min(d, 1)
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours between a and b (optimal
// string alignment: no letter is touched twice).
func editDistance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for k := range rows[0] {
		rows[0][k] = k
	}
	for i := 1; i <= len(a); i++ {
		cur, prev, before := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		cur[0] = i
		for k := 1; k <= len(b); k++ {
			replace := 1
			if a[i-1] == b[k-1] {
				replace = 0
			}
			cur[k] = min(prev[k]+1, cur[k-1]+1, prev[k-1]+replace)
			if i > 1 && k > 1 && a[i-1] == b[k-2] && a[i-2] == b[k-1] {
				cur[k] = min(cur[k], before[k-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
