// Package start holds the verbs with which everybody begins: they simulate, train, compare and plan.
package start

import (
	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

// Group are the verbs with which everybody begins: they simulate, train and compare.
func Group() cli.Group {
	return cli.Group{Title: "Start", Verbs: []func(*cli.App) *cobra.Command{trainVerb, evalVerb, simVerb, tuneVerb, predictVerb, planVerb, peerVerb}}
}
