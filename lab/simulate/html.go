package simulate

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"clustergym/lab/htmlpage"
	"clustergym/lab/report"
	"clustergym/simulator/sim"
)

// SchedulePage draws the schedules of a Run as one HTML page without other files. The caller puts Observe into Hooks,
// and calls Write after Run.
type SchedulePage struct{ page *htmlpage.Page }

// NewSchedulePage returns a page for a Run with cfg.
func NewSchedulePage(cfg Config) *SchedulePage {
	p := htmlpage.New(len(cfg.Policies))
	p.Warmup, p.Tail = cfg.Warmup, cfg.Tail
	return &SchedulePage{page: p}
}

// Observe returns an observer that adds the run of policy to the page.
func (p *SchedulePage) Observe(policy string) sim.Observer { return p.page.Run(policy) }

// Write writes the page, with r's table in it. Without runs it writes nothing.
func (p *SchedulePage) Write(w io.Writer, r *Report) error {
	if len(r.Runs) == 0 {
		return nil
	}
	first, page := &r.Runs[0], p.page
	page.Title = fmt.Sprintf("Schedules of %s on %s", filepath.Base(r.Info.File), first.Cluster.Name)
	page.Facts = [][2]string{
		{"workload", r.Info.String()},
		{"cluster", first.Cluster.String()},
		{"placement", first.Placement},
		{report.EstimatesKey, r.estimates()},
	}
	if s := r.stops(); s != "" {
		page.Facts = append(page.Facts, [2]string{"stops", s})
	}
	header, rows := r.table()
	page.Tables = []htmlpage.Table{{Title: "Metrics", Header: header, Rows: rows}}
	page.Notes = slices.Concat(r.Notes, report.Sentences(first.Estimates, r.knowledge()))
	return page.Write(w)
}
