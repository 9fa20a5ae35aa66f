// Package research holds the verbs of papers, of the benchmark and of searches for settings.
package research

import (
	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

// Group are the verbs of papers, of the benchmark and of searches for settings.
func Group() cli.Group {
	return cli.Group{Title: "Research", Verbs: []func(*cli.App) *cobra.Command{experimentVerb, benchmarkVerb, sweepVerb}}
}
