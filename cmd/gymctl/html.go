package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"clustergym/experiments/arena"
	"clustergym/experiments/config"
	"clustergym/experiments/run"
	"clustergym/experiments/runpage"
	"clustergym/internal/fault"
)

// htmlFlag registers --html of verbs that write a page about agents.
func htmlFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "html", "", "write a page with learning curves, paired differences and schedules to `FILE`, for any browser and without a network")
}

// checkPage refuses a name of a page that could not be written after hours of work. The page may lie in the run directory,
// which does not exist yet.
func checkPage(file, runDir string) error {
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

// writePage writes the page of agents.
func (a *app) writePage(ctx context.Context, file string, p *runpage.Page) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { // a folder in the run directory
		return &fault.Mistake{Err: err}
	}
	line := newStatus(a, 0)
	line.show(func(int) []string { return []string{"drawing " + file} })
	err := a.writeTo(file, []string{p.Config.Trace.File, p.Config.Cluster}, func(w io.Writer) error { return p.Write(ctx, w) })
	line.clear()
	if err == nil {
		a.notef("the page is %s", file)
	}
	return err
}

// pageOf is the page of one training.
func pageOf(cfg config.Config, r *run.TrainResult, opt *run.TrainOptions) *runpage.Page {
	p := &runpage.Page{
		Config: cfg, Runs: []string{opt.RunDir},
		Evaluated: arena.EvalOptions{Checkpoints: []string{r.Checkpoint}, Workers: opt.Workers, World: opt.World},
	}
	if r.Eval != nil {
		p.Sheets, p.Results = r.Eval.Sheets(), []runpage.Result{{Comparison: r.Eval}}
	}
	return p
}

// pageOfSeeds is the page of several.
func pageOfSeeds(cfg config.Config, r *run.SeedsReport, opt *run.TrainOptions) *runpage.Page {
	p := &runpage.Page{Config: cfg, Sheets: r.Sheets(), Evaluated: arena.EvalOptions{Workers: opt.Workers, World: opt.World}}
	for i := range r.Runs {
		s := &r.Runs[i]
		p.Runs = append(p.Runs, run.SeedDir(opt.RunDir, s.Seed))
		if s.Eval != nil {
			p.Results = append(p.Results, runpage.Result{Name: filepath.Base(run.SeedDir(opt.RunDir, s.Seed)), Checkpoint: s.Checkpoint, Comparison: s.Eval})
		}
	}
	return p
}
