package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/ordinary"
	"clustergym/simulator/cluster"
)

// ClusterDir is the folder of the embedded clusters in configs.Presets.
const ClusterDir = "clusters"

// DefaultCluster is the cluster of a run that names none: 32 GPUs in two racks.
const DefaultCluster = "topdrl-2x4x4"

// ClusterForms describes the forms in which ClusterSpec takes a cluster.
const ClusterForms = "a preset, a YAML file, a list of nodes (as sinfo, scontrol or kubectl print it), " +
	"NODES+TOPOLOGY (with Slurm's topology.conf), pool:N (a plain counter of N GPUs or processors), " +
	"swf-N (the same), NxG (N nodes of G GPUs), NxG:TYPE+NxG:TYPE (the same of GPU types) or dally:RxM (R racks of M " +
	"nodes of 8 GPUs)"

// ClusterPresets returns the names of the embedded clusters, sorted.
func ClusterPresets() []string {
	entries, err := fs.ReadDir(configs.Presets, ClusterDir)
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

// ClusterSpec returns the cluster that a user names. It tries in this order: a short form ("pool:256", "swf-256",
// "6x8", "4x8:a100+2x4:v100", "dally:4x2"), an embedded preset ("philly-192"), and the path of a file. A name that
// contains a slash or ends in .yaml is always a path. A file is YAML or a list of machines (package inventory),
// published or as a cluster's own programs print it, which its header reveals; "nodes.txt+topology.conf" are two of
// them. An unknown or faulty cluster is a *fault.Mistake; for YAML it lists all faults with their lines.
func ClusterSpec(name string) (cluster.Spec, error) {
	if name == "" {
		return cluster.Spec{}, fault.Mistakef("no cluster is named; want %s", ClusterForms)
	}
	if spec, ok, err := cluster.Parse(name); ok {
		if err != nil {
			return cluster.Spec{}, &fault.Mistake{Err: asWritten(name, err)}
		}
		return spec, nil
	}
	name, err := Located(name)
	if err != nil {
		return cluster.Spec{}, err
	}
	if inv, path, ok, err := joined(name); err != nil {
		return cluster.Spec{}, err
	} else if ok {
		return listed(&inv, path)
	}
	isPath := strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
	if !isPath {
		preset := path.Join(ClusterDir, name+".yaml")
		if _, err := fs.Stat(configs.Presets, preset); err == nil {
			data, err := fs.ReadFile(configs.Presets, preset)
			if err != nil {
				return cluster.Spec{}, fault.Mistakef("cluster %s: %w", name, ordinary.Reason(err))
			}
			return decodeCluster(data, preset, name)
		}
		if st, err := os.Stat(name); err != nil || st.IsDir() {
			return cluster.Spec{}, unknownCluster(name)
		}
	}
	switch st, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return cluster.Spec{}, fault.Mistakef("cluster file %s: there is no such file", name)
	case err == nil && st.IsDir():
		return cluster.Spec{},
			fault.Mistakef("cluster file %s: this is a folder, a YAML file or a list of machines is wanted", name)
	}
	if inv, ok, err := readInventory(name); err != nil {
		return cluster.Spec{}, err
	} else if ok {
		return listed(&inv, name)
	}
	data, err := ordinary.Read(name, ordinary.Settings)
	if err != nil {
		return cluster.Spec{}, fault.Mistakef("cluster file %s: %w", name, ordinary.Reason(err))
	}
	return decodeCluster(data, filepath.Base(name), name)
}

// asWritten corrects faults of a short form whose number of GPUs is too large for an int. Such a number was read as the
// largest int; asWritten puts the number of the form in its place.
func asWritten(name string, err error) error {
	var l fault.List
	found := false
	for _, f := range fault.All(err) {
		g := *f
		if g.Value == strconv.Itoa(math.MaxInt) {
			found = true
			for _, n := range strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' }) {
				if len(n) >= len(g.Value) {
					g.Value = n
				}
			}
		}
		l.Join("", &g)
	}
	if !found {
		return err
	}
	return fmt.Errorf("cluster %q: %w", name, l.Err())
}

// decodeCluster decodes a YAML specification. If it has no name, it gets the file's.
func decodeCluster(data []byte, file, shown string) (cluster.Spec, error) {
	var spec cluster.Spec
	if err := configs.DecodeBytes(shown, data, &spec); err != nil {
		return cluster.Spec{}, &fault.Mistake{Err: err}
	}
	if spec.Name == "" {
		spec.Name = strings.TrimSuffix(strings.TrimSuffix(path.Base(filepath.ToSlash(file)), ".yaml"), ".yml")
	}
	return spec, nil
}

// unknownCluster returns the mistake that there is no cluster called name, with the nearest preset if one is near.
func unknownCluster(name string) error {
	presets := ClusterPresets()
	if near := nearest.Name(name, presets); near != "" {
		return fault.Mistakef("cluster %q is unknown; did you mean %s?", name, near)
	}
	return fault.Mistakef("cluster %q is unknown; want %s; presets are %s", name, ClusterForms,
		strings.Join(presets, ", "))
}
