// Package operate holds the verbs that run for long: servers, workers, and what stands next to a real cluster.
package operate

import (
	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

// Group are the verbs that run for long: servers, workers, and what stands next to a real cluster.
func Group() cli.Group {
	return cli.Group{Title: "Operate", Verbs: []func(*cli.App) *cobra.Command{ServeVerb, workerVerb, steerVerb, twinVerb}}
}
