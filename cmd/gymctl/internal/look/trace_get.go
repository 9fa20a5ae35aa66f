package look

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/internal/texttable"
	"clustergym/lab/catalog"
)

// PublicTraces returns the catalogue; tests replace it.
var PublicTraces = catalog.Public

// getFlags are the flags of trace get.
type getFlags struct {
	list, all          bool
	out, cache, mirror string
}

func traceGet(a *cli.App) *cobra.Command {
	var g getFlags
	c := &cobra.Command{
		Use:   "get NAME...",
		Short: "Fetch public traces from their publishers, or your own cluster's",
		Long: `get downloads published traces, lists of machines and tables of measurements from the publisher's repository, at a
fixed commit, and checks their size and SHA-256. A file that is already there is not fetched again, and a broken
transfer continues where it stopped. --list shows what is available.

Files are kept in the cache: clustergym/traces in your cache folder, or the folder $CLUSTERGYM_CACHE. Each has its own
licence, which is printed with the paper to cite.

gymctl trace get slurm and gymctl trace get kubernetes fetch the history of your own cluster.`,
		Example: `  gymctl trace get --list
  gymctl trace get philly-jobs lublin-256
  gymctl trace get openb-pods-default openb-nodes -o data`,
		Args: func(c *cobra.Command, names []string) error {
			if g.list || g.all {
				return cli.Args(0, 0, "no NAME beside --list and --all")(c, names)
			}
			return cli.Args(1, 1<<10, "one or more NAMEs, --list or --all")(c, names)
		},
		ValidArgsFunction: cobra.FixedCompletions(PublicTraces().Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, names []string) error {
			dir, err := g.folder(c)
			if err != nil {
				return err
			}
			if g.list {
				return listPublic(a, c, dir)
			}
			if g.all {
				names = PublicTraces().Names()
			}
			return getPublic(a, c, names, dir, &g)
		},
	}
	c.AddCommand(traceGetSlurm(a), traceGetKubernetes(a))
	f := c.Flags()
	f.BoolVar(&g.list, "list", false, "show what can be fetched, and what is in the cache")
	f.BoolVar(&g.all, "all", false, "fetch everything, "+catalog.FormatSize(publicSize()))
	f.StringVarP(&g.out, "output", "o", "", "put copies into `DIR`, besides the cache")
	f.StringVar(&g.cache, "cache", "",
		"keep files in `DIR` (default $CLUSTERGYM_CACHE, or clustergym/traces in your cache folder)")
	f.StringVar(&g.mirror, "mirror", "", "fetch from addresses that begin with `URL` instead of "+catalog.Publisher)
	cli.JSONFlag(c)
	c.MarkFlagsMutuallyExclusive("list", "all")
	cli.Filled(c, "output", "cache")
	return c
}

// folder returns the cache to use.
func (g *getFlags) folder(c *cobra.Command) (string, error) {
	if c.Flags().Changed("mirror") {
		if err := catalog.CheckMirror(g.mirror); err != nil {
			return "", fault.Mistakef("--mirror: %w", err)
		}
	}
	if g.cache != "" {
		return g.cache, nil
	}
	dir, err := catalog.CacheDir()
	if err != nil {
		return "", &fault.Mistake{Err: err}
	}
	return dir, nil
}

// PublicTrace is an entry of the catalogue in the JSON documents of trace get.
type PublicTrace struct {
	Name          string `json:"name"`
	What          string `json:"what"`
	Kind          string `json:"kind"`
	Format        string `json:"format"`
	Path          string `json:"path"` // where the file is, or would be
	Here          bool   `json:"here"`
	Fetched       bool   `json:"fetched"` // by this run
	Bytes         int64  `json:"bytes"`
	Files         []file `json:"files"`
	Licence       string `json:"licence"`
	NonCommercial bool   `json:"noncommercial"`
	Cite          string `json:"cite"`
	Needs         string `json:"needs"` // another entry that Next needs and that is not in the cache
	Next          string `json:"next"`  // the command to try, "" if no command reads the file by itself
}

type file struct {
	URL    string `json:"url"` // the publisher's address
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// newPublicTrace describes e, whose file is at path or would be there; dir is the cache.
func newPublicTrace(e *catalog.Entry, path, dir string) (PublicTrace, error) {
	s := PublicTraces().SourceOf(e)
	p := PublicTrace{Name: e.Name, What: e.What, Kind: e.Kind, Format: e.Format, Path: path, Bytes: e.Size(),
		Licence:       s.Licence,
		NonCommercial: s.NonCommercial, Cite: s.Cite}
	for i := range e.Files {
		p.Files = append(p.Files, file{s.URL(catalog.Publisher, &e.Files[i]), e.Files[i].Size, e.Files[i].SHA256})
	}
	switch e.Kind {
	case catalog.KindTrace:
		p.Next = "gymctl trace stats " + cli.ShellWords(path)
	case catalog.KindInventory:
		p.Next = "gymctl config show --cluster " + cli.ShellWords(path)
	}
	if e.Profiles == "" {
		return p, nil
	}
	table, err := PublicTraces().Find(e.Profiles)
	if err != nil {
		return p, err
	}
	p.Next += " --profiles " + cli.ShellWords(table.Path(dir)) + " --reference " + e.Reference
	here, err := table.In(dir)
	if !here {
		p.Needs = table.Name
	}
	return p, err
}

func listPublic(a *cli.App, c *cobra.Command, dir string) error {
	entries := PublicTraces().Entries
	list := []PublicTrace{}
	for i := range entries {
		e := &entries[i]
		here, err := e.In(dir)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		p, err := newPublicTrace(e, e.Path(dir), dir)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		p.Here = here
		list = append(list, p)
	}
	if cli.AsJSON(c) {
		return a.JSON(struct {
			Cache  string        `json:"cache"`
			Traces []PublicTrace `json:"traces"`
		}{dir, list})
	}
	var rows [][]string
	restricted := false
	for _, p := range list {
		here, name := "", p.Name
		if p.Here {
			here = "yes"
		}
		if p.NonCommercial {
			name, restricted = name+" *", true
		}
		rows = append(rows, []string{name, p.Kind, p.Format, here, texttable.Bytes(p.Bytes), p.What})
	}
	if err := listTable(a, rows); err != nil {
		return err
	}
	a.Printf("\nhere: in the cache, %s\n", dir)
	if restricted {
		a.Printf("*: for non-commercial use only\n")
	}
	return nil
}

// listTable writes the table of --list: unlike in other tables, its last column is aligned to the left.
func listTable(a *cli.App, rows [][]string) error {
	texttable.OneUnit(rows) // before sizes are aligned
	for i, r := range rows {
		rows[i] = append(r[:4:4], fmt.Sprintf("%8s", r[4]), r[5])
	}
	return a.Table(6, []string{"name", "kind", "format", "here", "    size", "what it is"}, rows, "kind", "format")
}

// getPublic fetches names in order. If one fails, it continues with the others, unless the folder is at fault or the
// user interrupted it.
func getPublic(a *cli.App, c *cobra.Command, names []string, dir string, g *getFlags) error {
	var entries []*catalog.Entry
	for _, n := range names { // check every name first, so that a typo in the last is reported before anything is fetched
		e, err := PublicTraces().Find(n)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		entries = append(entries, e)
	}
	bar := cli.NewBar(a, 0)
	getter := catalog.NewGetter(dir, catalog.Options{
		Mirror: g.mirror,
		Progress: func(e *catalog.Entry, done, all int64) {
			amount := func(done, all int64) string { return catalog.FormatSize(done) + " of " + catalog.FormatSize(all) }
			rate := func(perSecond float64) string { return catalog.FormatSize(int64(perSecond)) + "/s" }
			bar.Show(e.Name, done, all, amount, rate)
		},
		Note: func(line string) {
			bar.Clear() // it is drawn again at the next tick
			a.Notef("%s", line)
		},
	})
	list := []PublicTrace{}
	var failed []error
	for i, e := range entries {
		if i > 0 && !cli.AsJSON(c) && len(list) > 0 {
			a.Printf("\n")
		}
		fetched, err := getter.Get(c.Context(), PublicTraces().SourceOf(e), e)
		bar.Clear()
		path := e.Path(dir)
		if err == nil && g.out != "" {
			path, err = catalog.Copy(e, dir, g.out)
		}
		if stop, ok := errors.AsType[*catalog.StoppedError](err); ok {
			return fmt.Errorf("%w: %w", fault.ErrInterrupted, stop)
		}
		if _, ok := errors.AsType[*catalog.FolderError](err); ok {
			return errors.Join(errors.Join(failed...), &fault.Mistake{Err: err})
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		p, err := newPublicTrace(e, path, dir)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		p.Here, p.Fetched = true, fetched
		if list = append(list, p); !cli.AsJSON(c) {
			showPublic(a, p)
		}
	}
	if len(failed) > 0 || !cli.AsJSON(c) {
		return errors.Join(failed...)
	}
	return a.JSON(cli.Keyed{"traces": list})
}

func showPublic(a *cli.App, p PublicTrace) {
	how := "fetched"
	if !p.Fetched {
		how = "was here already"
	}
	hash := ", sha256 right"
	if len(p.Files) > 1 {
		hash = fmt.Sprintf(" in %d files, each sha256 right", len(p.Files))
	}
	a.Printf("%s: %s\n", p.Name, p.What)
	a.Printf("  path     %s (%s, %s%s)\n", p.Path, how, catalog.FormatSize(p.Bytes), hash)
	a.Printf("  licence  %s\n", p.Licence)
	a.Printf("  cite     %s\n", p.Cite)
	if p.Needs != "" {
		a.Printf("  needs    %s, from which its run times follow: gymctl trace get %s\n", p.Needs, p.Needs)
	}
	if p.Next != "" {
		a.Printf("  try      %s\n", p.Next)
	}
}

// publicSize returns the size of the whole catalogue in bytes.
func publicSize() (n int64) {
	for i := range PublicTraces().Entries {
		n += PublicTraces().Entries[i].Size()
	}
	return n
}
