// Package runpage writes the page of gymctl train --html and gymctl eval --html: how agents learned and how their
// baselines do, how they differ from them, and the schedules of one window.
package runpage

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"clustergym/internal/texttable"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/htmlpage"
	"clustergym/lab/report"
	"clustergym/simulator/sim"
)

// Page is what a page is about.
type Page struct {
	Config config.Config // of the evaluation
	// Evaluated holds the arguments of the evaluation; its checkpoints and Scenario are opened again to draw schedules.
	Evaluated arena.EvalOptions
	Runs      []string          // run directories whose learning is drawn
	Sheets    []texttable.Sheet // tables
	Results   []Result          // what is compared; the schedules are of the first
}

// Result is a comparison of policies.
type Result struct {
	Name       string // of the run among several, "" = there is one
	Checkpoint string // that it compares, "" = all of Page.Evaluated
	Comparison arena.Comparison
}

// ResultsOf returns the results of a comparison with estimates: one, or one for each rung, that with estimates first.
func ResultsOf(c arena.Comparison, estimates sim.Estimates) []Result {
	var all []Result
	add := func(on sim.Estimates, r arena.Comparison) {
		x := Result{Name: report.EstimatesKey + " " + on.Label(), Comparison: r}
		if on == estimates {
			all = slices.Insert(all, 0, x)
		} else {
			all = append(all, x)
		}
	}
	switch l := c.(type) {
	case *report.Ladder:
		for _, r := range l.Rungs {
			add(r.Estimates, r)
		}
	case *report.StreamLadder:
		for _, r := range l.Rungs {
			add(r.Estimates, r)
		}
	default:
		return []Result{{Comparison: c}}
	}
	return all
}

// Write plays baselines on the validation windows and two policies on a test window, and writes the page. What cannot
// be played again is left out, and the page says so.
func (p *Page) Write(ctx context.Context, w io.Writer) error {
	cfg := p.Config
	place, err := arena.New(&cfg, p.Evaluated.Scenario)
	if err != nil {
		return err
	}
	d := &drawing{ctx: ctx, page: p, cfg: &cfg, arena: place, html: htmlpage.New(2)}
	d.head()
	if err := d.learning(); err != nil {
		return err
	}
	d.differences()
	d.tables()
	if err := d.schedules(); err != nil {
		return err
	}
	return d.html.Write(w)
}

// drawing is a page in the making.
type drawing struct {
	ctx   context.Context
	page  *Page
	cfg   *config.Config
	arena arena.Arena
	html  *htmlpage.Page
}

func (d *drawing) note(format string, args ...any) {
	d.html.Notes = append(d.html.Notes, fmt.Sprintf(format, args...))
}

// head writes the title and the facts: what gymctl train says of its workload and environment.
func (d *drawing) head() {
	var names []string
	for _, r := range d.page.Runs {
		names = append(names, filepath.Base(r))
	}
	d.html.Title = "Policies in " + d.cfg.Env.ID
	if len(names) > 0 {
		d.html.Title = fmt.Sprintf("%s in %s: %s", d.cfg.Agent, d.cfg.Env.ID, texttable.Short(strings.Join(names, ", "), 80))
	}
	facts := &d.html.Facts
	for _, f := range d.arena.Describe(d.cfg) {
		if f.Key == "" && len(*facts) > 0 {
			(*facts)[len(*facts)-1][1] += "; " + f.Value
			continue
		}
		*facts = append(*facts, [2]string{f.Key, f.Value})
	}
}

func (d *drawing) tables() {
	for _, s := range d.page.Sheets {
		above := strings.TrimSpace(s.Above)
		if above != "" && !strings.HasSuffix(above, ".") {
			above += "."
		}
		text := strings.Join(strings.Fields(above+" "+s.Below), " ")
		d.html.Tables = append(d.html.Tables, htmlpage.Table{Title: s.Title, Header: s.Header, Rows: s.Rows, Text: text})
	}
}
