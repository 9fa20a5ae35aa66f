package options

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
)

// FileMistake returns an error about a file that the user named.
func FileMistake(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Mistakef("%s: there is no such file", path)
	}
	return fault.Mistakef("%s: %w", path, ordinary.Reason(err))
}

// EvalFaults rewrites faults of the configuration to name the flag that set the value, if there is one. names maps
// keys to flags.
func EvalFaults(c *cobra.Command, err error, names map[string]string) error {
	var l fault.List
	for _, f := range fault.All(err) {
		g := *f
		key, _, _ := strings.Cut(f.Key, "[") // for a list, the value shows which element it is
		if name := names[key]; name != "" && c.Flags().Changed(name) {
			g.Key = "--" + name
		}
		l.Join("", &g)
	}
	return &fault.Mistake{Err: l.Err()}
}
