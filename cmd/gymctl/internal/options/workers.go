package options

import (
	"runtime"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

// WorkersFlag adds --workers, of which there is at least one.
func WorkersFlag(c *cobra.Command, workers *int) {
	c.Flags().IntVar(workers, "workers", runtime.GOMAXPROCS(0), "`N` goroutines; affects only speed")
	cli.Least(c, 1, "workers")
}
