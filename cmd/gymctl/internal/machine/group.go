// Package machine holds the verbs about this program on this machine.
package machine

import (
	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

// Group are the verbs about this program on this machine.
func Group() cli.Group {
	return cli.Group{Title: "This machine", Verbs: []func(*cli.App) *cobra.Command{speedVerb, versionVerb, manVerb}}
}
