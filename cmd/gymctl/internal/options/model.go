package options

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/lab/brought"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/simulate"
)

// ModelFlags are --policy-onnx and --name.
type ModelFlags struct{ Files, names []string }

// Flags adds the flags.
func (m *ModelFlags) Flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&m.Files, "policy-onnx", nil, "play the ONNX model in `FILE` (repeatable)")
	c.Flags().StringArrayVar(&m.names, "name", nil,
		"call the model of --policy-onnx `NAME`, in the same order (default its file's name)")
	CompleteModel(c)
}

// CompleteModel makes the shell offer ONNX files for --policy-onnx.
func CompleteModel(c *cobra.Command) {
	cli.CompleteBy(c, "policy-onnx", cobra.FixedCompletions([]cobra.Completion{"onnx"},
		cobra.ShellCompDirectiveFilterFileExt))
}

// Read reads the models.
func (m *ModelFlags) Read() ([]envs.Model, error) {
	if len(m.names) > len(m.Files) {
		return nil, fault.Mistakef("--name: got %d names for %d models of --policy-onnx", len(m.names), len(m.Files))
	}
	var all []envs.Model
	for i, file := range m.Files {
		name := ""
		if i < len(m.names) {
			if name = m.names[i]; name == "" {
				return nil, fault.Mistakef(`--name: got "", want a name for %s`, file)
			}
		}
		model, err := envs.ReadModel(file, name)
		if err != nil {
			return nil, err
		}
		all = append(all, model)
	}
	return all, nil
}

// PlayedConfig returns the configuration that a model brings along, else that of quickstart. The author of a model may
// not choose files of this machine: settings that name one are refused, except for the keys in given, whose files the
// user names.
func PlayedConfig(m *envs.Model, given config.Given) (config.Config, error) {
	if m.Run() == "" {
		return config.Preset("quickstart")
	}
	cfg, err := config.Decode(m.File, []byte(m.Run()))
	if err != nil {
		return cfg, fault.Mistakef("model %s: its settings (clustergym.run) cannot be read: %w", m.File, err)
	}
	files := brought.Named(&cfg)
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if !given[key] {
			return cfg,
				fault.Mistakef(
					"model %s: its settings (clustergym.run) name the file %q for %s; a model says what it plays in, not which "+
						"files are read: use a model without it, or name your own by %s", m.File, files[key], key, flagsOf[key])
		}
	}
	return cfg, nil
}

// flagsOf are the flags that name the files of brought.Named.
var flagsOf = map[string]string{
	"trace.file": "--trace", "trace.profiles": "--set trace.profiles", "cluster": "--cluster",
	"env.estimates": "--estimates",
}

// Played reads the models with the environments that they play in. The workload, the cluster and the estimates are c's
// own.
func (m *ModelFlags) Played(c *cobra.Command) ([]simulate.Played, error) {
	list, err := m.Read()
	if err != nil {
		return nil, err
	}
	given := config.Given{
		"trace.file": c.Flags().Changed("trace"), "trace.profiles": c.Flags().Changed("profiles"),
		"cluster": c.Flags().Changed("cluster"), "env.estimates": c.Flags().Changed("estimates"),
	}
	var all []simulate.Played
	for i := range list {
		cfg, err := PlayedConfig(&list[i], given)
		if err != nil {
			return nil, err
		}
		p, err := simulate.NewPlayed(list[i], &cfg)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
