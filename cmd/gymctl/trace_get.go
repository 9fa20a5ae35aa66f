package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/experiments/catalog"
	"clustergym/experiments/texttable"
	"clustergym/internal/fault"
)

// publicTraces returns the catalogue; tests replace it.
var publicTraces = catalog.Public

// getFlags are the flags of trace get.
type getFlags struct {
	list, all, asJSON  bool
	out, cache, mirror string
}

func traceGet(a *app) *cobra.Command {
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
				return args(0, 0, "no NAME beside --list and --all")(c, names)
			}
			return args(1, 1<<10, "one or more NAMEs, --list or --all")(c, names)
		},
		ValidArgsFunction: cobra.FixedCompletions(publicTraces().Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, names []string) error {
			if g.list && g.all {
				return fault.Mistakef("--list does not go with --all")
			}
			dir, err := g.folder(c)
			if err != nil {
				return err
			}
			if g.list {
				return a.listPublic(dir, g.asJSON)
			}
			if g.all {
				names = publicTraces().Names()
			}
			return a.getPublic(c.Context(), names, dir, &g)
		},
	}
	c.AddCommand(traceGetSlurm(a), traceGetKubernetes(a))
	f := c.Flags()
	f.BoolVar(&g.list, "list", false, "show what can be fetched, and what is in the cache")
	f.BoolVar(&g.all, "all", false, "fetch everything, "+catalog.FormatSize(publicSize()))
	f.StringVarP(&g.out, "output", "o", "", "put copies into `DIR`, besides the cache")
	f.StringVar(&g.cache, "cache", "", "keep files in `DIR` (default $CLUSTERGYM_CACHE, or clustergym/traces in your cache folder)")
	f.StringVar(&g.mirror, "mirror", "", "fetch from addresses that begin with `URL` instead of "+catalog.Publisher)
	f.BoolVar(&g.asJSON, "json", false, "print one JSON document")
	return c
}

// folder returns the cache to use.
func (g *getFlags) folder(c *cobra.Command) (string, error) {
	for _, f := range []struct{ name, value string }{{"output", g.out}, {"cache", g.cache}} {
		if c.Flags().Changed(f.name) && f.value == "" {
			return "", fault.Mistakef(`--%s: got "", want a folder`, f.name)
		}
	}
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

// publicTrace is an entry of the catalogue in the JSON documents of trace get.
type publicTrace struct {
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
func newPublicTrace(e *catalog.Entry, path, dir string) (publicTrace, error) {
	s := publicTraces().SourceOf(e)
	p := publicTrace{Name: e.Name, What: e.What, Kind: e.Kind, Format: e.Format, Path: path, Bytes: e.Size(), Licence: s.Licence,
		NonCommercial: s.NonCommercial, Cite: s.Cite}
	for i := range e.Files {
		p.Files = append(p.Files, file{s.URL(catalog.Publisher, &e.Files[i]), e.Files[i].Size, e.Files[i].SHA256})
	}
	switch e.Kind {
	case catalog.KindTrace:
		p.Next = "gymctl trace stats " + shellWord(path)
	case catalog.KindInventory:
		p.Next = "gymctl config show --cluster " + shellWord(path)
	}
	if e.Profiles == "" {
		return p, nil
	}
	table, err := publicTraces().Find(e.Profiles)
	if err != nil {
		return p, err
	}
	p.Next += " --profiles " + shellWord(table.Path(dir)) + " --reference " + e.Reference
	here, err := table.In(dir)
	if !here {
		p.Needs = table.Name
	}
	return p, err
}

// shellWord quotes s so that a shell reads it as one word.
func shellWord(s string) string {
	if strings.ContainsAny(s, " \t\n'\"$&;|<>()*?[]#~`\\!{}") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func (a *app) listPublic(dir string, asJSON bool) error {
	c := publicTraces()
	list := []publicTrace{}
	for i := range c.Entries {
		e := &c.Entries[i]
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
	if asJSON {
		return a.json(struct {
			Cache  string        `json:"cache"`
			Traces []publicTrace `json:"traces"`
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
	if err := a.listTable(rows); err != nil {
		return err
	}
	a.printf("\nhere: in the cache, %s\n", dir)
	if restricted {
		a.printf("*: for non-commercial use only\n")
	}
	return nil
}

// listTable writes the table of --list: unlike in other tables, its last column is aligned to the left.
func (a *app) listTable(rows [][]string) error {
	texttable.OneUnit(rows) // before sizes are aligned
	for i, r := range rows {
		rows[i] = append(r[:4:4], fmt.Sprintf("%8s", r[4]), r[5])
	}
	return a.table(6, []string{"name", "kind", "format", "here", "    size", "what it is"}, rows, "kind", "format")
}

// getPublic fetches names in order. If one fails, it continues with the others, unless the folder is at fault or the
// user interrupted it.
func (a *app) getPublic(ctx context.Context, names []string, dir string, g *getFlags) error {
	var entries []*catalog.Entry
	for _, n := range names { // check every name first, so that a typo in the last is reported before anything is fetched
		e, err := publicTraces().Find(n)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		entries = append(entries, e)
	}
	bar := &fetchBar{a: a, line: newStatus(a, 0)}
	getter := catalog.NewGetter(dir, catalog.Options{Mirror: g.mirror, Progress: bar.tick, Note: bar.note})
	list := []publicTrace{}
	var failed []error
	for i, e := range entries {
		if i > 0 && !g.asJSON && len(list) > 0 {
			a.printf("\n")
		}
		fetched, err := getter.Get(ctx, publicTraces().SourceOf(e), e)
		bar.close()
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
		if list = append(list, p); !g.asJSON {
			a.showPublic(p)
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if g.asJSON {
		return a.json(struct {
			Traces []publicTrace `json:"traces"`
		}{list})
	}
	return nil
}

func (a *app) showPublic(p publicTrace) {
	how := "fetched"
	if !p.Fetched {
		how = "was here already"
	}
	hash := ", sha256 right"
	if len(p.Files) > 1 {
		hash = fmt.Sprintf(" in %d files, each sha256 right", len(p.Files))
	}
	a.printf("%s: %s\n", p.Name, p.What)
	a.printf("  path     %s (%s, %s%s)\n", p.Path, how, catalog.FormatSize(p.Bytes), hash)
	a.printf("  licence  %s\n", p.Licence)
	a.printf("  cite     %s\n", p.Cite)
	if p.Needs != "" {
		a.printf("  needs    %s, from which its run times follow: gymctl trace get %s\n", p.Needs, p.Needs)
	}
	if p.Next != "" {
		a.printf("  try      %s\n", p.Next)
	}
}

// fetchBar shows the progress of a transfer on a terminal.
type fetchBar struct {
	a     *app
	line  *status
	meter *meter
	entry *catalog.Entry
}

func (b *fetchBar) tick(e *catalog.Entry, done, all int64) {
	if b.line == nil {
		return
	}
	if b.entry != e {
		b.entry, b.meter = e, newMeter(b.a, e.Name, all, done)
		b.meter.amount = func(done, all int64) string { return catalog.FormatSize(done) + " of " + catalog.FormatSize(all) }
		b.meter.rate = func(perSecond float64) string { return catalog.FormatSize(int64(perSecond)) + "/s" }
	}
	b.line.show(func(width int) []string { return b.meter.parts(width, done) })
}

func (b *fetchBar) note(line string) {
	b.line.clear() // it is drawn again at the next tick
	b.a.notef("%s", line)
}

// close clears the line for the output that follows.
func (b *fetchBar) close() { b.line.clear() }

// publicSize returns the size of the whole catalogue in bytes.
func publicSize() (n int64) {
	for i := range publicTraces().Entries {
		n += publicTraces().Entries[i].Size()
	}
	return n
}
