package machine

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

func versionVerb(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and the float32 kernels in use",
		Long: `version prints what a result was made with. Kernel sets differ in the last bits of their results; everything else
being equal, results of the same set are equal byte for byte.`,
		Example: `  gymctl version
  gymctl version --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			v := cli.About()
			return a.Show(c, v, func(w io.Writer) error {
				_, err := fmt.Fprint(w, v)
				return err
			})
		},
	}
	cli.JSONFlag(c)
	return c
}
