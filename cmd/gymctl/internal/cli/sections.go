package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sectionKey annotates a flag with the section of the help that shows it.
const sectionKey = "gymctl_section"

// Section shows flags of c under a title in its help, in this order. Sections stand in the order of their calls, before
// the flags that no section has. Flags that c does not have are passed over.
func Section(c *cobra.Command, title string, flags ...string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[sectionKey] += title + "\n"
	for i, name := range flags {
		if f := c.Flags().Lookup(name); f != nil {
			annotate(c, sectionKey, []string{title, fmt.Sprintf("%02d", i)}, []string{name})
		}
	}
}

// flagSections returns the flags of c for its help, with a title above each section.
func flagSections(c *cobra.Command) string {
	var b strings.Builder
	titles := strings.Split(c.Annotations[sectionKey], "\n")
	titles[len(titles)-1] = "" // of flags without a section
	for _, title := range slices.Compact(titles) {
		var flags []*pflag.Flag
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if at := f.Annotations[sectionKey]; (at == nil && title == "" || at != nil && at[0] == title) && !f.Hidden {
				flags = append(flags, f)
			}
		})
		if len(flags) == 0 {
			continue
		}
		if title != "" {
			slices.SortFunc(flags, func(a, b *pflag.Flag) int {
				return strings.Compare(a.Annotations[sectionKey][1], b.Annotations[sectionKey][1])
			})
		} else if title = "Flags"; b.Len() > 0 {
			title = "Other flags"
		}
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.SortFlags = false
		for _, f := range flags {
			set.AddFlag(f)
		}
		b.WriteString("\n\n" + title + ":\n" + strings.TrimRight(set.FlagUsages(), "\n"))
	}
	return b.String()
}

// usage is cobra's template with sections of flags, and without other names of the verb.
const usage = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Available Commands:{{range $cmds}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}{{flagSections .}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}
`

func init() {
	cobra.AddTemplateFunc("flagSections", flagSections)
	cobra.EnableCommandSorting = false // verbs have an order: what everybody uses first
}
