package options

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/lab/config"
)

// KernelsFlag adds --kernels; useKernels applies it.
func KernelsFlag(c *cobra.Command, name *string) {
	sets := config.KernelSets()
	c.Flags().StringVar(name, "kernels", sets[0], "`SET` of float32 kernels: "+strings.Join(sets, ", ")+"; auto = the fastest")
	cli.Complete(c, "kernels", sets...)
}

// UseKernels selects the set of kernels that --kernels names.
func UseKernels(name string) error {
	if !slices.Contains(config.KernelSets(), name) {
		return cli.Unknown("--kernels: set", name, config.KernelSets())
	}
	if err := config.UseKernels(name); err != nil {
		return fault.Mistakef("--%w", err)
	}
	return nil
}
