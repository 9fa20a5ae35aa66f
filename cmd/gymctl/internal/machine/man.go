package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
)

func manVerb(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: `man writes a manual page of each verb into the folder DIR, which it makes if it does not exist: gymctl.1,
gymctl-train.1 and so on. They say what --help says.`,
		Example: `  gymctl man ~/.local/share/man/man1
  man gymctl-train`,
		Args:              cli.Args(1, 1, "one DIR"),
		ValidArgsFunction: cli.OnlyFolders,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			n, err := writePages(c.Root(), args[0])
			if err != nil {
				return err
			}
			a.Notef("%d manual pages in %s", n, args[0])
			return nil
		},
	}
}

// writePages writes the pages of a verb and those below it, and returns how many there are.
func writePages(c *cobra.Command, dir string) (int, error) {
	c.InitDefaultHelpFlag()
	if err := os.WriteFile(filepath.Join(dir, PageName(c)+".1"), []byte(ManPage(c)), 0o644); err != nil {
		return 0, err
	}
	all := 1
	for _, s := range c.Commands() {
		if !Documented(s) {
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

// Documented tells whether a verb has a page: not those that the shell calls, nor help.
func Documented(c *cobra.Command) bool { return c.IsAvailableCommand() && c.Name() != "help" }

// PageName is the name of a verb's page: gymctl-trace-stats.
func PageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// ManPage returns the page of a verb in the macros of man(7). It names no date and nothing of this machine, so that equal
// programs write equal pages.
func ManPage(c *cobra.Command) string {
	var b strings.Builder
	line := func(macro string, words ...string) {
		b.WriteString("." + macro)
		for _, w := range words {
			b.WriteString(` "` + strings.ReplaceAll(Roff(w), `"`, `\(dq`) + `"`)
		}
		b.WriteByte('\n')
	}
	line("TH", strings.ToUpper(PageName(c)), "1", "", "gymctl "+cli.About().Version, "ClusterGym")
	b.WriteString(".nh\n") // names of verbs and flags are not to be broken
	line("SH", "NAME")
	b.WriteString(Roff(PageName(c)) + ` \- ` + Roff(c.Short) + "\n")
	line("SH", "SYNOPSIS")
	b.WriteString(`\fB` + Roff(c.CommandPath()) + `\fR` + Roff(strings.TrimPrefix(c.UseLine(), c.CommandPath())) + "\n")
	if c.Long != "" {
		line("SH", "DESCRIPTION")
		manText(&b, c.Long)
	}
	var verbs []*cobra.Command
	for _, s := range c.Commands() {
		if Documented(s) {
			verbs = append(verbs, s)
		}
	}
	if len(verbs) > 0 {
		line("SH", "VERBS")
		for _, s := range verbs {
			b.WriteString(".TP\n" + `\fB` + Roff(s.Name()) + `\fR` + "\n" + Roff(s.Short) + "\n")
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
		also = append(also, PageName(c.Parent()))
	}
	for _, s := range verbs {
		also = append(also, PageName(s))
	}
	if len(also) > 0 {
		line("SH", "SEE ALSO")
		for i, name := range also {
			end := ","
			if i == len(also)-1 {
				end = ""
			}
			b.WriteString(`.BR ` + Roff(name) + ` (1)` + end + "\n")
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
			b.WriteString(Roff(strings.TrimSpace(l)) + "\n")
		}
	}
}

// manVerbatim writes lines as they are.
func manVerbatim(b *strings.Builder, lines []string) {
	b.WriteString(".nf\n")
	for _, l := range lines {
		b.WriteString(Roff(l) + "\n")
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
			b.WriteString(`\fB` + Roff("-"+f.Shorthand) + `\fR, `)
		}
		b.WriteString(`\fB` + Roff("--"+f.Name) + `\fR`)
		if value != "" {
			b.WriteString(` \fI` + Roff(value) + `\fR`)
		}
		b.WriteString("\n" + Roff(usage))
		switch {
		case f.Name == "workers" && f.DefValue != "0":
			b.WriteString(" (default one for each processor)") // the number is this machine's
		case f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" && f.DefValue != "0s":
			b.WriteString(Roff(fmt.Sprintf(" (default %s)", f.DefValue)))
		}
		b.WriteByte('\n')
	})
}

// Roff returns text as a line of a page: nothing in it is a macro or an escape, and a hyphen stays one when it is copied.
func Roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return strings.ReplaceAll(text, "\n", "\n"+`\&`)
}
