package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/internal/fault"
)

// The rules among flags, as annotations of them. Those that cobra has are its own: Apart, Together and One.
const (
	needsKey  = "gymctl_needs"
	filledKey = "gymctl_filled"
)

// Apart lets each flag of first go with none of others. Flags that c does not have are passed over.
func Apart(c *cobra.Command, first []string, others ...string) {
	for _, a := range first {
		for _, b := range others {
			if a != b && c.Flags().Lookup(a) != nil && c.Flags().Lookup(b) != nil {
				c.MarkFlagsMutuallyExclusive(a, b)
			}
		}
	}
}

// Rivals lets at most one of flags be given.
func Rivals(c *cobra.Command, flags ...string) { c.MarkFlagsMutuallyExclusive(flags...) }

// One makes c want exactly one of flags; of a single flag, that it is given.
func One(c *cobra.Command, flags ...string) {
	c.MarkFlagsOneRequired(flags...)
	if len(flags) > 1 {
		c.MarkFlagsMutuallyExclusive(flags...)
	}
	Filled(c, flags...)
}

// Needs lets flags be given only with one of hosts.
func Needs(c *cobra.Command, hosts []string, flags ...string) { annotate(c, needsKey, hosts, flags) }

// Filled refuses "" as the value of flags.
func Filled(c *cobra.Command, flags ...string) { annotate(c, filledKey, []string{"true"}, flags) }

func annotate(c *cobra.Command, key string, values, flags []string) {
	for _, name := range flags {
		if err := c.Flags().SetAnnotation(name, key, values); err != nil {
			panic("gymctl: " + err.Error()) // the flag does not exist
		}
	}
}

// checkRules holds the flags of c against all rules.
func checkRules(c *cobra.Command, _ []string) error {
	err := groupMistake(c, c.ValidateFlagGroups())
	c.Flags().Visit(func(f *pflag.Flag) {
		hosts := f.Annotations[needsKey]
		lonely := hosts != nil && !slices.ContainsFunc(hosts, c.Flags().Changed)
		switch {
		case err != nil:
		case lonely:
			err = fault.Mistakef("--%s goes with %s", f.Name, listed(hosts, "or"))
		case f.Annotations[filledKey] != nil && (f.Value.String() == "" || f.Value.String() == "[]"):
			err = fault.Mistakef(`--%s: got "", want %s`, f.Name, WantOf(f))
		}
	})
	return err
}

// groupFault matches cobra's errors of groups of flags: the group, and of a pair those that were given.
var groupFault = regexp.MustCompile(`^(if any|at least one of the) flags in the group \[([^]]*)\] (?:are set none of the others can be; \[([^]]*)\]|is required)`)

// groupMistake turns cobra's error about a group of flags into one sentence; it returns any other error as it is.
func groupMistake(c *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	m := groupFault.FindStringSubmatch(err.Error())
	switch {
	case m == nil:
		return err
	case m[1] == "if any":
		if pair := strings.Fields(m[2]); len(pair) == 2 {
			return fault.Mistakef("--%s does not go with --%s", pair[1], pair[0])
		}
		return fault.Mistakef("%s do not go together", listed(strings.Fields(m[3]), "and"))
	}
	return fault.Mistakef("%swant %s; see %s --help", VerbName(c), listed(strings.Fields(m[2]), "or"), c.CommandPath())
}

// listed writes flags as people do: --a, --b or --c.
func listed(flags []string, word string) string {
	text := ""
	for i, f := range flags {
		switch {
		case i == 0:
		case i == len(flags)-1:
			text += " " + word + " "
		default:
			text += ", "
		}
		text += "--" + f
	}
	return text
}
