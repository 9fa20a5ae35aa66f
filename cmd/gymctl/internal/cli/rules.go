package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/internal/fault"
)

// The rules for flags, as annotations of them. Those that cobra has are its own: Apart and One.
const (
	needsKey  = "gymctl_needs"
	filledKey = "gymctl_filled"
	leastKey  = "gymctl_least"
)

// hints are the ends of messages that refuse a flag: by the flag and the one that it does or does not go with, or by
// the latter alone.
var hints = map[string]string{
	"columns trace":        "; for the configuration's own trace use --set trace.columns.NAME=COLUMN",
	"sort trace":           "; for the configuration's own trace use --set trace.sort=true",
	"trace-root own-files": ": clients name files by absolute paths, or below one folder",
	"ui checkpoint":        ", whose runs it shows",
	"env config":           ": the configuration names its environment",
	"env checkpoint":       ": its run's configuration names the environment",
	"serve external":       "; name each policy that will connect",
	"policy-onnx listen":   ": models play on this machine",
	"policy-onnx queue":    ": models play on this machine",
	"estimates rungs":      ": it names them",
	"resume":               ": its folder says it",
	"from":                 ": no cluster is asked",
	"check":                ", which serves nothing",
	"ui status":            ": it does no tasks to show",
	"seeds":                ": each seed is a training of its own",
	"train-generator":      ", which plans nothing",
	"serve":                " HOST:PORT",
}

// hint returns the end of a message that refuses a flag because of another.
func hint(flag, other string) string { return cmp.Or(hints[flag+" "+other], hints[other]) }

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

// Least refuses values of flags below least, a number or a time.
func Least(c *cobra.Command, least any, flags ...string) {
	annotate(c, leastKey, []string{fmt.Sprint(least)}, flags)
}

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
		if err == nil {
			err = flagRules(c, f)
		}
	})
	return err
}

// flagRules holds a flag that is given against the rules for it alone.
func flagRules(c *cobra.Command, f *pflag.Flag) error {
	hosts, least, value := f.Annotations[needsKey], f.Annotations[leastKey], f.Value.String()
	switch {
	case hosts != nil && !slices.ContainsFunc(hosts, c.Flags().Changed):
		also := ""
		if len(hosts) == 1 {
			also = hint(f.Name, hosts[0])
		}
		return fault.Mistakef("--%s goes with %s%s", f.Name, listed(hosts, "or"), also)
	case f.Annotations[filledKey] != nil && (value == "" || value == "[]"):
		return fault.Mistakef(`--%s: got "", want %s`, f.Name, WantOf(f))
	case least != nil && quantity(value) < quantity(least[0]):
		return fault.Mistakef("--%s: got %s, want %s or more", f.Name, value, least[0])
	}
	return nil
}

// quantity returns a number, or a time in seconds.
func quantity(text string) float64 {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("gymctl: " + err.Error()) // the flag takes neither numbers nor times
	}
	return d.Seconds()
}

// groupFault matches cobra's errors of groups of flags: the group, and of a pair those that were given.
var groupFault = regexp.MustCompile(
	`^(if any|at least one of the) flags in the group \[([^]]*)\] (?:are set none of the others can be; \[([^]]*)\]|is required)`)

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
			return fault.Mistakef("--%s does not go with --%s%s", pair[1], pair[0], hint(pair[1], pair[0]))
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
