package machine

import (
	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

func versionVerb(a *cli.App) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and the float32 kernels in use",
		Long: `version prints what a result was made with. Kernel sets differ in the last bits of their results; everything else
being equal, results of the same set are equal byte for byte.`,
		Example: `  gymctl version
  gymctl version --json`,
		Args: cli.Args(0, 0, "flags only"),
		RunE: func(*cobra.Command, []string) error {
			v := cli.About()
			if asJSON {
				return a.JSON(v)
			}
			a.Printf("%s", v)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
