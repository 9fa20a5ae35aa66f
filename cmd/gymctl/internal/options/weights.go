package options

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/internal/fault"
	"clustergym/lab/tune"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers/tuned"
)

// Weights are --hold and --index: the files of the weights of these policies.
type Weights struct{ hold, index string }

// Flags adds --hold and --index.
func (w *Weights) Flags(f *pflag.FlagSet) {
	f.StringVar(&w.hold, "hold", "", "weights of the policy hold: `FILE` of gymctl tune (without it, the default ones)")
	f.StringVar(&w.index, "index", "", "weights of the policy index: `FILE` of gymctl tune (without it, the default ones)")
}

// Read sets the weights to those of the files that are given; policies are those that they are for.
func (w *Weights) Read(c *cobra.Command, policies []string, hold *tuned.Hold, index *tuned.Index) error {
	for _, x := range []struct{ name, file string }{{"hold", w.hold}, {"index", w.index}} {
		if !c.Flags().Changed(x.name) {
			continue
		}
		if !slices.ContainsFunc(policies, func(p string) bool { return policyname.Of(p).Base == x.name }) {
			return fault.Mistakef("--%s: none of %s is %s; add %s or %s", x.name, strings.Join(policies, ", "), x.name, x.name,
				policyname.Slots(x.name))
		}
		got, err := tune.Read(x.name, x.file)
		if err != nil {
			return err
		}
		if x.name == "hold" {
			*hold = got.Hold
		} else {
			*index = got.Index
		}
	}
	return nil
}
