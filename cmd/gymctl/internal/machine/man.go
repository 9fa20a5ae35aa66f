package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
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
			if err := writePages(c.Root(), args[0]); err != nil {
				return err
			}
			pages, err := filepath.Glob(filepath.Join(args[0], "*.1"))
			a.Notef("%d manual pages in %s", len(pages), args[0])
			return err
		},
	}
}

// indents matches the beginning of lines that stay as they are; Markdown wants four blanks.
var indents = regexp.MustCompile(`(?m)^  `)

// writePages writes the pages of c and the verbs below it. They name no date and nothing of this machine, so that equal
// programs write equal pages.
func writePages(c *cobra.Command, dir string) error {
	c.DisableAutoGenTag = true
	c.Long = indents.ReplaceAllString(c.Long, "    ")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "workers" && f.DefValue != "0" {
			f.DefValue = "one for each processor" // the number is this machine's
		}
	})
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() && s.Name() != "help" {
			if err := writePages(s, dir); err != nil {
				return err
			}
		}
	}
	var page bytes.Buffer
	var never time.Time
	if err := doc.GenMan(c, &doc.GenManHeader{Section: "1", Date: &never, Source: "gymctl " + cli.About().Version,
		Manual: "ClusterGym"}, &page); err != nil {
		return err
	}
	text := bytes.Replace(page.Bytes(), []byte(never.Format(`"Jan 2006"`)), []byte(`""`), 1)
	return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"), text, 0o644)
}
