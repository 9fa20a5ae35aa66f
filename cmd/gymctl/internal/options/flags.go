package options

import (
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/bridge/budget"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/lab/config"
)

// WorkersFlag adds --workers, of which there is at least one.
func WorkersFlag(c *cobra.Command, workers *int) {
	c.Flags().IntVar(workers, "workers", runtime.GOMAXPROCS(0), "`N` goroutines; affects only speed")
	cli.Least(c, 1, "workers")
}

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

// SizeFlag is a flag whose value is a number of bytes; 0 stands for the default.
type SizeFlag struct{ Bytes *int64 }

// String implements pflag.Value.
func (f SizeFlag) String() string {
	if f.Bytes == nil || *f.Bytes == 0 {
		return ""
	}
	return strconv.FormatInt(*f.Bytes, 10)
}

// Set implements pflag.Value.
func (f SizeFlag) Set(s string) (err error) {
	*f.Bytes, err = budget.ParseSize(s)
	return err
}

// Type implements pflag.Value.
func (f SizeFlag) Type() string { return "size" }
