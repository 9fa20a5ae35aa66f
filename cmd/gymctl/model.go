package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"clustergym/experiments/arena"
	"clustergym/experiments/config"
	"clustergym/experiments/models"
	"clustergym/experiments/simulate"
)

// modelFlags are --policy-onnx and --name.
type modelFlags struct{ files, names []string }

func (m *modelFlags) flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&m.files, "policy-onnx", nil, "play the ONNX model in `FILE` (repeatable)")
	c.Flags().StringArrayVar(&m.names, "name", nil, "call the model of --policy-onnx `NAME`, in the same order (default its file's name)")
	completeBy(c, "policy-onnx", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{"onnx"}, cobra.ShellCompDirectiveFilterFileExt
	})
}

// read reads the models.
func (m *modelFlags) read() ([]models.Model, error) {
	if len(m.names) > len(m.files) {
		return nil, mistake("--name: got %d names for %d models of --policy-onnx", len(m.names), len(m.files))
	}
	var all []models.Model
	for i, file := range m.files {
		name := ""
		if i < len(m.names) {
			if name = m.names[i]; name == "" {
				return nil, mistake(`--name: got "", want a name for %s`, file)
			}
		}
		model, err := models.Read(file, name)
		if err != nil {
			return nil, err
		}
		all = append(all, model)
	}
	return all, nil
}

// playedConfig returns the configuration that a model brings along, else that of quickstart.
func playedConfig(m *models.Model) (config.Config, error) {
	if m.Run() == "" {
		return config.Preset("quickstart")
	}
	cfg, err := config.Decode(m.File, []byte(m.Run()))
	if err != nil {
		return cfg, mistake("model %s: its settings (clustergym.run) cannot be read: %w", m.File, err)
	}
	files, err := arena.Files(&cfg)
	if err != nil {
		return cfg, err
	}
	for _, key := range slices.Sorted(maps.Keys(files)) {
		return cfg, mistake("model %s: its settings (clustergym.run) name the file %q for %s; a model says what it plays in, not which files are read", m.File, files[key], key)
	}
	return cfg, nil
}

// played reads the models with the environments that they play in.
func (m *modelFlags) played() ([]simulate.Played, error) {
	list, err := m.read()
	if err != nil {
		return nil, err
	}
	var all []simulate.Played
	for i := range list {
		cfg, err := playedConfig(&list[i])
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
