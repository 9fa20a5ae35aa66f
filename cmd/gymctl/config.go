package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/configs"
	"clustergym/env/cluster"
	"clustergym/experiments/catalog"
	"clustergym/experiments/config"
	"clustergym/experiments/sweep"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/ordinary"
	"clustergym/traces"
	"clustergym/traces/inventory"
	"clustergym/traces/synth"
)

// kind is what a YAML file can configure.
type kind struct {
	name string
	what string
	make func() configs.Validator // holding the defaults
}

// runKind is the name of the kind that gymctl train takes.
const runKind = "run"

// kinds are distinguished by their top-level keys.
var kinds = []kind{
	{"cluster", "hardware: racks, nodes, GPUs", func() configs.Validator { return new(cluster.Spec) }},
	{runKind, "a training run: workload, cluster, environment, agent (gymctl train -c)", func() configs.Validator { c := config.Default(); return &c }},
	{"sweep", "a search for settings (gymctl sweep -c)", func() configs.Validator { c := sweep.Default(); return &c }},
	{"workload", "a generated workload (gymctl trace synth -c)", func() configs.Validator { c := synth.DefaultConfig(); return &c }},
}

func kindNames() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

func configVerb(a *app) *cobra.Command {
	var what []string
	for _, k := range kinds {
		what = append(what, "  "+k.name+strings.Repeat(" ", max(1, 10-len(k.name)))+k.what)
	}
	c := group(&cobra.Command{
		Use:   "config",
		Short: "Check and show configuration files and presets",
		Long: `config reads YAML files and built-in presets. A file is one of

` + strings.Join(what, "\n") + `

and is recognised by its keys, unless --kind names it. A published list of machines (CSV, recognised by its header) is
a cluster.`,
		Example: `  gymctl config list
  gymctl config show philly-192
  gymctl config show --cluster 6x8`,
	})
	c.AddCommand(configCheck(a), configShow(a), configList(a))
	return c
}

// checkedFile is one file in the JSON document of config check.
type checkedFile struct {
	File   string      `json:"file"`
	OK     bool        `json:"ok"`
	Kind   string      `json:"kind"` // "" = unknown, since the file has faults
	Faults []fileFault `json:"faults"`
}

// fileFault is one fault of a file. Key, Got and Want are "" where the fault is not that of a value.
type fileFault struct {
	Line    int    `json:"line"` // 0 = of the whole file, or of a key that it does not have
	Key     string `json:"key"`
	Got     string `json:"got"`
	Want    string `json:"want"`
	Message string `json:"message"` // the sentence for people
}

// faultsIn takes the errors of a file apart.
func faultsIn(err error) (list []fileFault) {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range j.Unwrap() {
			list = append(list, faultsIn(e)...)
		}
		return list
	}
	if e, ok := err.(*fault.Mistake); ok {
		return faultsIn(e.Err)
	}
	f := fileFault{Message: err.Error()}
	if e, ok := errors.AsType[*configs.Error](err); ok {
		f.Line = e.Line
	}
	if e, ok := errors.AsType[*fault.Fault](err); ok {
		f.Key, f.Got, f.Want = e.Key, e.Value, e.Want
	}
	return append(list, f)
}

func configCheck(a *app) *cobra.Command {
	var (
		as     string
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Find every fault in a configuration file",
		Long: `check reads files or presets and reports every fault at once, with file, line and key: unknown keys, wrong
types, values out of range. For a list of machines it reports only the first. The exit code is 2 if there is a fault.
--json prints the faults in its document as well.`,
		Example: `  gymctl config show philly-192 > mine.yaml
  gymctl config check mine.yaml`,
		Args: args(1, 1<<10, "one or more FILEs"),
		RunE: func(_ *cobra.Command, files []string) error {
			if as != "" {
				if _, err := kindNamed(as); err != nil {
					return err
				}
			}
			var faults []error
			checked := []checkedFile{}
			for _, f := range files {
				_, k, err := load(f, as)
				if err != nil {
					faults = append(faults, err)
					checked = append(checked, checkedFile{File: f, Faults: faultsIn(err)})
					continue
				}
				checked = append(checked, checkedFile{f, true, k.name, []fileFault{}})
				if !asJSON {
					a.printf("%s: ok (%s)\n", f, k.name)
				}
			}
			if asJSON {
				if err := a.json(struct {
					Files []checkedFile `json:"files"`
				}{checked}); err != nil {
					return err
				}
			}
			return errors.Join(faults...)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document, with the faults as well")
	c.ValidArgsFunction = namesOrFiles(presetNames()...)
	c.Flags().StringVar(&as, "kind", "", "what the file configures: "+strings.Join(kindNames(), ", "))
	complete(c, "kind", kindNames()...)
	return c
}

func configShow(a *app) *cobra.Command {
	var (
		as, named, trace string
		sets             []string
		asJSON           bool
	)
	c := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Print a configuration with all defaults, or a cluster as a tree",
		Long: `show prints the whole configuration of a file or preset: every key, including defaults, after the changes of --set.
Its output can be used as a file again; a list of machines becomes YAML. With --cluster and no FILE it prints a cluster
as a tree, with totals.

--trace and --cluster with the FILE of a run show what gymctl train does with them: sizes that the preset says, or that the
file leaves out, follow from the workload and the cluster.`,
		Example: `  gymctl config show philly-192
  gymctl config show quickstart --cluster 4x8
  gymctl config show quickstart --json
  gymctl config show --cluster openb-1523
  gymctl config show --cluster pool:256 --json`,
		Args: args(0, 1, "one FILE or --cluster C"),
		RunE: func(c *cobra.Command, files []string) error {
			if trace == "" && c.Flags().Changed("trace") {
				return fault.Mistakef(`--trace: got "", want the path of a file`)
			}
			if named == "" && len(files) == 0 {
				return fault.Mistakef("config show: want one FILE or --cluster C; see gymctl config show --help")
			}
			if len(files) == 0 {
				if trace != "" {
					return fault.Mistakef("--trace goes with the FILE of a run, such as quickstart")
				}
				if len(sets) > 0 {
					return fault.Mistakef("--set goes with a FILE, not with --cluster")
				}
				spec, err := workload.ClusterSpec(named)
				if err != nil {
					return err
				}
				return a.showCluster(spec, asJSON)
			}
			cfg, k, err := a.shown(c, files[0], as, configSource{name: files[0], set: sets, trace: trace, format: workload.FormatAuto, cluster: named})
			if err != nil {
				return err
			}
			if err := cfg.Validate(); err != nil {
				return &fault.Mistake{Err: err}
			}
			if asJSON {
				text, err := configs.JSON(configs.Whole{Config: cfg})
				if err != nil {
					return err
				}
				return a.json(struct {
					File   string          `json:"file"`
					Kind   string          `json:"kind"`
					Config json.RawMessage `json:"config"`
				}{files[0], k.name, text})
			}
			text, err := configs.Encode(configs.Whole{Config: cfg})
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(text)
			return err
		},
	}
	c.ValidArgsFunction = func(c *cobra.Command, files []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(files) > 0 || named != "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return namesOrFiles(presetNames()...)(c, files, typed)
	}
	f := c.Flags()
	f.StringVar(&as, "kind", "", "what the file configures: "+strings.Join(kindNames(), ", "))
	f.StringVar(&named, "cluster", "", "show this cluster as a tree, or with FILE a run on it: "+clusterForms)
	f.StringVar(&trace, "trace", "", "show a run on this trace `FILE`")
	f.StringArrayVar(&sets, "set", nil, "change a value: `KEY.PATH=VALUE` (repeatable)")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	completeSet(c, func(_ *cobra.Command, files []string) configs.Validator {
		if len(files) == 0 {
			return nil
		}
		cfg, _, err := load(files[0], as)
		if err != nil {
			return nil
		}
		return cfg
	})
	complete(c, "kind", kindNames()...)
	completeOrFile(c, "cluster", workload.ClusterPresets()...)
	return c
}

// shown returns the configuration of a file after the changes of src; a run's sizes follow src's trace and cluster, and a preset
// adapts to them, as in gymctl train.
func (a *app) shown(c *cobra.Command, file, as string, src configSource) (configs.Validator, kind, error) {
	other, k, err := load(file, as)
	if err != nil {
		return nil, k, err
	}
	if k.name != runKind {
		if follows := src.changed(c, "trace", "cluster"); follows != "" {
			return nil, kind{}, fault.Mistakef("--%s goes with the FILE of a run, not with %s", follows, file)
		}
		return other, k, setAll(other, src.set)
	}
	found, data, err := readConfig(file)
	if err != nil {
		return nil, kind{}, err
	}
	cfg, given, err := decodeRun(file, found, data)
	if err != nil {
		return nil, kind{}, err
	}
	src.given = given
	if err := src.apply(c, &cfg); err != nil {
		return nil, kind{}, err
	}
	_, chosen, err := src.fit(c, &cfg)
	for _, line := range append(src.adapted, chosen...) {
		a.notef("%s", line)
	}
	return &cfg, k, err
}

func configList(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the built-in presets",
		Example: `  gymctl config list`,
		Args:    args(0, 0, "flags only"),
		RunE: func(*cobra.Command, []string) error {
			type preset struct {
				Name string `json:"name"`
				Kind string `json:"kind"`
				What string `json:"what"`
			}
			list := []preset{}
			for _, file := range presetFiles() {
				data, err := fs.ReadFile(configs.Presets, file)
				if err != nil {
					return err
				}
				list = append(list, preset{presetName(file), kindOf(file, data).name, firstSentence(data)})
			}
			if asJSON {
				return a.json(struct {
					Presets []preset `json:"presets"`
				}{list})
			}
			var rows [][]string
			for _, p := range list {
				rows = append(rows, []string{p.Name, p.Kind, p.What})
			}
			return a.table(3, []string{"preset", "kind", "what it is"}, rows)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// presetFiles returns the embedded files: clusters, then runs, each sorted by name.
func presetFiles() []string {
	var files []string
	_ = fs.WalkDir(configs.Presets, ".", func(p string, d fs.DirEntry, err error) error { // reading embedded files cannot fail
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".yaml") {
			files = append(files, p)
		}
		return nil
	})
	slices.SortStableFunc(files, func(a, b string) int {
		return cmp.Or(cmp.Compare(path.Dir(b), path.Dir(a)), cmp.Compare(presetName(a), presetName(b)))
	})
	return files
}

func presetName(file string) string { return strings.TrimSuffix(path.Base(file), ".yaml") }

// clusterForms describes in a flag's help how a cluster can be named.
const clusterForms = "preset, `FILE` (YAML or a list of machines), pool:N, NxG or dally:RxM"

// load reads the file or preset called name. as names its kind; "" means by its keys.
func load(name, as string) (configs.Validator, kind, error) {
	if as == "" || as == kinds[0].name {
		if spec, ok, err := loadMachines(name); err != nil {
			return nil, kind{}, err
		} else if ok {
			return &spec, kinds[0], nil
		}
	}
	file, data, err := readConfig(name)
	if err != nil {
		return nil, kind{}, err
	}
	k := kindOf(file, data)
	if as != "" {
		if k, err = kindNamed(as); err != nil {
			return nil, kind{}, err
		}
	}
	if k.name == runKind { // its defaults depend on the environment that it names
		cfg, err := config.Decode(name, data)
		if err != nil {
			return nil, kind{}, &fault.Mistake{Err: err}
		}
		return &cfg, k, nil
	}
	cfg := k.make()
	if err := configs.DecodeBytes(name, data, cfg); err != nil {
		return nil, kind{}, &fault.Mistake{Err: err}
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

// readConfig reads a file, or a preset if there is no such file.
func readConfig(name string) (file string, data []byte, err error) {
	data, err = ordinary.Read(name, ordinary.Settings)
	if err == nil {
		return name, data, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fileMistake(name, err)
	}
	var names []string
	for _, f := range presetFiles() {
		if names = append(names, presetName(f)); presetName(f) == name {
			data, err = fs.ReadFile(configs.Presets, f)
			return f, data, err
		}
	}
	if near := nearest.Name(name, names); near != "" {
		return "", nil, fault.Mistakef("%s: there is no such file or preset; did you mean %s?", name, near)
	}
	return "", nil, fault.Mistakef("%s: there is no such file or preset; presets are %s", name, strings.Join(names, ", "))
}

func kindNamed(name string) (kind, error) {
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fault.Mistakef("--kind: got %q, want %s", name, nearest.OneOf(name, kindNames()))
}

var topKey = regexp.MustCompile(`(?m)^["']?([A-Za-z_][A-Za-z0-9_-]*)["']?[ \t]*:`)

// kindOf returns a file's kind: the one that knows most of its top-level keys, the first on a tie. The kind of an
// embedded cluster follows from its folder.
func kindOf(file string, data []byte) kind {
	best, most := kinds[1], 0 // an empty file is a run with all defaults
	for _, k := range kinds {
		known, n := topKeys(reflect.TypeOf(k.make()).Elem()), 0
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
		return kinds[0]
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

// sentenceEnd is a full stop between a word and a capital, which excludes initials and "et al.".
var sentenceEnd = regexp.MustCompile(`[a-z0-9)"]\. [A-Z]`)

// firstSentence returns the first sentence of the comment at the top of a file.
func firstSentence(data []byte) string {
	var words []string
	for line := range strings.Lines(string(data)) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(text)...)
	}
	s := strings.Join(words, " ")
	if i := strings.IndexAny(s, ":;"); i >= 0 {
		s = s[:i]
	}
	if m := sentenceEnd.FindStringIndex(s); m != nil {
		s = s[:m[0]+1]
	}
	if i := strings.Index(s, " ("); i >= 0 {
		s = s[:i]
	}
	return strings.TrimSuffix(s, ".")
}

// indented returns a configuration as YAML for a help text.
func indented(cfg any) string {
	text, err := configs.Encode(cfg)
	if err != nil {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.TrimRight(string(text), "\n"), "\n", "\n  ")
}
