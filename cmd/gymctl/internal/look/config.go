package look

import (
	"encoding/json"
	"errors"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/lab/workload"
)

func configVerb(a *cli.App) *cobra.Command {
	var what []string
	for _, k := range options.Kinds {
		what = append(what, "  "+k.Name+strings.Repeat(" ", max(1, 10-len(k.Name)))+k.What)
	}
	c := cli.Parent(&cobra.Command{
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

// CheckedFile is one file in the JSON document of config check.
type CheckedFile struct {
	File   string      `json:"file"`
	OK     bool        `json:"ok"`
	Kind   string      `json:"kind"` // "" = unknown, since the file has faults
	Faults []FileFault `json:"faults"`
}

// FileFault is one fault of a file. Key, Got and Want are "" where the fault is not that of a value.
type FileFault struct {
	Line    int    `json:"line"` // 0 = of the whole file, or of a key that it does not have
	Key     string `json:"key"`
	Got     string `json:"got"`
	Want    string `json:"want"`
	Message string `json:"message"` // the sentence for people
}

// faultsIn takes the errors of a file apart.
func faultsIn(err error) (list []FileFault) {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range j.Unwrap() {
			list = append(list, faultsIn(e)...)
		}
		return list
	}
	if e, ok := err.(*fault.Mistake); ok {
		return faultsIn(e.Err)
	}
	f := FileFault{Message: err.Error()}
	if e, ok := errors.AsType[*configs.Error](err); ok {
		f.Line = e.Line
	}
	if e, ok := errors.AsType[*fault.Fault](err); ok {
		f.Key, f.Got, f.Want = e.Key, e.Value, e.Want
	}
	return append(list, f)
}

func configCheck(a *cli.App) *cobra.Command {
	var as string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Find every fault in a configuration file",
		Long: `check reads files or presets and reports every fault at once, with file, line and key: unknown keys, wrong
types, values out of range. For a list of machines it reports only the first. The exit code is 2 if there is a fault.
--json prints the faults in its document as well.`,
		Example: `  gymctl config show philly-192 > mine.yaml
  gymctl config check mine.yaml`,
		Args: cli.Args(1, 1<<10, "one or more FILEs"),
		RunE: func(c *cobra.Command, files []string) error {
			var faults []error
			checked := []CheckedFile{}
			for _, f := range files {
				_, k, err := options.Load(f, as)
				if err != nil {
					faults = append(faults, err)
					checked = append(checked, CheckedFile{File: f, Faults: faultsIn(err)})
					continue
				}
				checked = append(checked, CheckedFile{f, true, k.Name, []FileFault{}})
				if !cli.AsJSON(c) {
					a.Printf("%s: ok (%s)\n", f, k.Name)
				}
			}
			if cli.AsJSON(c) {
				if err := a.JSON(cli.Keyed{"files": checked}); err != nil {
					return err
				}
			}
			return errors.Join(faults...)
		},
	}
	c.Flags().Bool("json", false, "print one JSON document, with the faults as well")
	c.ValidArgsFunction = cli.NamesOrFiles(options.PresetNames()...)
	kindFlag(c, &as)
	return c
}

// kindFlag adds --kind.
func kindFlag(c *cobra.Command, as *string) {
	names := options.KindNames()
	cli.Choice(c, as, "kind", "what the file configures: "+strings.Join(names, ", "), names...)
}

// showOptions are the flags of config show.
type showOptions struct {
	as, cluster, trace string
	sets               []string
}

func configShow(a *cli.App) *cobra.Command {
	o := &showOptions{}
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
		Args: cli.Args(0, 1, "one FILE or --cluster C"),
		RunE: func(c *cobra.Command, files []string) error { return o.run(a, c, files) },
	}
	c.ValidArgsFunction = func(c *cobra.Command, files []string, typed string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		if len(files) > 0 || o.cluster != "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return cli.NamesOrFiles(options.PresetNames()...)(c, files, typed)
	}
	f := c.Flags()
	kindFlag(c, &o.as)
	f.StringVar(&o.cluster, "cluster", "", "show this cluster as a tree, or with FILE a run on it: "+options.ClusterForms)
	f.StringVar(&o.trace, "trace", "", "show a run on this trace `FILE`")
	f.StringArrayVar(&o.sets, "set", nil, "change a value: `KEY.PATH=VALUE` (repeatable)")
	cli.JSONFlag(c)
	options.CompleteSet(c, func(_ *cobra.Command, files []string) configs.Validator {
		if len(files) == 0 {
			return nil
		}
		cfg, _, err := options.Load(files[0], o.as)
		if err != nil {
			return nil
		}
		return cfg
	})
	cli.Filled(c, "trace")
	cli.CompleteOrFile(c, "cluster", workload.ClusterPresets()...)
	return c
}

func (o *showOptions) run(a *cli.App, c *cobra.Command, files []string) error {
	switch {
	case len(files) > 0:
		return o.showFile(a, c, files[0])
	case o.cluster == "":
		return fault.Mistakef("config show: want one FILE or --cluster C; see gymctl config show --help")
	case o.trace != "":
		return fault.Mistakef("--trace goes with the FILE of a run, such as quickstart")
	case len(o.sets) > 0:
		return fault.Mistakef("--set goes with a FILE, not with --cluster")
	}
	spec, err := workload.ClusterSpec(o.cluster)
	if err != nil {
		return err
	}
	return showCluster(a, c, spec)
}

// showFile prints the whole configuration of a file.
func (o *showOptions) showFile(a *cli.App, c *cobra.Command, file string) error {
	src := options.Source{Name: file, Set: o.sets, Trace: o.trace, Format: workload.FormatAuto, Cluster: o.cluster}
	cfg, k, err := shownConfig(a, c, file, o.as, src)
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return &fault.Mistake{Err: err}
	}
	if cli.AsJSON(c) {
		text, err := configs.JSON(configs.Whole{Config: cfg})
		if err != nil {
			return err
		}
		return a.JSON(struct {
			File   string          `json:"file"`
			Kind   string          `json:"kind"`
			Config json.RawMessage `json:"config"`
		}{file, k.Name, text})
	}
	text, err := configs.Encode(configs.Whole{Config: cfg})
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(text)
	return err
}

// shownConfig returns the configuration of a file after the changes of src; a run's sizes follow src's trace and
// cluster, and a preset adapts to them, as in gymctl train.
func shownConfig(a *cli.App, c *cobra.Command, file, as string,
	src options.Source) (configs.Validator, options.Kind, error) {
	other, k, err := options.Load(file, as)
	if err != nil {
		return nil, k, err
	}
	if k.Name != options.RunKind {
		if follows := options.Changed(c, "trace", "cluster"); follows != "" {
			return nil, options.Kind{}, fault.Mistakef("--%s goes with the FILE of a run, not with %s", follows, file)
		}
		return other, k, options.SetAll(other, src.Set)
	}
	cfg, given, err := options.LoadRun(file)
	if err != nil {
		return nil, k, err
	}
	src.Given = given
	if err := src.Apply(c, &cfg); err != nil {
		return nil, k, err
	}
	_, chosen, err := src.Fit(c, &cfg)
	a.Notes(append(src.Adapted, chosen...))
	return &cfg, k, err
}

func configList(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the built-in presets",
		Example: `  gymctl config list`,
		RunE: func(c *cobra.Command, _ []string) error {
			type preset struct {
				Name string `json:"name"`
				Kind string `json:"kind"`
				What string `json:"what"`
			}
			list, rows := []preset{}, [][]string(nil)
			for _, file := range options.PresetFiles() {
				data, err := fs.ReadFile(configs.Presets, file)
				if err != nil {
					return err
				}
				p := preset{options.PresetName(file), options.KindOf(file, data).Name, FirstSentence(data)}
				list, rows = append(list, p), append(rows, []string{p.Name, p.Kind, p.What})
			}
			return a.ShowTable(c, cli.Keyed{"presets": list}, 3, []string{"preset", "kind", "what it is"}, rows)
		},
	}
	cli.JSONFlag(c)
	return c
}

// sentenceEnd is a full stop between a word and a capital, which excludes initials and "et al.".
var sentenceEnd = regexp.MustCompile(`[a-z0-9)"]\. [A-Z]`)

// FirstSentence returns the first sentence of the comment at the top of a file.
func FirstSentence(data []byte) string {
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
