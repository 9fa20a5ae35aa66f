// Package look holds the verbs that show what there is: runs, environments, workloads, settings, checkpoints.
package look

import (
	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

// Group are the verbs that show what there is: runs, environments, workloads, settings, checkpoints.
func Group() cli.Group {
	return cli.Group{Title: "Look", Verbs: []func(*cli.App) *cobra.Command{uiVerb, envsVerb, traceVerb, configVerb, ckptVerb}}
}
