package options

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/ordinary"
	"clustergym/lab/catalog"
	"clustergym/lab/config"
	"clustergym/lab/sweep"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
	"clustergym/traces/inventory"
	"clustergym/traces/synth"
)

// Kind is what a YAML file can configure.
type Kind struct {
	Name string
	What string
	New  func() configs.Validator // holding the defaults
}

// RunKind is the name of the kind that gymctl train takes.
const RunKind = "run"

// Kinds are distinguished by their top-level keys.
var Kinds = []Kind{
	{"cluster", "hardware: racks, nodes, GPUs", func() configs.Validator { return new(cluster.Spec) }},
	{RunKind, "a training run: workload, cluster, environment, agent (gymctl train -c)",
		func() configs.Validator { c := config.Default(); return &c }},
	{"sweep", "a search for settings (gymctl sweep -c)", func() configs.Validator { c := sweep.Default(); return &c }},
	{"workload", "a generated workload (gymctl trace synth -c)",
		func() configs.Validator { c := synth.DefaultConfig(); return &c }},
}

// KindNames returns the names of all kinds.
func KindNames() []string { return cli.NamesOf(Kinds, func(k Kind) string { return k.Name }) }

// PresetFiles returns the embedded files: clusters, then runs, each sorted by name.
func PresetFiles() []string {
	var files []string
	// reading embedded files cannot fail
	_ = fs.WalkDir(configs.Presets, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".yaml") {
			files = append(files, p)
		}
		return nil
	})
	slices.SortStableFunc(files, func(a, b string) int {
		return cmp.Or(cmp.Compare(path.Dir(b), path.Dir(a)), cmp.Compare(PresetName(a), PresetName(b)))
	})
	return files
}

// PresetName returns the name of the preset in an embedded file.
func PresetName(file string) string { return strings.TrimSuffix(path.Base(file), ".yaml") }

// ClusterForms describes in a flag's help how a cluster can be named.
const ClusterForms = "preset, `FILE` (YAML or a list of machines), pool:N, NxG or dally:RxM"

// Load reads the file or preset called name. as is one of KindNames; "" means by its keys.
func Load(name, as string) (configs.Validator, Kind, error) {
	if as == "" || as == Kinds[0].Name {
		if spec, ok, err := loadMachines(name); err != nil {
			return nil, Kind{}, err
		} else if ok {
			return &spec, Kinds[0], nil
		}
	}
	file, data, err := ReadConfig(name)
	if err != nil {
		return nil, Kind{}, err
	}
	k := KindOf(file, data)
	if i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == as }); i >= 0 {
		k = Kinds[i]
	}
	if k.Name == RunKind { // its defaults depend on the environment that it names
		cfg, err := config.Decode(name, data)
		if err != nil {
			return nil, Kind{}, &fault.Mistake{Err: err}
		}
		return &cfg, k, nil
	}
	cfg := k.New()
	if err := configs.DecodeBytes(name, data, cfg); err != nil {
		return nil, Kind{}, &fault.Mistake{Err: err}
	}
	return cfg, k, nil
}

// loadMachines reads a list of machines. ok is false if the file is not one.
func loadMachines(name string) (spec cluster.Spec, ok bool, err error) {
	file := name
	if strings.HasPrefix(name, catalog.Prefix) {
		if file, err = catalog.Path(name); err != nil {
			return spec, false, &fault.Mistake{Err: err}
		}
	}
	if !listsMachines(file) {
		return spec, false, nil
	}
	if !strings.Contains(file, ".") { // otherwise a preset or short form of this name would take precedence
		file = "." + string(filepath.Separator) + file
	}
	spec, err = workload.ClusterSpec(file)
	return spec, err == nil, err
}

// listsMachines reports whether a file, plain or packed, has the header of a list of machines. It returns false for a
// file that cannot be read, since reading it as YAML will report that.
func listsMachines(file string) bool {
	f, err := traces.OrdinaryFiles().Open(context.Background(), file)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, 1<<16)
	n, err := io.ReadFull(f, head)
	return (err == nil || err == io.EOF || err == io.ErrUnexpectedEOF) && inventory.Sniff(head[:n])
}

// ReadConfig reads a file, or a preset if there is no such file.
func ReadConfig(name string) (file string, data []byte, err error) {
	data, err = ordinary.Read(name, ordinary.Settings)
	if err == nil {
		return name, data, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, FileMistake(name, err)
	}
	files, names := PresetFiles(), PresetNames()
	if i := slices.Index(names, name); i >= 0 {
		data, err = fs.ReadFile(configs.Presets, files[i])
		return files[i], data, err
	}
	if near := nearest.Name(name, names); near != "" {
		return "", nil, fault.Mistakef("%s: there is no such file or preset; did you mean %s?", name, near)
	}
	return "", nil, fault.Mistakef("%s: there is no such file or preset; presets are %s", name, strings.Join(names, ", "))
}

var topKey = regexp.MustCompile(`(?m)^["']?([A-Za-z_][A-Za-z0-9_-]*)["']?[ \t]*:`)

// KindOf returns a file's kind: the one that knows most of its top-level keys, the first on a tie. The kind of an
// embedded cluster follows from its folder.
func KindOf(file string, data []byte) Kind {
	best, most := Kinds[1], 0 // an empty file is a run with all defaults
	for _, k := range Kinds {
		known, n := topKeys(reflect.TypeOf(k.New()).Elem()), 0
		for _, m := range topKey.FindAllSubmatch(data, -1) {
			if known[string(m[1])] {
				n++
			}
		}
		if n > most {
			best, most = k, n
		}
	}
	if most == 0 && strings.HasPrefix(file, "clusters/") {
		return Kinds[0]
	}
	return best
}

// topKeys returns the YAML keys of a configuration's fields.
func topKeys(t reflect.Type) map[string]bool {
	keys := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if strings.Contains(opts, "inline") {
			for k := range topKeys(f.Type) { // a set
				keys[k] = true
			}
		} else if f.IsExported() && name != "-" {
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			keys[name] = true
		}
	}
	return keys
}
