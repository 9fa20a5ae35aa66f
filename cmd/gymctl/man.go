package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func manVerb(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: `man writes a manual page of each verb into the folder DIR, which it makes if it does not exist: gymctl.1,
gymctl-train.1 and so on. They say what --help says.`,
		Example: `  gymctl man ~/.local/share/man/man1
  man gymctl-train`,
		Args:              args(1, 1, "one DIR"),
		ValidArgsFunction: onlyFolders,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			n, err := writePages(c.Root(), args[0])
			if err != nil {
				return err
			}
			a.notef("%d manual pages in %s", n, args[0])
			return nil
		},
	}
}

// writePages writes the pages of a verb and those below it, and returns how many there are.
func writePages(c *cobra.Command, dir string) (int, error) {
	c.InitDefaultHelpFlag()
	if err := os.WriteFile(filepath.Join(dir, pageName(c)+".1"), []byte(manPage(c)), 0o644); err != nil {
		return 0, err
	}
	all := 1
	for _, s := range c.Commands() {
		if !documented(s) {
			continue
		}
		n, err := writePages(s, dir)
		all += n
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// documented tells whether a verb has a page: not those that the shell calls, nor help.
func documented(c *cobra.Command) bool { return c.IsAvailableCommand() && c.Name() != "help" }

// pageName is the name of a verb's page: gymctl-trace-stats.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns the page of a verb in the macros of man(7). It names no date and nothing of this machine, so that equal
// programs write equal pages.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	line := func(macro string, words ...string) {
		b.WriteString("." + macro)
		for _, w := range words {
			b.WriteString(` "` + strings.ReplaceAll(roff(w), `"`, `\(dq`) + `"`)
		}
		b.WriteByte('\n')
	}
	line("TH", strings.ToUpper(pageName(c)), "1", "", "gymctl "+about().Version, "ClusterGym")
	b.WriteString(".nh\n") // names of verbs and flags are not to be broken
	line("SH", "NAME")
	b.WriteString(roff(pageName(c)) + ` \- ` + roff(c.Short) + "\n")
	line("SH", "SYNOPSIS")
	b.WriteString(`\fB` + roff(c.CommandPath()) + `\fR` + roff(strings.TrimPrefix(c.UseLine(), c.CommandPath())) + "\n")
	if c.Long != "" {
		line("SH", "DESCRIPTION")
		manText(&b, c.Long)
	}
	var verbs []*cobra.Command
	for _, s := range c.Commands() {
		if documented(s) {
			verbs = append(verbs, s)
		}
	}
	if len(verbs) > 0 {
		line("SH", "VERBS")
		for _, s := range verbs {
			b.WriteString(".TP\n" + `\fB` + roff(s.Name()) + `\fR` + "\n" + roff(s.Short) + "\n")
		}
	}
	if f := c.NonInheritedFlags(); f.HasAvailableFlags() {
		line("SH", "OPTIONS")
		manFlags(&b, f)
	}
	if f := c.InheritedFlags(); f.HasAvailableFlags() {
		line("SH", "OPTIONS OF ALL VERBS")
		manFlags(&b, f)
	}
	if c.Example != "" {
		line("SH", "EXAMPLES")
		manVerbatim(&b, strings.Split(strings.Trim(c.Example, "\n"), "\n"))
	}
	line("SH", "EXIT STATUS")
	b.WriteString("0 done, 1 failed, 2 a mistake in a flag, file or value, 130 interrupted.\n")
	var also []string
	if c.HasParent() {
		also = append(also, pageName(c.Parent()))
	}
	for _, s := range verbs {
		also = append(also, pageName(s))
	}
	if len(also) > 0 {
		line("SH", "SEE ALSO")
		for i, name := range also {
			end := ","
			if i == len(also)-1 {
				end = ""
			}
			b.WriteString(`.BR ` + roff(name) + ` (1)` + end + "\n")
		}
	}
	return b.String()
}

// listed matches lines that stay lines: "Placements: first-fit, …".
var listed = regexp.MustCompile(`^[A-Z][a-z ]*: `)

// manText writes paragraphs. One that has an indented line keeps its lines.
func manText(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		lines := strings.Split(paragraph, "\n")
		keep := false
		for _, l := range lines {
			keep = keep || strings.HasPrefix(l, " ")
		}
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if keep {
			manVerbatim(b, lines)
			continue
		}
		for i, l := range lines {
			if i > 0 && listed.MatchString(l) {
				b.WriteString(".br\n")
			}
			b.WriteString(roff(strings.TrimSpace(l)) + "\n")
		}
	}
}

// manVerbatim writes lines as they are.
func manVerbatim(b *strings.Builder, lines []string) {
	b.WriteString(".nf\n")
	for _, l := range lines {
		b.WriteString(roff(l) + "\n")
	}
	b.WriteString(".fi\n")
}

func manFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			b.WriteString(`\fB` + roff("-"+f.Shorthand) + `\fR, `)
		}
		b.WriteString(`\fB` + roff("--"+f.Name) + `\fR`)
		if value != "" {
			b.WriteString(` \fI` + roff(value) + `\fR`)
		}
		b.WriteString("\n" + roff(usage))
		switch {
		case f.Name == "workers" && f.DefValue != "0":
			b.WriteString(" (default one for each processor)") // the number is this machine's
		case f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" && f.DefValue != "0s":
			b.WriteString(roff(fmt.Sprintf(" (default %s)", f.DefValue)))
		}
		b.WriteByte('\n')
	})
}

// roff returns text as a line of a page: nothing in it is a macro or an escape, and a hyphen stays one when it is copied.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return strings.ReplaceAll(text, "\n", "\n"+`\&`)
}
