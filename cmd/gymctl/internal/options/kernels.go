package options

import (
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/lab/config"
)

// KernelsFlag adds --kernels; useKernels applies it.
func KernelsFlag(c *cobra.Command, name *string) {
	sets := config.KernelSets()
	*name = sets[0]
	cli.Choice(c, name, "kernels", "`SET` of float32 kernels: "+strings.Join(sets, ", ")+"; auto = the fastest", sets...)
}

// UseKernels selects the set of kernels that --kernels names.
func UseKernels(name string) error {
	if err := config.UseKernels(name); err != nil {
		return fault.Mistakef("--%w", err)
	}
	return nil
}
