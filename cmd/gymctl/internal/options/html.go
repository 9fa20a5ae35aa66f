package options

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/pages/runpage"
)

// HtmlFlag registers --html of verbs that write a page about agents.
func HtmlFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "html", "",
		"write a page with learning curves, paired differences and schedules to `FILE`, for any browser and without a network")
}

// CheckPage refuses a name of a page that could not be written after hours of work. The page may lie in the run
// directory, which does not exist yet.
func CheckPage(file, runDir string) error {
	if file == "" {
		return nil
	}
	if file == "-" {
		return fault.Mistakef(`--html: got "-", want the path of a file: standard output is for the result`)
	}
	if i, err := os.Stat(file); err == nil && i.IsDir() {
		return fault.Mistakef("--html: %s is a folder, want the path of a file", file)
	}
	dir := filepath.Dir(filepath.Clean(file))
	if i, err := os.Stat(dir); err == nil && i.IsDir() || runDir != "" && inside(dir, runDir) {
		return nil
	}
	return fault.Mistakef("--html: there is no folder %s for %s", dir, filepath.Base(file))
}

// inside reports whether path is dir or lies in it, by name.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// WritePage writes the page of agents.
func WritePage(ctx context.Context, a *cli.App, file string, p *runpage.Page) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { // a folder in the run directory
		return &fault.Mistake{Err: err}
	}
	line := cli.NewStatus(a, 0)
	line.Show(func(int) []string { return []string{"drawing " + file} })
	err := a.WriteFile(file, []string{p.Config.Trace.File, p.Config.Cluster},
		func(w io.Writer) error { return p.Write(ctx, w) })
	line.Clear()
	if err == nil {
		a.Notef("the page is %s", file)
	}
	return err
}
