package main

import (
	"github.com/spf13/cobra"

	"clustergym/experiments/models"
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
